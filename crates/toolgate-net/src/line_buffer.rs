//! [`LineBuffer`]: splits a byte stream into lines of bounded length. It does no I/O, so tests can
//! try every way to chunk a stream.

use bytes::{Buf, Bytes, BytesMut};

// An empty buffer that grew beyond this for a long line is freed.
const MAX_IDLE_BYTES: usize = 128 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Splits bytes into lines without copying them. Each byte is scanned once.
///
/// Read into [`spare_buffer`](Self::spare_buffer), or [`feed`](Self::feed) the bytes. Then call
/// [`next`](Self::next) until it returns `None`.
#[derive(Debug)]
pub struct LineBuffer {
    buffer: BytesMut,
    // The buffer has no line end before this position.
    scanned: usize,
    // The most the buffer has held since it was allocated.
    largest: usize,
    limit: usize,
    is_oversized: bool,
    is_text: bool,
    // The last line ended in CR, so a LF that follows doesn't end another one.
    after_cr: bool,
    at_start: bool,
}

/// A line from a [`LineBuffer`], or a piece of one that is too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BufferedLine {
    /// A line without its terminator.
    Whole(Bytes),
    /// A piece of a line that exceeds the limit, returned as it arrives and not kept in the buffer.
    Oversized {
        /// The next bytes of the line. The first piece is longer than the limit.
        part: Bytes,
        is_last: bool,
    },
}

impl LineBuffer {
    /// Creates a buffer for lines of at most `limit` bytes that end in LF.
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

    /// Like [`new`](Self::new), for lines that end in LF, CRLF or CR. A byte-order mark at the
    /// start of the stream is skipped.
    pub fn for_text(limit: usize) -> Self {
        Self {
            is_text: true,
            at_start: true,
            ..Self::new(limit)
        }
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Returns the buffer to read into, with room for about `chunk` more bytes.
    pub fn spare_buffer(&mut self, chunk: usize) -> &mut BytesMut {
        self.free_large_buffer();
        if self.buffer.capacity() - self.buffer.len() < chunk / 4 {
            // A long line doubles the buffer, so that its bytes are moved only a few times, but
            // never far beyond the limit.
            let more = self.buffer.len().clamp(chunk, self.limit.max(chunk));
            self.buffer.reserve(more);
        }
        &mut self.buffer
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.free_large_buffer();
        self.buffer.extend_from_slice(bytes);
    }

    fn free_large_buffer(&mut self) {
        if self.buffer.is_empty() && self.largest > MAX_IDLE_BYTES {
            self.buffer = BytesMut::new();
            self.largest = 0;
        }
    }

    /// Returns the next line, or the next piece of one that is too long. `None` if
    /// more bytes are needed.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would seem to end where it only waits for more bytes"
    )]
    pub fn next(&mut self) -> Option<BufferedLine> {
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
            return Some(self.end_line(line));
        }
        self.scanned = self.buffer.len();
        let is_oversized = self.is_oversized || self.scanned > self.limit;
        if !is_oversized || self.buffer.is_empty() {
            return None;
        }
        (self.is_oversized, self.scanned) = (true, 0);
        Some(BufferedLine::Oversized {
            part: std::mem::take(&mut self.buffer).freeze(),
            is_last: false,
        })
    }

    /// Ends the stream and returns what is left: the last line doesn't need a terminator.
    pub fn finish(&mut self) -> Option<BufferedLine> {
        let rest = self.buffer.split().freeze();
        self.scanned = 0;
        match self.end_line(rest) {
            BufferedLine::Whole(rest) if rest.is_empty() => None,
            line => Some(line),
        }
    }

    fn end_line(&mut self, mut bytes: Bytes) -> BufferedLine {
        let is_first = std::mem::take(&mut self.at_start);
        if std::mem::take(&mut self.is_oversized) || bytes.len() > self.limit {
            return BufferedLine::Oversized {
                part: bytes,
                is_last: true,
            };
        }
        if is_first && bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.advance(BYTE_ORDER_MARK.len());
        }
        BufferedLine::Whole(bytes)
    }
}

#[cfg(test)]
mod tests;
