//! Scans the heads of requests as they arrive.

/// Finds heads with both `Content-Length` and `Transfer-Encoding`. Hyper silently drops one of
/// them. A proxy in front may have used the other, and then the two see different requests.
///
/// The scanner follows pipelined requests too, but after a chunked body it doesn't know where
/// the next head begins.
#[derive(Default)]
pub(super) struct HeadScanner {
    position: ScanPosition,
    // Heads that were scanned completely.
    pub(super) count: u64,
    // A head had both lengths.
    pub(super) two_lengths: bool,
    // A line of a head ended without a carriage return.
    pub(super) bare_newline: bool,
}

enum ScanPosition {
    Head(HeadParser),
    // How many bytes of the body are still to come.
    Body(u64),
    Unknown,
}

impl Default for ScanPosition {
    fn default() -> Self {
        Self::Head(HeadParser::default())
    }
}

#[derive(Default)]
struct HeadParser {
    // The beginning of the current line.
    line: [u8; MAX_LINE_BYTES],
    length: usize,
    has_begun: bool,
    last: u8,
    bare_newline: bool,
    content_length: Option<ContentLength>,
    is_chunked: bool,
}

#[derive(Debug, Clone, Copy)]
enum ContentLength {
    Bytes(u64),
    Unclear,
}

// Enough for a header's name and a number.
const MAX_LINE_BYTES: usize = 32;
const CONTENT_LENGTH: &[u8] = b"content-length:";
const TRANSFER_ENCODING: &[u8] = b"transfer-encoding:";

impl HeadScanner {
    pub(super) fn scan(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let used = match &mut self.position {
                ScanPosition::Unknown => return,
                ScanPosition::Body(left) => {
                    let used =
                        usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                    *left -= used as u64;
                    if *left == 0 {
                        self.position = ScanPosition::default();
                    }
                    used
                }
                ScanPosition::Head(head) => {
                    let (used, is_over) = head.read(bytes);
                    self.bare_newline |= head.bare_newline;
                    if is_over {
                        self.count += 1;
                        self.two_lengths |= head.is_chunked && head.content_length.is_some();
                        self.position = head.position_after();
                    }
                    used
                }
            };
            bytes = &bytes[used..];
        }
    }
}

impl HeadParser {
    /// Returns how many of the bytes belong to the head, and whether it ends with them.
    fn read(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while let Some(end) = memchr::memchr(b'\n', &bytes[at..]) {
            self.add_to_line(&bytes[at..at + end]);
            self.bare_newline |= self.last != b'\r';
            at += end + 1;
            if self.end_line() {
                return (at, true);
            }
        }
        self.add_to_line(&bytes[at..]);
        (bytes.len(), false)
    }

    fn add_to_line(&mut self, line: &[u8]) {
        let new = line.len().min(MAX_LINE_BYTES - self.length);
        self.line[self.length..self.length + new].copy_from_slice(&line[..new]);
        self.length += new;
        self.last = line.last().copied().unwrap_or(self.last);
    }

    /// True if it was the last line. Skips empty lines before the first, like the parser does.
    fn end_line(&mut self) -> bool {
        let line = &self.line[..self.length];
        let is_whole = self.length < MAX_LINE_BYTES;
        let after = |name: &[u8]| {
            let (start, rest) = line.split_at_checked(name.len())?;
            start.eq_ignore_ascii_case(name).then_some(rest)
        };
        let is_empty = line.is_empty() || line == b"\r";
        if let Some(value) = after(CONTENT_LENGTH) {
            let value = str::from_utf8(value.trim_ascii()).unwrap_or("");
            let bytes = value.parse().ok().filter(|_| is_whole);
            self.content_length = Some(bytes.map_or(ContentLength::Unclear, ContentLength::Bytes));
        }
        self.is_chunked |= after(TRANSFER_ENCODING).is_some();
        self.length = 0;
        self.last = 0;
        let is_over = is_empty && self.has_begun;
        self.has_begun |= !is_empty;
        is_over
    }

    fn position_after(&self) -> ScanPosition {
        match self.content_length {
            _ if self.is_chunked => ScanPosition::Unknown,
            Some(ContentLength::Unclear) => ScanPosition::Unknown,
            None | Some(ContentLength::Bytes(0)) => ScanPosition::default(),
            Some(ContentLength::Bytes(bytes)) => ScanPosition::Body(bytes),
        }
    }
}

// Returns the number of heads found in pieces of this size, and whether one of
// them has both lengths.
#[cfg(any(test, fuzzing))]
pub(crate) fn scan_in_pieces(bytes: &[u8], piece: usize) -> (u64, bool) {
    let mut heads = HeadScanner::default();
    bytes.chunks(piece).for_each(|bytes| heads.scan(bytes));
    (heads.count, heads.two_lengths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lengths_are_found_however_the_head_arrives() {
        let table = [
            (
                "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                true,
            ),
            (
                "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\nHost: x\r\nCONTENT-LENGTH: 1\r\n\r\n",
                true,
            ),
            (
                "POST / HTTP/1.1\nContent-Length: 1\nTransfer-Encoding:chunked\n\n",
                true,
            ),
            (
                "POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nTransfer-Encoding: chunked\r\n",
                false,
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                false,
            ),
            (
                "POST / HTTP/1.1\r\nContent-Length: 1\r\nX-Transfer-Encoding: chunked\r\n\r\n",
                false,
            ),
            (
                "POST / HTTP/1.1\r\nX: Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                false,
            ),
        ];
        for (head, both) in table {
            for piece in 1..head.len() {
                let (_, found) = scan_in_pieces(head.as_bytes(), piece);
                assert_eq!(found, both, "{head:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn every_head_is_found_up_to_a_chunked_body() {
        let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        let post = "POST / HTTP/1.1\r\ncontent-length: 20\r\n\r\nhello\r\n\r\nhello\r\n\r\n..";
        let both = "POST / HTTP/1.1\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunks = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        let padded = format!(
            "POST / HTTP/1.1\r\ncontent-length:{}1\r\n\r\nx",
            " ".repeat(90)
        );
        for (sent, count, two_lengths) in [
            (format!("{get}{post}{get}"), 3, false),
            (format!("{post}{post}{both}"), 3, true),
            (format!("\r\n\n{both}"), 1, true),
            (format!("{get}\r\n{both}"), 2, true),
            (format!("{chunks}{get}{both}"), 1, false),
            (format!("{padded}{get}"), 1, false),
        ] {
            for piece in [1, 2, 3, 7, 1000] {
                let seen = scan_in_pieces(sent.as_bytes(), piece);
                assert_eq!(seen, (count, two_lengths), "{sent:?}");
            }
        }
    }
}
