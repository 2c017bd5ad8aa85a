//! Server-sent events: chunks in, events out. Knows nothing of connections, so that every way to cut a stream is tried in tests.

use std::collections::VecDeque;
use std::time::Duration;

/// Longer ids are not kept: they have to fit into a header to be of use.
const LONGEST_ID: usize = 1024;
/// Of an event that is too large this much is kept, to see whose answer it was.
const HEAD: usize = 256;
/// A buffer that grew beyond this for one event is not kept for the next.
const SPARE: usize = 64 << 10;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Something the stream said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// An event with data. Its kind is `message` unless the server named another.
    Data { kind: String, data: Vec<u8> },
    /// An event beyond the limit; the rest of it is skipped. With the beginning of its data.
    TooLarge { bytes: u64, head: Vec<u8> },
}

/// Reads one stream after the other: what was learned for taking it up again outlives each.
pub(super) struct Parser {
    limit: usize,
    /// The line that is being read.
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    kind: String,
    /// Counts only once its event is complete.
    new_id: Option<Vec<u8>>,
    last_id: Option<Vec<u8>>,
    retry: Option<Duration>,
    /// The last byte was a CR: a LF after it ends no second line.
    after_cr: bool,
    at_start: bool,
    skipping: bool,
    progress: bool,
    ready: VecDeque<Event>,
}

impl Parser {
    /// `limit`: bytes that one event may hold.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            data: None,
            kind: String::new(),
            new_id: None,
            last_id: None,
            retry: None,
            after_cr: false,
            at_start: true,
            skipping: false,
            progress: false,
            ready: VecDeque::new(),
        }
    }

    /// A new stream begins, perhaps the continuation of the last: half an event is dropped, id and delay are kept.
    pub(super) fn restart(&mut self) {
        let (last_id, retry) = (self.last_id.take(), self.retry);
        *self = Self {
            last_id,
            retry,
            ..Self::new(self.limit)
        };
    }

    /// The id of the last event that had one: the stream can be taken up again behind it.
    pub(super) fn last_id(&self) -> Option<&[u8]> {
        self.last_id.as_deref()
    }

    /// How long the server wants us to wait before we come back.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Whether an event or an id came since this was last asked.
    pub(super) fn take_progress(&mut self) -> bool {
        std::mem::take(&mut self.progress)
    }

    /// The next complete event.
    pub(super) fn next(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    /// Takes in the next bytes. Each is looked at once.
    pub(super) fn feed(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() {
            if std::mem::take(&mut self.after_cr) && chunk[0] == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            let Some(end) = chunk.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.grow(chunk);
                return;
            };
            self.grow(&chunk[..end]);
            self.after_cr = chunk[end] == b'\r';
            chunk = &chunk[end + 1..];
            let mut line = std::mem::take(&mut self.line);
            self.end_of_line(&line);
            if line.capacity() <= SPARE {
                line.clear();
                self.line = line;
            }
        }
    }

    fn grow(&mut self, part: &[u8]) {
        if self.skipping {
            // Only whether the line is empty matters now.
            if self.line.is_empty() {
                self.line.extend(part.first());
            }
            return;
        }
        self.line.extend_from_slice(part);
        let data = self.data.as_ref().map_or(0, Vec::len);
        let bytes = data + self.line.len();
        if bytes > self.limit {
            let data = self.data.take().unwrap_or_else(|| {
                let colon = self.line.iter().position(|byte| *byte == b':');
                self.line.split_off(colon.map_or(0, |at| at + 1))
            });
            self.ready.push_back(Event::TooLarge {
                bytes: bytes as u64,
                head: data[..data.len().min(HEAD)].to_vec(),
            });
            self.line = vec![b'x'];
            self.skipping = true;
        }
    }

    fn end_of_line(&mut self, line: &[u8]) {
        let line = match std::mem::take(&mut self.at_start) {
            true => line.strip_prefix(BOM).unwrap_or(line),
            false => line,
        };
        if line.is_empty() {
            return self.end_of_event();
        }
        if self.skipping {
            return;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        self.field(field, value.strip_prefix(b" ").unwrap_or(value));
    }

    fn field(&mut self, field: &[u8], value: &[u8]) {
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

    fn end_of_event(&mut self) {
        self.skipping = false;
        let kind = std::mem::take(&mut self.kind);
        self.progress |= self.new_id.is_some() || self.data.is_some();
        if let Some(id) = self.new_id.take() {
            // An empty id takes the last one back.
            self.last_id = (!id.is_empty()).then_some(id);
        }
        if let Some(data) = self.data.take().filter(|data| !data.is_empty()) {
            let kind = if kind.is_empty() {
                "message".to_owned()
            } else {
                kind
            };
            self.ready.push_back(Event::Data { kind, data });
        }
    }
}

/// However a stream is cut, its events are the same.
#[cfg(any(test, fuzzing))]
pub(crate) fn expect_same_events(stream: &[u8], chunks: &[&[u8]]) {
    let (whole, parser) = read(&[stream]);
    let (pieces, other) = read(chunks);
    // How many bytes were seen when the limit was passed depends on the chunks, and nothing else.
    let alike = |events: Vec<Event>| -> Vec<Option<(String, Vec<u8>)>> {
        let alike = events.into_iter().map(|event| match event {
            Event::Data { kind, data } => Some((kind, data)),
            Event::TooLarge { .. } => None,
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
fn read(chunks: &[&[u8]]) -> (Vec<Event>, Parser) {
    let mut parser = Parser::new(LIMIT);
    let mut events = Vec::new();
    for chunk in chunks {
        parser.feed(chunk);
        events.extend(std::iter::from_fn(|| parser.next()));
    }
    (events, parser)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn data(kind: &str, data: &str) -> Event {
        Event::Data {
            kind: kind.to_owned(),
            data: data.into(),
        }
    }

    #[test]
    fn streams_become_events() {
        let message = |text| vec![data("message", text)];
        let cases: &[(&str, Vec<Event>)] = &[
            ("", vec![]),
            ("data: a\n\n", message("a")),
            ("data:a\r\n\r\n", message("a")),
            ("data: a\r\r", message("a")),
            ("data: a\n\r", message("a")),
            ("\u{feff}data: a\n\n", message("a")),
            ("data:  a\n\n", message(" a")),
            ("data: a\ndata: b\n\n", message("a\nb")),
            ("data\ndata\n\n", message("\n")),
            (": hello\n\n:\ndata: a\n: b\n\n", message("a")),
            (
                "event: endpoint\ndata: /x\n\n",
                vec![data("endpoint", "/x")],
            ),
            ("event: x\n\ndata: a\n\n", message("a")),
            ("unknown: x\nDATA: y\ndata: a\n\n", message("a")),
            ("id: 1\ndata: \n\n", vec![]),
            ("data: unfinished\n", vec![]),
            ("\n\n\n", vec![]),
        ];
        for (text, expected) in cases {
            assert_eq!(&read(&[text.as_bytes()]).0, expected, "{text:?}");
        }
    }

    #[test]
    fn ids_and_delays_are_kept_for_coming_back() {
        let cases: &[(&str, Option<&str>, Option<u64>)] = &[
            ("id: 7\nretry: 500\ndata:\n\n", Some("7"), Some(500)),
            ("id: 7\n\n", Some("7"), None),
            ("id: 7\ndata: cut off in the middle\n", None, None),
            ("id: 7\n\nid\n\n", None, None),
            ("id: 7\n\nid: \0\n\n", Some("7"), None),
            ("retry: soon\nretry: -1\nretry:\n\n", None, None),
            ("retry: 99999999999999999999999\n\n", None, Some(u64::MAX)),
        ];
        for (text, id, retry) in cases {
            let (_, mut parser) = read(&[text.as_bytes()]);
            for _ in 0..2 {
                assert_eq!(parser.last_id(), id.map(str::as_bytes), "{text:?}");
                assert_eq!(parser.retry(), retry.map(Duration::from_millis), "{text:?}");
                parser.restart();
            }
        }
        let long = format!("id: {}\n\n", "x".repeat(LONGEST_ID + 1));
        let mut parser = Parser::new(1 << 20);
        parser.feed(long.as_bytes());
        assert_eq!(parser.last_id(), None);
    }

    #[test]
    fn half_an_event_is_not_glued_to_the_next_stream() {
        let mut parser = Parser::new(LIMIT);
        parser.feed(b"data: half");
        parser.restart();
        parser.feed(b"data: whole\n\n");
        assert_eq!(parser.next(), Some(data("message", "whole")));
        assert_eq!(parser.next(), None);
    }

    #[test]
    fn an_event_that_is_too_large_is_told_at_once_and_skipped() {
        let mut parser = Parser::new(LIMIT);
        parser.feed(b"data: {\"id\":7,");
        parser.feed(&[b'x'; LIMIT]);
        let Some(Event::TooLarge { bytes, head }) = parser.next() else {
            panic!("nothing was told");
        };
        assert!(bytes > LIMIT as u64);
        assert!(head.starts_with(b" {\"id\":7,"), "{head:?}");
        for _ in 0..1000 {
            parser.feed(&[b'x'; 1000]);
        }
        assert!(parser.line.capacity() < 100_000);
        parser.feed(b"\ndata: more of it\n\ndata: next\n\n");
        assert_eq!(parser.next(), Some(data("message", "next")));
        assert_eq!(parser.next(), None);
    }

    #[test]
    fn many_short_lines_count_together_and_comments_do_not() {
        let (events, _) = read(&["data: 0123456789\n".repeat(10).as_bytes()]);
        assert!(
            matches!(&events[..], [Event::TooLarge { .. }]),
            "{events:?}"
        );
        let (events, _) = read(&[": 0123456789\n".repeat(1000).as_bytes(), b"data: a\n\n"]);
        assert_eq!(events, [data("message", "a")]);
    }

    proptest! {
        #[test]
        fn how_a_stream_is_cut_into_chunks_does_not_matter(
            lines in prop::collection::vec("(data|event|id|retry|:|x)?(:| |: )?[a-c0-9 \u{e4}]{0,20}(\n|\r|\r\n|\n\n|\r\n\r\n|\r\r)", 0..30),
            cuts in prop::collection::vec(0usize..700, 0..20),
        ) {
            let text = lines.concat();
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            expect_same_events(bytes, &chunks);
        }
    }
}
