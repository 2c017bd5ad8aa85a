//! Ways to fail.

use std::time::Duration;

/// What a double does instead of just answering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is wrong: for a place in a row of faults.
    None,
    /// Answers late.
    Delay(Duration),
    /// Never answers, and keeps the connection.
    Hang,
    /// Closes the connection.
    Close,
    /// Sends what is no event, and keeps the connection.
    Garbage,
    /// Claims a payload of a terabyte, and keeps the connection.
    Giant,
    /// Sends a header line of two megabytes without an end, and keeps the connection.
    Endless,
    /// Stops in the middle of the first event, and keeps the connection.
    Half,
    /// Closes the connection after so many events of the answer.
    CloseAfter(usize),
    /// Is silent after so many events of the answer, and keeps the connection.
    HangAfter(usize),
    /// Says `error` with this text.
    Refuse(String),
}

#[derive(Debug)]
pub(crate) enum Step {
    Send(Vec<u8>),
    Wait(Duration),
    Close,
}

impl Fault {
    pub(crate) fn apply(self, answer: Vec<Vec<u8>>) -> Vec<Step> {
        let send = |events: Vec<Vec<u8>>| events.into_iter().map(Step::Send);
        match self {
            Self::None => send(answer).collect(),
            Self::Delay(time) => [Step::Wait(time)].into_iter().chain(send(answer)).collect(),
            Self::Hang => Vec::new(),
            Self::Close => vec![Step::Close],
            Self::Garbage => vec![Step::Send(b"\x00\xffGET / HTTP/1.1\r\n\r\n".to_vec())],
            Self::Giant => {
                let header = br#"{"type": "audio-chunk", "payload_length": 1099511627776}"#;
                vec![Step::Send([header.as_slice(), b"\n"].concat())]
            }
            Self::Endless => vec![Step::Send(vec![b'{'; 2 << 20])],
            Self::Half => answer
                .into_iter()
                .take(1)
                .map(|mut event| {
                    event.truncate(event.len() / 2);
                    Step::Send(event)
                })
                .collect(),
            Self::CloseAfter(count) => send(answer).take(count).chain([Step::Close]).collect(),
            Self::HangAfter(count) => send(answer).take(count).collect(),
            Self::Refuse(text) => {
                let data = serde_json::json!({ "text": text, "code": "fake" });
                vec![Step::Send(crate::frame::event("error", &data, &[]))]
            }
        }
    }
}
