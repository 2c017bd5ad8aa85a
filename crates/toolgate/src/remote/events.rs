//! What a gateway tells as it happens.

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::Value;

use super::{Answer, Remote, Trouble, detail};

/// A gateway shows four times in this time that it is there.
const SILENCE: Duration = Duration::from_secs(60);
/// More than any event has.
const LARGEST: usize = 16 << 20;

/// A stream of server-sent events.
pub(crate) struct Events<'a> {
    remote: &'a Remote,
    response: reqwest::Response,
    rest: Vec<u8>,
    read: VecDeque<Event>,
}

/// One of them.
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
            rest: Vec::new(),
            read: VecDeque::new(),
        })
    }
}

impl Events<'_> {
    /// The next one. That there are no more is trouble too: nobody asked the gateway to end.
    pub(crate) async fn next(&mut self) -> Result<Event, Trouble> {
        loop {
            if let Some(event) = self.read.pop_front() {
                return Ok(event);
            }
            let gone = |how: &str| {
                let shown = self.remote.shown();
                Trouble::Away(format!("the gateway at {shown} {how}"))
            };
            let chunk = tokio::time::timeout(SILENCE, self.response.chunk()).await;
            match chunk {
                Err(_) => return Err(gone("has fallen silent")),
                Ok(Err(error)) => return Err(self.remote.away(&error)),
                Ok(Ok(None)) => {
                    return Err(gone("tells no more: it has ended, or we were too slow"));
                }
                Ok(Ok(Some(chunk))) => self.rest.extend_from_slice(&chunk),
            }
            if self.rest.len() > LARGEST {
                return Err(gone("sends an event without an end"));
            }
            self.read.extend(complete(&mut self.rest));
        }
    }
}

/// Takes what is complete out of the bytes. Comments, and what can not be read, are passed over.
fn complete(bytes: &mut Vec<u8>) -> Vec<Event> {
    const END: &[u8] = b"\n\n";
    let Some(end) = bytes.windows(END.len()).rposition(|window| window == END) else {
        return Vec::new();
    };
    let whole: Vec<u8> = bytes.drain(..end + END.len()).collect();
    let text = String::from_utf8_lossy(&whole);
    text.split("\n\n").filter_map(event).collect()
}

fn event(block: &str) -> Option<Event> {
    let field = |name: &str| {
        let mut lines = block.lines();
        lines.find_map(|line| {
            line.strip_prefix(name)?
                .strip_prefix(':')
                .map(str::trim_start)
        })
    };
    Some(Event {
        name: field("event")?.to_owned(),
        data: serde_json::from_str(field("data")?).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_read_however_they_are_cut() {
        let sent = ": hello\n\nevent: call\nid: 7\ndata: {\"ä\":1}\n\n:\n\nevent: x\ndata: {\n\nevent: lagged\ndata:{\"missed\":3}\n\n";
        for piece in 1..sent.len() {
            let (mut rest, mut read) = (Vec::new(), Vec::new());
            for bytes in sent.as_bytes().chunks(piece) {
                rest.extend_from_slice(bytes);
                read.extend(complete(&mut rest));
            }
            let read: Vec<(&str, &Value)> = read
                .iter()
                .map(|event| (event.name.as_str(), &event.data))
                .collect();
            let (call, lagged) = (json!({ "ä": 1 }), json!({ "missed": 3 }));
            assert_eq!(read, [("call", &call), ("lagged", &lagged)], "{piece}");
            assert!(rest.is_empty());
        }
    }
}
