//! [`SseParser`]: parses server-sent events. It does no I/O, so tests can try every way
//! to chunk a stream.
//!
//! No existing crate fits: eventsource-stream panics on a byte-order mark and takes quadratic time,
//! and sse-stream doesn't bound the size of an event.

use std::time::Duration;

use bytes::Bytes;

use crate::line_buffer::{BufferedLine, LineBuffer};

// Longer ids are dropped, because they have to fit into a header to resume a stream.
const MAX_ID_LEN: usize = 1024;
// How much of an event that is too large is returned, to see which request it answers.
const HEAD_BYTES: usize = 256;
const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

/// A server-sent event, or a notice that one was too large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseEvent {
    Data {
        /// The type of the event: `message` unless the server sent another one.
        kind: String,
        /// The data lines, joined by newlines. Never empty.
        data: Vec<u8>,
    },
    /// An event exceeded the limit. The rest of it is skipped.
    TooLarge {
        /// Its size so far, when it exceeded the limit.
        bytes: u64,
        /// The beginning of its data.
        head: Vec<u8>,
    },
}

/// Parses server-sent events, for one stream after another.
///
/// The last id and the retry delay are kept between streams, because they are needed to resume one.
/// [`feed`](Self::feed) it bytes, then call [`next`](Self::next) until it returns `None`.
///
/// ```
/// use toolgate_net::{SseEvent, SseParser};
///
/// let mut parser = SseParser::new(1024);
/// parser.feed(b"data: hel");
/// assert_eq!(parser.next(), None);
/// parser.feed(b"lo\n\n");
/// let (kind, data) = ("message".to_owned(), b"hello".to_vec());
/// assert_eq!(parser.next(), Some(SseEvent::Data { kind, data }));
/// ```
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    lines: LineBuffer,
    data: Option<Vec<u8>>,
    kind: String,
    // Takes effect only once its event is complete.
    new_id: Option<Vec<u8>>,
    last_id: Option<Vec<u8>>,
    retry: Option<Duration>,
    skipping: bool,
    progress: bool,
    has_events: bool,
    has_unknown_lines: bool,
}

impl SseParser {
    /// `limit` is the maximum size of an event in bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            lines: LineBuffer::for_text(limit),
            data: None,
            kind: String::new(),
            new_id: None,
            last_id: None,
            retry: None,
            skipping: false,
            progress: false,
            has_events: false,
            has_unknown_lines: false,
        }
    }

    /// Starts a new stream, which may continue the last one. A partial event is dropped; the last
    /// id and the retry delay are kept.
    pub fn restart(&mut self) {
        let (last_id, retry) = (self.last_id.take(), self.retry);
        *self = Self {
            last_id,
            retry,
            ..Self::new(self.limit)
        };
    }

    /// The id of the last event that had one, to resume the stream after it.
    pub fn last_id(&self) -> Option<&[u8]> {
        self.last_id.as_deref()
    }

    /// How long the server wants us to wait before reconnecting.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// True if an event or an id arrived since the last call.
    pub fn take_progress(&mut self) -> bool {
        std::mem::take(&mut self.progress)
    }

    /// True if the stream doesn't look like server-sent events: it had no event yet, but a line
    /// that can't be part of one.
    pub fn is_foreign(&self) -> bool {
        self.has_unknown_lines && !self.has_events
    }

    pub fn feed(&mut self, chunk: &[u8]) {
        self.lines.feed(chunk);
    }

    /// Returns the next event. `None` if more bytes are needed.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would seem to end where it only waits for more bytes"
    )]
    pub fn next(&mut self) -> Option<SseEvent> {
        loop {
            // The limit applies to the whole event, so all of its lines count.
            let data = self.data.as_ref().map_or(0, Vec::len);
            self.lines.set_limit(self.limit.saturating_sub(data));
            let event = match self.lines.next()? {
                BufferedLine::Whole(line) => self.parse_line(&line),
                BufferedLine::Oversized { part, .. } => self.skip_oversized(&part),
            };
            if event.is_some() {
                return event;
            }
        }
    }

    /// Ends the stream and returns the last event, even without the empty line after it. That event
    /// may be truncated: the caller has to check whether its data is complete.
    pub fn finish(&mut self) -> Option<SseEvent> {
        if let Some(BufferedLine::Whole(line)) = self.lines.finish() {
            // A truncated field name doesn't count as an unknown line.
            let is_truncated = FIELDS.iter().any(|field| field.starts_with(&line));
            if !is_truncated {
                self.parse_line(&line);
            }
        }
        self.end_event()
    }

    fn skip_oversized(&mut self, part: &Bytes) -> Option<SseEvent> {
        if std::mem::replace(&mut self.skipping, true) {
            return None;
        }
        let data = self.data.take();
        let bytes = data.as_ref().map_or(0, Vec::len) + part.len();
        let colon = memchr::memchr(b':', part).map_or(0, |at| at + 1);
        let head = data.as_deref().unwrap_or(&part[colon..]);
        Some(SseEvent::TooLarge {
            bytes: bytes as u64,
            head: head[..head.len().min(HEAD_BYTES)].to_vec(),
        })
    }

    fn parse_line(&mut self, line: &[u8]) -> Option<SseEvent> {
        if line.is_empty() {
            return self.end_event();
        }
        if self.skipping {
            return None;
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        self.set_field(&line[..colon], value.strip_prefix(b" ").unwrap_or(value));
        None
    }

    fn set_field(&mut self, field: &[u8], value: &[u8]) {
        self.has_unknown_lines |= !field.is_empty() && !FIELDS.contains(&field);
        match field {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                none => *none = Some(value.to_vec()),
            },
            b"event" => self.kind = String::from_utf8_lossy(value).into_owned(),
            b"id" if value.len() <= MAX_ID_LEN && !value.contains(&0) => {
                self.new_id = Some(value.to_vec());
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let digits = std::str::from_utf8(value).unwrap_or_default();
                self.retry = Some(Duration::from_millis(digits.parse().unwrap_or(u64::MAX)));
            }
            // Comments have an empty name, and the standard says to ignore unknown fields.
            _ => {}
        }
    }

    fn end_event(&mut self) -> Option<SseEvent> {
        self.skipping = false;
        let kind = std::mem::take(&mut self.kind);
        self.progress |= self.new_id.is_some() || self.data.is_some();
        if let Some(id) = self.new_id.take() {
            // An empty id resets the last one.
            self.last_id = (!id.is_empty()).then_some(id);
        }
        let data = self.data.take().filter(|data| !data.is_empty())?;
        self.has_events = true;
        let kind = match kind.is_empty() {
            true => "message".to_owned(),
            false => kind,
        };
        Some(SseEvent::Data { kind, data })
    }
}

/// Fuzz target: the first byte says how the rest is chunked.
#[cfg(any(test, fuzzing))]
pub fn fuzz(bytes: &[u8]) {
    let Some((cut, stream)) = bytes.split_first() else {
        return;
    };
    let chunks: Vec<&[u8]> = stream.chunks(usize::from(*cut).max(1)).collect();
    expect_same_events(stream, &chunks);
}

/// Panics if chunking changes the events.
#[cfg(any(test, fuzzing))]
fn expect_same_events(stream: &[u8], chunks: &[&[u8]]) {
    let (whole, parser) = read(&[stream]);
    let (pieces, other) = read(chunks);
    // Only the size at which an event exceeded the limit may depend on the chunks.
    let comparable = |events: Vec<SseEvent>| -> Vec<Option<(String, Vec<u8>)>> {
        let comparable = events.into_iter().map(|event| match event {
            SseEvent::Data { kind, data } => Some((kind, data)),
            SseEvent::TooLarge { .. } => None,
        });
        comparable.collect()
    };
    assert_eq!(comparable(whole), comparable(pieces));
    assert_eq!(parser.last_id(), other.last_id());
    assert_eq!(parser.retry(), other.retry());
}

#[cfg(any(test, fuzzing))]
const LIMIT: usize = 64;

#[cfg(any(test, fuzzing))]
fn read(chunks: &[&[u8]]) -> (Vec<SseEvent>, SseParser) {
    let mut parser = SseParser::new(LIMIT);
    let mut events = Vec::new();
    for chunk in chunks {
        parser.feed(chunk);
        events.extend(std::iter::from_fn(|| parser.next()));
    }
    (events, parser)
}

#[cfg(test)]
mod tests;
