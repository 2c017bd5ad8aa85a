//! The body of an answer, line by line or event by event, as it comes.

use std::string::FromUtf8Error;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures::FutureExt;
use serde::de::IgnoredAny;
use serde_json::Value;
use toolgate_net::{Line, LineBuffer, SseEvent, SseParser};

use super::body::Body;
use crate::ModelError;

const LONGEST_LINE: usize = 8 << 20;
/// How long the end of a body that holds nothing more is waited for.
const LAST_BYTES: Duration = Duration::from_secs(1);
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The body of an answer, line by line. A line that is too long, a body that is too long, and a stream that is cut are errors.
/// Dropping it closes the connection.
pub(crate) struct Lines {
    body: Body,
    lines: LineBuffer,
    events: SseParser,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerEvent {
    /// Empty if it has none.
    pub(crate) name: String,
    pub(crate) data: String,
}

impl Lines {
    pub(super) fn new(body: Body) -> Self {
        Self {
            body,
            lines: LineBuffer::text(LONGEST_LINE),
            events: SseParser::new(LONGEST_LINE),
        }
    }

    /// True if the provider says that this is one JSON value and not a stream.
    pub(crate) fn is_json(&self) -> bool {
        self.body.is_json()
    }

    /// The next line without its end; `None` once the body has ended properly. Lines are JSON: a last one without an end
    /// that is none was cut off.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        loop {
            match self.lines.next() {
                Some(Line::Whole(line)) => return Ok(Some(line)),
                Some(Line::Oversized { .. }) => return Err(self.too_long("a line")),
                None => {}
            }
            match self.body.next().await? {
                Some(chunk) => self.lines.feed(&chunk),
                None => break,
            }
        }
        match self.lines.finish() {
            Some(Line::Whole(rest)) if rest.trim_ascii().is_empty() || is_json(&rest) => {
                Ok(Some(rest))
            }
            Some(_) => Err(self.body.cut("it ended within a line".to_owned())),
            None => Ok(None),
        }
    }

    pub(crate) async fn next_event(&mut self) -> Result<Option<ServerEvent>, ModelError> {
        loop {
            match self.events.next() {
                Some(SseEvent::Data { kind, data }) => return Ok(Some(server_event(kind, data))),
                Some(SseEvent::TooLarge { .. }) => return Err(self.too_long("an event")),
                None => {}
            }
            match self.body.next().await? {
                Some(chunk) => self.events.feed(&chunk),
                None => break,
            }
        }
        match self.events.finish() {
            // A sloppy server's last one has no empty line behind it. What is no JSON was cut off.
            Some(SseEvent::Data { kind, data }) if is_json(&data) || data == b"[DONE]" => {
                Ok(Some(server_event(kind, data)))
            }
            _ if self.events.is_foreign() => {
                let strange = "it is something else than events";
                Err(self.body.not_from_there(strange))
            }
            _ => Ok(None),
        }
    }

    pub(crate) async fn json(mut self) -> Result<Value, ModelError> {
        let bytes = self.rest().await?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let start = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
            self.body.garbled_by(&format!("no JSON ({error}): {start}"))
        })
    }

    pub(crate) async fn rest(&mut self) -> Result<Bytes, ModelError> {
        let mut bytes = BytesMut::new();
        while let Some(chunk) = self.body.next().await? {
            bytes.extend_from_slice(&chunk);
        }
        if bytes.starts_with(BOM) {
            bytes.advance(BOM.len());
        }
        Ok(bytes.freeze())
    }

    /// The answer is complete, whatever may still come. A body that ends soon leaves its connection to the next request.
    pub(crate) fn finish(self) {
        let mut body = self.body;
        // Most often the end is here already; nobody waits for it otherwise.
        if !matches!(body.next().now_or_never(), None | Some(Ok(Some(_)))) {
            return;
        }
        let end = async move { while matches!(body.next().await, Ok(Some(_))) {} };
        tokio::spawn(tokio::time::timeout(LAST_BYTES, end));
    }

    fn too_long(&self, what: &str) -> ModelError {
        let most = LONGEST_LINE >> 20;
        self.body
            .garbled(format!("{what} of it is longer than {most} MiB"))
    }
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

fn server_event(mut name: String, data: Vec<u8>) -> ServerEvent {
    // What an event is called that has no name. No provider means anything by it.
    if name == "message" {
        name.clear();
    }
    let lossy = |error: FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
    let data = String::from_utf8(data).unwrap_or_else(lossy);
    ServerEvent { name, data }
}
