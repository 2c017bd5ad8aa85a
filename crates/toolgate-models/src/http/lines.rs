//! The body of an answer, line by line or event by event, as it comes.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures::FutureExt;
use serde::de::IgnoredAny;
use serde_json::Value;

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
    splitter: Splitter,
    event: EventReader,
    has_events: bool,
    /// Before any event there was a line that no stream of events has.
    is_strange: bool,
}

impl Lines {
    pub(super) fn new(body: Body) -> Self {
        Self {
            body,
            splitter: Splitter::default(),
            event: EventReader::default(),
            has_events: false,
            is_strange: false,
        }
    }

    /// True if the provider says that this is one JSON value and not a stream.
    pub(crate) fn is_json(&self) -> bool {
        self.body.is_json()
    }

    /// The next line without its end; `None` once the body has ended properly. Lines are JSON: a last one without an end
    /// that is none was cut off.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        let Some(line) = self.line().await? else {
            return Ok(None);
        };
        if !line.ended && !line.bytes.trim_ascii().is_empty() && !is_json(&line.bytes) {
            return Err(self.body.cut("it ended within a line".to_owned()));
        }
        Ok(Some(line.bytes))
    }

    /// The next server-sent event: its name (or an empty text) and its data.
    pub(crate) async fn next_event(&mut self) -> Result<Option<ServerEvent>, ModelError> {
        while let Some(line) = self.line().await? {
            if let Some(event) = self.event.line(&line.bytes) {
                self.has_events = true;
                return Ok(Some(event));
            }
            if !self.has_events && !is_of_event(&line) {
                self.is_strange = true;
            }
            if self.event.data.len() > LONGEST_LINE {
                return Err(self.too_long("an event"));
            }
        }
        let last = self.event.last();
        if last.is_none() && self.is_strange && !self.has_events {
            let strange = "it is something else than events";
            return Err(self.body.not_from_there(strange));
        }
        Ok(last)
    }

    /// All that is left, as one JSON value.
    pub(crate) async fn json(mut self) -> Result<Value, ModelError> {
        let bytes = self.rest().await?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let start = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
            self.body.garbled_by(&format!("no JSON ({error}): {start}"))
        })
    }

    /// All that is left.
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

    async fn line(&mut self) -> Result<Option<Line>, ModelError> {
        loop {
            let next = self.splitter.next().map_err(|_| self.too_long("a line"))?;
            if let Some(bytes) = next {
                return Ok(Some(Line { bytes, ended: true }));
            }
            match self.body.next().await? {
                Some(chunk) => self.splitter.feed(chunk),
                None => {
                    let bytes = self.splitter.last();
                    let ended = false;
                    return Ok(bytes.map(|bytes| Line { bytes, ended }));
                }
            }
        }
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

struct Line {
    bytes: Bytes,
    ended: bool,
}

/// True of a line that a stream of events may have, also of one that was cut off in its first word.
fn is_of_event(line: &Line) -> bool {
    const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];
    let colon = memchr::memchr(b':', &line.bytes);
    match &line.bytes[..colon.unwrap_or(line.bytes.len())] {
        b"" => true,
        start if colon.is_none() && !line.ended => {
            FIELDS.iter().any(|field| field.starts_with(start))
        }
        name => FIELDS.contains(&name),
    }
}

struct TooLong;

/// Chunks in, lines out, whether they end in LF, CRLF or CR. Each byte is looked at once.
#[derive(Default)]
pub(super) struct Splitter {
    chunk: Bytes,
    /// The beginning of the line that is not complete yet.
    partial: BytesMut,
    /// The last byte was a CR: a LF after it ends no second line.
    after_cr: bool,
    begun: bool,
}

impl Splitter {
    /// Takes the next bytes in. What came before must have been taken out.
    fn feed(&mut self, chunk: Bytes) {
        self.chunk = chunk;
    }

    fn next(&mut self) -> Result<Option<Bytes>, TooLong> {
        if self.chunk.is_empty() {
            return Ok(None);
        }
        if std::mem::take(&mut self.after_cr) && self.chunk[0] == b'\n' {
            self.chunk.advance(1);
        }
        let Some(end) = memchr::memchr2(b'\n', b'\r', &self.chunk) else {
            let rest = std::mem::take(&mut self.chunk);
            self.partial.extend_from_slice(&rest);
            return if self.partial.len() > LONGEST_LINE {
                Err(TooLong)
            } else {
                Ok(None)
            };
        };
        let piece = self.chunk.split_to(end);
        self.after_cr = self.chunk[0] == b'\r';
        self.chunk.advance(1);
        if self.partial.len() + piece.len() > LONGEST_LINE {
            return Err(TooLong);
        }
        if self.partial.is_empty() {
            return Ok(Some(self.first(piece)));
        }
        self.partial.extend_from_slice(&piece);
        let line = self.partial.split().freeze();
        Ok(Some(self.first(line)))
    }

    /// What stands behind the last end of a line.
    fn last(&mut self) -> Option<Bytes> {
        let rest = self.partial.split().freeze();
        let rest = self.first(rest);
        (!rest.is_empty()).then_some(rest)
    }

    /// A byte-order mark before the first line is no part of it.
    fn first(&mut self, mut line: Bytes) -> Bytes {
        if !std::mem::replace(&mut self.begun, true) && line.starts_with(BOM) {
            line.advance(BOM.len());
        }
        line
    }
}

/// A server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerEvent {
    pub(crate) name: String,
    pub(crate) data: String,
}

/// Lines in, server-sent events out.
#[derive(Default)]
struct EventReader {
    name: String,
    data: Vec<u8>,
    has_data: bool,
}

impl EventReader {
    fn line(&mut self, line: &[u8]) -> Option<ServerEvent> {
        if line.is_empty() {
            return self.take();
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            // Comments, ids, and what nobody knows.
            _ => {}
        }
        None
    }

    /// An event without the empty line behind it: a sloppy server's last one, if it is complete, and cut off otherwise.
    fn last(&mut self) -> Option<ServerEvent> {
        let complete = is_json(&self.data) || self.data == b"[DONE]";
        complete.then(|| self.take()).flatten()
    }

    fn take(&mut self) -> Option<ServerEvent> {
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        let event = ServerEvent {
            name,
            data: String::from_utf8_lossy(&data).into_owned(),
        };
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut splitter = Splitter::default();
        let mut lines = Vec::new();
        for chunk in chunks {
            splitter.feed(Bytes::copy_from_slice(chunk));
            while let Ok(Some(line)) = splitter.next() {
                lines.push(line.to_vec());
            }
        }
        lines.extend(splitter.last().map(|line| line.to_vec()));
        lines
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_they_come(
            text in "[ab\r\n\u{feff}ü]{0,40}",
            size in 1..8usize,
        ) {
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            let whole = split(&[text.as_bytes()]);
            prop_assert_eq!(&split(&chunks), &whole);
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            let text = text.replace("\r\n", "\n").replace('\r', "\n");
            let mut expected: Vec<&[u8]> = text.split('\n').map(str::as_bytes).collect();
            if expected.last() == Some(&&b""[..]) {
                expected.pop();
            }
            prop_assert_eq!(whole, expected);
        }
    }
}
