//! Server-sent events: chunks in, events out. Knows nothing of connections, so that every way to
//! cut a stream is tried in tests.
//!
//! Why not a crate: eventsource-stream panics on a byte-order mark and takes quadratic time, and
//! sse-stream doesn't bound the size of an event.

use std::time::Duration;

use bytes::Bytes;

use crate::lines::{Line, LineBuffer};

/// Longer ids are not kept: they have to fit into a header to be of use.
const LONGEST_ID: usize = 1024;
/// Of an event that is too large this much is kept, to see whose answer it was.
const HEAD: usize = 256;
const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

/// Something the stream said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseEvent {
    /// An event with data.
    Data {
        /// `message` unless the server named another.
        kind: String,
        /// Never empty.
        data: Vec<u8>,
    },
    /// An event beyond the limit; the rest of it is skipped.
    TooLarge {
        /// How many bytes it had when the limit was passed.
        bytes: u64,
        /// The beginning of its data.
        head: Vec<u8>,
    },
}

/// Reads one stream after the other: what was learned for taking it up again outlives each.
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
    /// Counts only once its event is complete.
    new_id: Option<Vec<u8>>,
    last_id: Option<Vec<u8>>,
    retry: Option<Duration>,
    skipping: bool,
    progress: bool,
    has_events: bool,
    is_foreign: bool,
}

impl SseParser {
    /// `limit`: bytes that one event may hold.
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

    /// A new stream begins, perhaps the continuation of the last: half an event is dropped, id and
    /// delay are kept.
    pub fn restart(&mut self) {
        let (last_id, retry) = (self.last_id.take(), self.retry);
        *self = Self {
            last_id,
            retry,
            ..Self::new(self.limit)
        };
    }

    /// The id of the last event that had one: the stream can be taken up again behind it.
    pub fn last_id(&self) -> Option<&[u8]> {
        self.last_id.as_deref()
    }

    /// How long the server wants us to wait before we come back.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Whether an event or an id came since this was last asked.
    pub fn take_progress(&mut self) -> bool {
        std::mem::take(&mut self.progress)
    }

    /// Whether there was no event yet, but a line that no stream of events has: whoever answers
    /// there speaks something else.
    pub fn is_foreign(&self) -> bool {
        self.is_foreign && !self.has_events
    }

    /// Takes in the next bytes.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.lines.feed(chunk);
    }

    /// The next event that is complete.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would seem to end where it only waits for more bytes"
    )]
    pub fn next(&mut self) -> Option<SseEvent> {
        loop {
            // All lines of an event count together.
            let data = self.data.as_ref().map_or(0, Vec::len);
            self.lines.set_limit(self.limit.saturating_sub(data));
            let event = match self.lines.next()? {
                Line::Whole(line) => self.end_of_line(&line),
                Line::Oversized { part, .. } => self.too_large(&part),
            };
            if event.is_some() {
                return event;
            }
        }
    }

    /// The event that is left when no more bytes come. Without the empty line behind it it may be
    /// cut off: the caller has to look whether its data is complete.
    pub fn finish(&mut self) -> Option<SseEvent> {
        if let Some(Line::Whole(line)) = self.lines.finish() {
            // A name that was cut off is not foreign yet.
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
            b"id" if value.len() <= LONGEST_ID && !value.contains(&0) => {
                self.new_id = Some(value.to_vec());
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let digits = std::str::from_utf8(value).unwrap_or_default();
                self.retry = Some(Duration::from_millis(digits.parse().unwrap_or(u64::MAX)));
            }
            // Comments have an empty name; what else there is must be ignored.
            _ => {}
        }
    }

    fn end_of_event(&mut self) -> Option<SseEvent> {
        self.skipping = false;
        let kind = std::mem::take(&mut self.kind);
        self.progress |= self.new_id.is_some() || self.data.is_some();
        if let Some(id) = self.new_id.take() {
            // An empty id takes the last one back.
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

/// A stream of server-sent events, as a fuzzer makes it up: the first byte says how it is cut.
#[cfg(any(test, fuzzing))]
pub fn fuzz(bytes: &[u8]) {
    let Some((cut, stream)) = bytes.split_first() else {
        return;
    };
    let chunks: Vec<&[u8]> = stream.chunks(usize::from(*cut).max(1)).collect();
    expect_same_events(stream, &chunks);
}

/// However a stream is cut, its events are the same.
#[cfg(any(test, fuzzing))]
fn expect_same_events(stream: &[u8], chunks: &[&[u8]]) {
    let (whole, parser) = read(&[stream]);
    let (pieces, other) = read(chunks);
    // How many bytes were seen when the limit was passed depends on the chunks, and nothing else.
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
