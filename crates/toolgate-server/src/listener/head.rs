//! A look at the heads of requests as they arrive.

/// Finds out whether a head has both `Content-Length` and `Transfer-Encoding`. The parser drops one of the two without a
/// word; a proxy before us may have gone by the other, and then two requests are taken for one.
///
/// It follows one request after the other, also those that are sent before the last one is answered. Behind a body in chunks it
/// does not know where the next head begins.
#[derive(Default)]
pub(super) struct Heads {
    at: At,
    count: u64,
    two_lengths: bool,
    bare_newline: bool,
}

enum At {
    Head(Head),
    /// Bytes of the body that are still to come.
    Body(u64),
    Unknown,
}

impl Default for At {
    fn default() -> Self {
        Self::Head(Head::default())
    }
}

#[derive(Default)]
struct Head {
    /// The start of the line at hand.
    line: [u8; LONGEST],
    length: usize,
    has_begun: bool,
    last: u8,
    bare_newline: bool,
    by_length: Option<Length>,
    by_chunks: bool,
}

/// What a `Content-Length` says.
#[derive(Debug, Clone, Copy)]
enum Length {
    Bytes(u64),
    Unclear,
}

/// Room for a name and a number.
const LONGEST: usize = 32;
const BY_LENGTH: &[u8] = b"content-length:";
const BY_CHUNKS: &[u8] = b"transfer-encoding:";

impl Heads {
    pub(super) fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let used = match &mut self.at {
                At::Unknown => return,
                At::Body(left) => {
                    let used =
                        usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                    *left -= used as u64;
                    if *left == 0 {
                        self.at = At::default();
                    }
                    used
                }
                At::Head(head) => {
                    let (used, is_over) = head.read(bytes);
                    self.bare_newline |= head.bare_newline;
                    if is_over {
                        self.count += 1;
                        self.two_lengths |= head.by_chunks && head.by_length.is_some();
                        self.at = head.next();
                    }
                    used
                }
            };
            bytes = &bytes[used..];
        }
    }

    /// How many were seen from their beginning to their end.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// True once a line of one of them ended without a carriage return.
    pub(super) fn has_bare_newline(&self) -> bool {
        self.bare_newline
    }

    /// True once one of them has both lengths.
    pub(super) fn has_two_lengths(&self) -> bool {
        self.two_lengths
    }
}

impl Head {
    /// How much of the bytes is its own, and whether it ends with them.
    fn read(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while let Some(end) = memchr::memchr(b'\n', &bytes[at..]) {
            self.add(&bytes[at..at + end]);
            self.bare_newline |= self.last != b'\r';
            at += end + 1;
            if self.end_of_line() {
                return (at, true);
            }
        }
        self.add(&bytes[at..]);
        (bytes.len(), false)
    }

    fn add(&mut self, line: &[u8]) {
        let new = line.len().min(LONGEST - self.length);
        self.line[self.length..self.length + new].copy_from_slice(&line[..new]);
        self.length += new;
        self.last = line.last().copied().unwrap_or(self.last);
    }

    /// True if it was the last. Empty lines before the first are passed over, as the parser does.
    fn end_of_line(&mut self) -> bool {
        let line = &self.line[..self.length];
        let is_whole = self.length < LONGEST;
        let after = |name: &[u8]| {
            let (start, rest) = line.split_at_checked(name.len())?;
            start.eq_ignore_ascii_case(name).then_some(rest)
        };
        let is_empty = line.is_empty() || line == b"\r";
        if let Some(value) = after(BY_LENGTH) {
            let value = str::from_utf8(value.trim_ascii()).unwrap_or("");
            let bytes = value.parse().ok().filter(|_| is_whole);
            self.by_length = Some(bytes.map_or(Length::Unclear, Length::Bytes));
        }
        self.by_chunks |= after(BY_CHUNKS).is_some();
        self.length = 0;
        self.last = 0;
        let is_over = is_empty && self.has_begun;
        self.has_begun |= !is_empty;
        is_over
    }

    fn next(&self) -> At {
        match self.by_length {
            _ if self.by_chunks => At::Unknown,
            Some(Length::Unclear) => At::Unknown,
            None | Some(Length::Bytes(0)) => At::default(),
            Some(Length::Bytes(bytes)) => At::Body(bytes),
        }
    }
}

/// What is seen of these bytes when they arrive in pieces of this size: how many heads, and whether
/// one of them has both lengths.
#[cfg(any(test, fuzzing))]
pub(crate) fn seen_in_pieces(bytes: &[u8], piece: usize) -> (u64, bool) {
    let mut heads = Heads::default();
    bytes.chunks(piece).for_each(|bytes| heads.read(bytes));
    (heads.count(), heads.has_two_lengths())
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
                let (_, found) = seen_in_pieces(head.as_bytes(), piece);
                assert_eq!(found, both, "{head:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn every_head_is_found_until_a_body_in_chunks() {
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
                let seen = seen_in_pieces(sent.as_bytes(), piece);
                assert_eq!(seen, (count, two_lengths), "{sent:?}");
            }
        }
    }
}
