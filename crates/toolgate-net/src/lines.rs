//! Lines of bounded length out of a stream of bytes. Knows nothing of where the bytes come from, so
//! that every way to cut a stream can be tried in tests.

use bytes::{Buf, Bytes, BytesMut};

/// A buffer that grew beyond this for one line isn't kept for the next.
const SPARE: usize = 128 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes in, lines out, without copying them once they are in. Each byte is looked at once.
///
/// Fill [`space`](Self::space) or [`feed`](Self::feed), then take lines until there are none.
///
/// ```
/// use toolgate_net::{Line, LineBuffer};
///
/// let mut lines = LineBuffer::new(1024);
/// lines.feed(b"one\nt");
/// assert_eq!(lines.next(), Some(Line::Whole("one".into())));
/// assert_eq!(lines.next(), None);
/// assert_eq!(lines.finish(), Some(Line::Whole("t".into())));
/// ```
#[derive(Debug)]
pub struct LineBuffer {
    buffer: BytesMut,
    /// Up to here the buffer is known to have no end of a line.
    scanned: usize,
    /// The most the buffer has held since it was allocated.
    largest: usize,
    limit: usize,
    is_oversized: bool,
    is_text: bool,
    /// A CR ended the last line: a LF after it ends no second one.
    after_cr: bool,
    at_start: bool,
}

/// What a [`LineBuffer`] has to hand out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line without its end.
    Whole(Bytes),
    /// A piece of a line beyond the limit, as it arrives; it isn't kept.
    Oversized {
        /// The next bytes of the line. The first piece is longer than the limit.
        part: Bytes,
        /// Whether the line ends here.
        is_last: bool,
    },
}

impl LineBuffer {
    /// Lines that end in LF and have at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            largest: 0,
            limit,
            is_oversized: false,
            is_text: false,
            after_cr: false,
            at_start: false,
        }
    }

    /// Lines that end in LF, CRLF or CR. A byte-order mark before the first isn't part of it.
    pub fn text(limit: usize) -> Self {
        Self {
            is_text: true,
            at_start: true,
            ..Self::new(limit)
        }
    }

    /// From now on lines have at most `limit` bytes.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Where a reader appends the next bytes. There is room for about `chunk` of them.
    pub fn space(&mut self, chunk: usize) -> &mut BytesMut {
        self.release();
        if self.buffer.capacity() - self.buffer.len() < chunk / 4 {
            // A long line doubles the buffer, so that its bytes are moved only a few times; never
            // far beyond the limit.
            let more = self.buffer.len().clamp(chunk, self.limit.max(chunk));
            self.buffer.reserve(more);
        }
        &mut self.buffer
    }

    /// Takes in the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.release();
        self.buffer.extend_from_slice(bytes);
    }

    fn release(&mut self) {
        if self.buffer.is_empty() && self.largest > SPARE {
            self.buffer = BytesMut::new();
            self.largest = 0;
        }
    }

    /// The next line, or the next piece of one that is too long.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would seem to end where it only waits for more bytes"
    )]
    pub fn next(&mut self) -> Option<Line> {
        if self.after_cr && !self.buffer.is_empty() {
            self.after_cr = false;
            if self.buffer[0] == b'\n' {
                self.buffer.advance(1);
            }
        }
        self.largest = self.largest.max(self.buffer.len());
        let unscanned = &self.buffer[self.scanned..];
        let end = match self.is_text {
            true => memchr::memchr2(b'\n', b'\r', unscanned),
            false => memchr::memchr(b'\n', unscanned),
        };
        if let Some(end) = end {
            let line = self.buffer.split_to(self.scanned + end).freeze();
            self.after_cr = self.buffer[0] == b'\r';
            self.buffer.advance(1);
            self.scanned = 0;
            return Some(self.line(line));
        }
        self.scanned = self.buffer.len();
        let is_oversized = self.is_oversized || self.scanned > self.limit;
        if !is_oversized || self.buffer.is_empty() {
            return None;
        }
        (self.is_oversized, self.scanned) = (true, 0);
        Some(Line::Oversized {
            part: std::mem::take(&mut self.buffer).freeze(),
            is_last: false,
        })
    }

    /// What is left when no more bytes come: a last line doesn't need an end.
    pub fn finish(&mut self) -> Option<Line> {
        let rest = self.buffer.split().freeze();
        self.scanned = 0;
        match self.line(rest) {
            Line::Whole(rest) if rest.is_empty() => None,
            line => Some(line),
        }
    }

    fn line(&mut self, mut bytes: Bytes) -> Line {
        let is_first = std::mem::take(&mut self.at_start);
        if std::mem::take(&mut self.is_oversized) || bytes.len() > self.limit {
            return Line::Oversized {
                part: bytes,
                is_last: true,
            };
        }
        if is_first && bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.advance(BYTE_ORDER_MARK.len());
        }
        Line::Whole(bytes)
    }
}

#[cfg(test)]
mod tests;
