//! A parser for server-sent events. It does no I/O, so tests can try every way to chunk a stream.
//!
//! No existing crate fits: eventsource-stream panics on a byte-order mark and takes quadratic time,
//! and sse-stream doesn't bound the size of an event.

use std::time::Duration;

use bytes::Bytes;

use crate::line_buffer::{BufferedLine, LineBuffer};

// Longer ids are dropped: to be of use they have to fit into a header.
const MAX_ID_LEN: usize = 1024;
// This much of an event that is too large is kept, to see which request it answers.
const HEAD: usize = 256;
const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

/// An event, or news of one that was too large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseEvent {
    Data {
        /// `message` unless the server named another.
        kind: String,
        /// The data lines, joined by newlines. Never empty.
        data: Vec<u8>,
    },
    /// An event beyond the limit. The rest of it is skipped.
    TooLarge {
        /// Its size when it passed the limit.
        bytes: u64,
        head: Vec<u8>,
    },
}

/// Parses one stream after the other. What is needed to resume, the last id and the retry
/// delay, outlives each stream.
///
/// [`feed`](Self::feed) it, then take events until there are none.
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
    is_foreign: bool,
}

impl SseParser {
    /// `limit` is the maximum size of an event in bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            lines: LineBuffer::text(limit),
            data: None,
            kind: String::new(),
            new_id: None,
            last_id: None,
            retry: None,
            skipping: false,
            progress: false,
            has_events: false,
            is_foreign: false,
        }
    }

    /// Starts a new stream, perhaps the continuation of the last: a partial event is dropped, the
    /// last id and the retry delay are kept.
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

    /// Whether an event or an id arrived since the last call.
    pub fn take_progress(&mut self) -> bool {
        std::mem::take(&mut self.progress)
    }

    /// Whether the stream isn't server-sent events: it had no event yet, but a line that can't
    /// be part of one.
    pub fn is_foreign(&self) -> bool {
        self.is_foreign && !self.has_events
    }

    pub fn feed(&mut self, chunk: &[u8]) {
        self.lines.feed(chunk);
    }

    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would seem to end where it only waits for more bytes"
    )]
    pub fn next(&mut self) -> Option<SseEvent> {
        loop {
            // The limit is for the event, so all of its lines count together.
            let data = self.data.as_ref().map_or(0, Vec::len);
            self.lines.set_limit(self.limit.saturating_sub(data));
            let event = match self.lines.next()? {
                BufferedLine::Whole(line) => self.end_of_line(&line),
                BufferedLine::Oversized { part, .. } => self.too_large(&part),
            };
            if event.is_some() {
                return event;
            }
        }
    }

    /// Ends the stream and returns what is left. Without the empty line after it the event may be
    /// truncated: the caller has to check whether its data is complete.
    pub fn finish(&mut self) -> Option<SseEvent> {
        if let Some(BufferedLine::Whole(line)) = self.lines.finish() {
            // A truncated field name doesn't make the stream foreign.
            let is_cut = FIELDS.iter().any(|field| field.starts_with(&line));
            if !is_cut {
                self.end_of_line(&line);
            }
        }
        self.end_of_event()
    }

    fn too_large(&mut self, part: &Bytes) -> Option<SseEvent> {
        if std::mem::replace(&mut self.skipping, true) {
            return None;
        }
        let data = self.data.take();
        let bytes = data.as_ref().map_or(0, Vec::len) + part.len();
        let colon = memchr::memchr(b':', part).map_or(0, |at| at + 1);
        let head = data.as_deref().unwrap_or(&part[colon..]);
        Some(SseEvent::TooLarge {
            bytes: bytes as u64,
            head: head[..head.len().min(HEAD)].to_vec(),
        })
    }

    fn end_of_line(&mut self, line: &[u8]) -> Option<SseEvent> {
        if line.is_empty() {
            return self.end_of_event();
        }
        if self.skipping {
            return None;
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        self.field(&line[..colon], value.strip_prefix(b" ").unwrap_or(value));
        None
    }

    fn field(&mut self, field: &[u8], value: &[u8]) {
        self.is_foreign |= !field.is_empty() && !FIELDS.contains(&field);
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

    fn end_of_event(&mut self) -> Option<SseEvent> {
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

/// Chunking must never change the events.
#[cfg(any(test, fuzzing))]
fn expect_same_events(stream: &[u8], chunks: &[&[u8]]) {
    let (whole, parser) = read(&[stream]);
    let (pieces, other) = read(chunks);
    // Only the size at which the limit was passed may depend on the chunks.
    let alike = |events: Vec<SseEvent>| -> Vec<Option<(String, Vec<u8>)>> {
        let alike = events.into_iter().map(|event| match event {
            SseEvent::Data { kind, data } => Some((kind, data)),
            SseEvent::TooLarge { .. } => None,
        });
        alike.collect()
    };
    assert_eq!(alike(whole), alike(pieces));
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
