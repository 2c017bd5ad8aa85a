//! Reads the body of a response line by line or event by event, as it arrives.

use std::string::FromUtf8Error;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures::FutureExt;
use serde::de::IgnoredAny;
use serde_json::Value;
use toolgate_net::{BufferedLine, LineBuffer, SseEvent, SseParser};

use super::body::ProviderBody;
use crate::ModelError;

const MAX_LINE_BYTES: usize = 8 << 20;
// How long a background task waits for the end of a body after its last useful byte.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The body of a response. Reading fails if a line or the body is too long, or if the stream is cut
/// off. Dropping it closes the connection.
pub(crate) struct ResponseLines {
    body: ProviderBody,
    lines: LineBuffer,
    events: SseParser,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerEvent {
    pub(crate) name: String,
    pub(crate) data: String,
}

impl ResponseLines {
    pub(super) fn new(body: ProviderBody) -> Self {
        Self {
            body,
            lines: LineBuffer::for_text(MAX_LINE_BYTES),
            events: SseParser::new(MAX_LINE_BYTES),
        }
    }

    /// True if the response is declared as one JSON value rather than a stream.
    pub(crate) fn is_json(&self) -> bool {
        self.body.is_json()
    }

    /// The next line without its line ending; `None` at the end of the body. If the last line has
    /// no ending and isn't JSON, it was cut off, which is an error.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        loop {
            match self.lines.next() {
                Some(BufferedLine::Whole(line)) => return Ok(Some(line)),
                Some(BufferedLine::Oversized { .. }) => return Err(self.too_long_error("a line")),
                None => {}
            }
            match self.body.next().await? {
                Some(chunk) => self.lines.feed(&chunk),
                None => break,
            }
        }
        match self.lines.finish() {
            Some(BufferedLine::Whole(rest)) if rest.trim_ascii().is_empty() || is_json(&rest) => {
                Ok(Some(rest))
            }
            Some(_) => Err(self.body.cut_error("it ended within a line".to_owned())),
            None => Ok(None),
        }
    }

    pub(crate) async fn next_event(&mut self) -> Result<Option<ServerEvent>, ModelError> {
        loop {
            match self.events.next() {
                Some(SseEvent::Data { kind, data }) => return Ok(Some(server_event(kind, data))),
                Some(SseEvent::TooLarge { .. }) => return Err(self.too_long_error("an event")),
                None => {}
            }
            match self.body.next().await? {
                Some(chunk) => self.events.feed(&chunk),
                None => break,
            }
        }
        match self.events.finish() {
            // Some servers omit the empty line after the last event. If the event isn't JSON, it
            // was cut off.
            Some(SseEvent::Data { kind, data }) if is_json(&data) || data == b"[DONE]" => {
                Ok(Some(server_event(kind, data)))
            }
            _ if self.events.is_foreign() => {
                Err(self.body.wrong_address_error("it is not an event stream"))
            }
            _ => Ok(None),
        }
    }

    pub(crate) async fn json(mut self) -> Result<Value, ModelError> {
        let bytes = self.read_rest().await?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let start = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
            self.body
                .garbled_content_error(&format!("not JSON ({error}): {start}"))
        })
    }

    pub(crate) async fn read_rest(&mut self) -> Result<Bytes, ModelError> {
        let mut bytes = BytesMut::new();
        while let Some(chunk) = self.body.next().await? {
            bytes.extend_from_slice(&chunk);
        }
        if bytes.starts_with(BOM) {
            bytes.advance(BOM.len());
        }
        Ok(bytes.freeze())
    }

    /// Call this once the reply is complete. Reads the rest of the body in the background, so that
    /// the connection can be reused.
    pub(crate) fn finish(self) {
        let mut body = self.body;
        // Usually the end has arrived already, and no task is needed.
        if !matches!(body.next().now_or_never(), None | Some(Ok(Some(_)))) {
            return;
        }
        let end = async move { while matches!(body.next().await, Ok(Some(_))) {} };
        tokio::spawn(tokio::time::timeout(DRAIN_TIMEOUT, end));
    }

    fn too_long_error(&self, what: &str) -> ModelError {
        let most = MAX_LINE_BYTES >> 20;
        self.body
            .malformed_error(format!("{what} of it is longer than {most} MiB"))
    }
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

fn server_event(mut name: String, data: Vec<u8>) -> ServerEvent {
    // `message` is the default name of an event, and no provider means anything by it.
    if name == "message" {
        name.clear();
    }
    let lossy = |error: FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
    let data = String::from_utf8(data).unwrap_or_else(lossy);
    ServerEvent { name, data }
}
