//! The event stream of a gateway.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::Value;
use toolgate_net::{SseEvent, SseParser};

use super::{GatewayResponse, RemoteError, RemoteGateway, problem_detail};

// A gateway sends four keep-alive comments in this time.
const MAX_SILENCE: Duration = Duration::from_secs(60);
// Bytes. No event is larger.
const MAX_EVENT_BYTES: usize = 16 << 20;

pub(crate) struct RemoteEvents<'a> {
    remote: &'a RemoteGateway,
    response: reqwest::Response,
    parser: SseParser,
}

#[derive(Debug, PartialEq)]
pub(crate) struct RemoteEvent {
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl RemoteGateway {
    pub(crate) async fn events(&self, kind: &str) -> Result<RemoteEvents<'_>, RemoteError> {
        let query = [("kinds", kind.to_owned())];
        let request = self.request(reqwest::Method::GET, &["api", "events"], &query);
        let response = request
            .send()
            .await
            .map_err(|error| self.connection_error(&error))?;
        let status = response.status();
        if status != StatusCode::OK {
            let bytes = self.bytes(response).await?;
            self.check_status(status, &bytes)?;
            let body = serde_json::from_slice(&bytes).unwrap_or_default();
            return Err(RemoteError::Unreachable(problem_detail(&GatewayResponse {
                status,
                body,
            })));
        }
        Ok(RemoteEvents {
            remote: self,
            response,
            parser: SseParser::new(MAX_EVENT_BYTES),
        })
    }
}

impl RemoteEvents<'_> {
    /// The next event. The end of the stream is an error, because an event
    /// stream has no regular end.
    pub(crate) async fn next(&mut self) -> Result<RemoteEvent, RemoteError> {
        let gone = |remote: &RemoteGateway, how: &str| {
            let shown = remote.display_address();
            RemoteError::Unreachable(format!("the gateway at {shown} {how}"))
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
                        return Err(gone(self.remote, "sent an event that is too large"));
                    }
                }
            }
            match tokio::time::timeout(MAX_SILENCE, self.response.chunk()).await {
                Err(_) => return Err(gone(self.remote, "stopped sending events")),
                Ok(Err(error)) => return Err(self.remote.connection_error(&error)),
                Ok(Ok(None)) => {
                    let ended =
                        "closed the event stream: it has stopped, or this command read too slowly";
                    return Err(gone(self.remote, ended));
                }
                Ok(Ok(Some(chunk))) => self.parser.feed(&chunk),
            }
        }
    }
}

fn read(name: String, data: &[u8]) -> Option<RemoteEvent> {
    let data = serde_json::from_slice(data).ok()?;
    Some(RemoteEvent { name, data })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_read_however_they_are_cut() {
        let sent = ": hello\n\nevent: call\nid: 7\ndata: {\"ä\":1}\n\n:\n\nevent: x\ndata: {\n\nevent: lagged\ndata:{\"missed\":3}\n\n";
        for piece in 1..sent.len() {
            let (mut parser, mut events) = (SseParser::new(MAX_EVENT_BYTES), Vec::new());
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
