//! What a gateway tells as it happens.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::Value;
use toolgate_net::{SseEvent, SseParser};

use super::{Answer, Remote, Trouble, detail};

/// A gateway shows four times in this time that it is there.
const SILENCE: Duration = Duration::from_secs(60);
/// More than any event has.
const LARGEST: usize = 16 << 20;

pub(crate) struct Events<'a> {
    remote: &'a Remote,
    response: reqwest::Response,
    parser: SseParser,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Remote {
    /// Listens to events of a kind from now on.
    pub(crate) async fn events(&self, kind: &str) -> Result<Events<'_>, Trouble> {
        let query = [("kinds", kind.to_owned())];
        let request = self.request(reqwest::Method::GET, &["api", "events"], &query);
        let response = request.send().await.map_err(|error| self.away(&error))?;
        let status = response.status();
        if status != StatusCode::OK {
            let bytes = self.bytes(response).await?;
            self.admitted(status, &bytes)?;
            let body = serde_json::from_slice(&bytes).unwrap_or_default();
            return Err(Trouble::Away(detail(&Answer { status, body })));
        }
        Ok(Events {
            remote: self,
            response,
            parser: SseParser::new(LARGEST),
        })
    }
}

impl Events<'_> {
    /// The next one. That there are no more is trouble too: nobody asked the gateway to end.
    pub(crate) async fn next(&mut self) -> Result<Event, Trouble> {
        let gone = |remote: &Remote, how: &str| {
            let shown = remote.shown();
            Trouble::Away(format!("the gateway at {shown} {how}"))
        };
        loop {
            while let Some(event) = self.parser.next() {
                match event {
                    SseEvent::Data { kind, data } => {
                        if let Some(event) = read(kind, &data) {
                            return Ok(event);
                        }
                    }
                    SseEvent::TooLarge { .. } => {
                        return Err(gone(self.remote, "sends an event without an end"));
                    }
                }
            }
            match tokio::time::timeout(SILENCE, self.response.chunk()).await {
                Err(_) => return Err(gone(self.remote, "has fallen silent")),
                Ok(Err(error)) => return Err(self.remote.away(&error)),
                Ok(Ok(None)) => {
                    let ended = "tells no more: it has ended, or we were too slow";
                    return Err(gone(self.remote, ended));
                }
                Ok(Ok(Some(chunk))) => self.parser.feed(&chunk),
            }
        }
    }
}

/// None for what can't be read, which is passed over.
fn read(name: String, data: &[u8]) -> Option<Event> {
    let data = serde_json::from_slice(data).ok()?;
    Some(Event { name, data })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_read_however_they_are_cut() {
        let sent = ": hello\n\nevent: call\nid: 7\ndata: {\"ä\":1}\n\n:\n\nevent: x\ndata: {\n\nevent: lagged\ndata:{\"missed\":3}\n\n";
        for piece in 1..sent.len() {
            let (mut parser, mut events) = (SseParser::new(LARGEST), Vec::new());
            for bytes in sent.as_bytes().chunks(piece) {
                parser.feed(bytes);
                while let Some(SseEvent::Data { kind, data }) = parser.next() {
                    events.extend(read(kind, &data));
                }
            }
            let read: Vec<(&str, &Value)> = events
                .iter()
                .map(|event| (event.name.as_str(), &event.data))
                .collect();
            let (call, lagged) = (json!({ "ä": 1 }), json!({ "missed": 3 }));
            assert_eq!(read, [("call", &call), ("lagged", &lagged)], "{piece}");
            assert_eq!(parser.finish(), None);
        }
    }
}
