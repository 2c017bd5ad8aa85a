//! The faults that tests can inject into a fake.

use std::time::Duration;

/// How a fake misbehaves when it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceFault {
    /// No fault, to skip an answer in a series of faults.
    None,
    Delay(Duration),
    /// Never answers, and keeps the connection.
    Hang,
    Close,
    /// Sends bytes that are not an event, and keeps the connection.
    Garbage,
    /// Claims a payload of a terabyte, and keeps the connection.
    Giant,
    /// Sends a header line of two megabytes without an end, and keeps the connection.
    Endless,
    /// Stops in the middle of the first event, and keeps the connection.
    Half,
    /// Closes the connection after this many events of the answer.
    CloseAfter(usize),
    /// Stops after this many events of the answer, and keeps the connection.
    HangAfter(usize),
    /// Answers `error` with this text.
    Refuse(String),
}

#[derive(Debug)]
pub(crate) enum ReplyStep {
    Send(Vec<u8>),
    Wait(Duration),
    Close,
}

impl ServiceFault {
    pub(crate) fn apply(self, answer: Vec<Vec<u8>>) -> Vec<ReplyStep> {
        let send = |events: Vec<Vec<u8>>| events.into_iter().map(ReplyStep::Send);
        match self {
            Self::None => send(answer).collect(),
            Self::Delay(time) => [ReplyStep::Wait(time)]
                .into_iter()
                .chain(send(answer))
                .collect(),
            Self::Hang => Vec::new(),
            Self::Close => vec![ReplyStep::Close],
            Self::Garbage => vec![ReplyStep::Send(b"\x00\xffGET / HTTP/1.1\r\n\r\n".to_vec())],
            Self::Giant => {
                let header = br#"{"type": "audio-chunk", "payload_length": 1099511627776}"#;
                vec![ReplyStep::Send([header.as_slice(), b"\n"].concat())]
            }
            Self::Endless => vec![ReplyStep::Send(vec![b'{'; 2 << 20])],
            Self::Half => answer
                .into_iter()
                .take(1)
                .map(|mut event| {
                    event.truncate(event.len() / 2);
                    ReplyStep::Send(event)
                })
                .collect(),
            Self::CloseAfter(count) => send(answer).take(count).chain([ReplyStep::Close]).collect(),
            Self::HangAfter(count) => send(answer).take(count).collect(),
            Self::Refuse(text) => {
                let data = serde_json::json!({ "text": text, "code": "fake" });
                vec![ReplyStep::Send(crate::frame::encode_event(
                    "error",
                    &data,
                    &[],
                ))]
            }
        }
    }
}
