//! Lines out of a stream of bytes: bounded, and never copied while they are whole.

/// How much is asked for at a time: what a pipe holds.
const CHUNK: usize = 64 * 1024;

/// How much of both ends of a line is kept when the line itself is thrown away.
const END: usize = 1024;

/// What has arrived and was not yet handed out.
///
/// The reader fills [`space`](Self::space), then takes lines until there are none.
#[derive(Debug)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// Where the current line begins.
    start: usize,
    /// Up to here the current line is known to have no end.
    scanned: usize,
    limit: usize,
    thrown_away: Option<Ends>,
}

/// Something to handle.
#[derive(Debug, PartialEq)]
pub(super) enum Line<'a> {
    /// A line without its newline.
    Whole(&'a [u8]),
    /// The current line has passed the limit, and will be thrown away as it comes.
    TooLong { head: &'a [u8] },
    /// A line that was thrown away has come to its end.
    ThrownAway(Ends),
}

/// What is left of a line that was thrown away.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Ends {
    pub(super) head: Vec<u8>,
    pub(super) tail: Vec<u8>,
    pub(super) bytes: u64,
}

impl Lines {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            limit,
            thrown_away: None,
        }
    }

    /// Where the next bytes go: at the end of this buffer, which has room for a good many.
    pub(super) fn space(&mut self) -> &mut Vec<u8> {
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > 2 * CHUNK {
            self.buffer = Vec::new();
        }
        if self.buffer.capacity() - self.buffer.len() < CHUNK / 4 {
            // A long line doubles the buffer, so that its bytes are moved only a few times; never far beyond the limit.
            let more = self.buffer.len().clamp(CHUNK, self.limit.max(CHUNK));
            self.buffer.reserve_exact(more);
        }
        &mut self.buffer
    }

    /// The next thing that is complete.
    pub(super) fn next(&mut self) -> Option<Line<'_>> {
        let end = memchr::memchr(b'\n', &self.buffer[self.scanned..]).map(|at| self.scanned + at);
        let (from, upto) = (self.start, end.unwrap_or(self.buffer.len()));
        let next = end.map_or(upto, |end| end + 1);
        if let Some(ends) = &mut self.thrown_away {
            ends.add(&self.buffer[from..upto]);
            (self.start, self.scanned) = (next, next);
            end?;
            return self.thrown_away.take().map(Line::ThrownAway);
        }
        if upto - from > self.limit {
            let mut ends = Ends::default();
            ends.add(&self.buffer[from..upto]);
            // If its end is here already, it is found again in the next round.
            (self.start, self.scanned) = (upto, upto);
            let head = &self.buffer[from..from + END.min(upto - from)];
            self.thrown_away = Some(ends);
            return Some(Line::TooLong { head });
        }
        self.scanned = next;
        end?;
        self.start = next;
        Some(Line::Whole(&self.buffer[from..upto]))
    }

    /// What is left when no more will come.
    pub(super) fn last(&mut self) -> Option<Line<'_>> {
        if let Some(ends) = self.thrown_away.take() {
            return Some(Line::ThrownAway(ends));
        }
        let from = std::mem::replace(&mut self.start, self.buffer.len());
        self.scanned = self.start;
        (from < self.start).then(|| Line::Whole(&self.buffer[from..]))
    }
}

impl Ends {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let missing = END.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..missing]);
        let last = &bytes[bytes.len().saturating_sub(END)..];
        let superfluous = (self.tail.len() + last.len()).saturating_sub(END);
        self.tail.drain(..superfluous.min(self.tail.len()));
        self.tail.extend_from_slice(last);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, PartialEq)]
    enum Seen {
        Line(Vec<u8>),
        TooLong,
        Gone { bytes: u64, tail: Vec<u8> },
    }

    fn read(chunks: &[&[u8]], limit: usize) -> Vec<Seen> {
        let mut lines = Lines::new(limit);
        let mut seen = Vec::new();
        let owned = |line: Line<'_>| match line {
            Line::Whole(line) => Seen::Line(line.to_vec()),
            Line::TooLong { .. } => Seen::TooLong,
            Line::ThrownAway(ends) => Seen::Gone {
                bytes: ends.bytes,
                tail: ends.tail,
            },
        };
        for chunk in chunks {
            lines.space().extend_from_slice(chunk);
            while let Some(line) = lines.next() {
                seen.push(owned(line));
            }
        }
        seen.extend(lines.last().map(owned));
        seen
    }

    #[test]
    fn lines_come_out_whole_however_they_are_cut() {
        for chunks in [
            vec![&b"one\ntwo\r\n\nthr"[..], b"ee\nrest"],
            vec![b"o", b"ne", b"\n", b"two\r", b"\n", b"\nthree\n", b"rest"],
        ] {
            let lines: Vec<Seen> = [&b"one"[..], b"two\r", b"", b"three", b"rest"]
                .map(|line| Seen::Line(line.to_vec()))
                .into();
            assert_eq!(read(&chunks, 100), lines, "{chunks:?}");
        }
    }

    #[test]
    fn a_line_beyond_the_limit_is_thrown_away_and_said_at_once_and_at_its_end() {
        let long = [b'x'; 5000];
        let expected = |bytes: u64| Seen::Gone {
            bytes,
            tail: long[..END].to_vec(),
        };
        assert_eq!(
            read(&[b"a\n", &long, b"\nb\n"], 4096),
            [
                Seen::Line(b"a".to_vec()),
                Seen::TooLong,
                expected(5000),
                Seen::Line(b"b".to_vec())
            ]
        );
        let whole = [&long[..], b"\nb"].concat();
        assert_eq!(
            read(&[&whole], 4096),
            [Seen::TooLong, expected(5000), Seen::Line(b"b".to_vec())]
        );
        assert_eq!(
            read(&[&long, &long, &long], 4096),
            [Seen::TooLong, expected(15_000)]
        );
    }

    #[test]
    fn memory_stays_bounded_whatever_comes() {
        let limit = 1024 * 1024;
        let mut lines = Lines::new(limit);
        for _ in 0..200 {
            let space = lines.space();
            let room = space.capacity() - space.len();
            space.extend(std::iter::repeat_n(b'x', room));
            while lines.next().is_some() {}
            assert!(lines.buffer.capacity() <= 2 * limit + CHUNK);
        }
        lines.space().push(b'\n');
        assert!(matches!(lines.next(), Some(Line::ThrownAway(_))));
        lines.space();
        assert!(lines.buffer.capacity() <= 2 * CHUNK);
    }

    proptest! {
        #[test]
        fn chunks_make_no_difference(
            bytes in proptest::collection::vec(prop_oneof![2 => Just(b'\n'), 9 => any::<u8>()], 0..400),
            cuts in proptest::collection::vec(0usize..400, 0..12),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            let whole = read(&[&bytes], 30);
            let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
            let short = lines.iter().filter(|line| line.len() <= 30).count();
            let seen = whole.iter().filter(|seen| matches!(seen, Seen::Line(_))).count();
            // An empty rest at the very end is no line.
            prop_assert_eq!(seen, short - usize::from(bytes.is_empty() || bytes.ends_with(b"\n")));
            prop_assert_eq!(read(&chunks, 30), whole);
        }
    }
}
