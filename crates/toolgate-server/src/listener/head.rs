//! A look at the head of a request as it arrives.

/// Finds out whether a head has both `Content-Length` and `Transfer-Encoding`. The parser drops one of the two without a
/// word; a proxy before us may have gone by the other, and then two requests are taken for one.
#[derive(Default)]
pub(super) struct Head {
    /// The start of the line at hand.
    line: [u8; LONGEST],
    length: usize,
    by_length: bool,
    by_chunks: bool,
    is_over: bool,
}

const LONGEST: usize = BY_CHUNKS.len();
const BY_LENGTH: &[u8] = b"content-length:";
const BY_CHUNKS: &[u8] = b"transfer-encoding:";

impl Head {
    /// More of it. What comes after the head is left alone.
    pub(super) fn read(&mut self, mut bytes: &[u8]) {
        while !self.is_over && !bytes.is_empty() {
            let end = memchr::memchr(b'\n', bytes);
            let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            let new = line.len().min(LONGEST - self.length);
            self.line[self.length..self.length + new].copy_from_slice(&line[..new]);
            self.length += new;
            bytes = rest.get(1..).unwrap_or_default();
            if end.is_some() {
                self.end_of_line();
            }
        }
    }

    pub(super) fn has_two_lengths(&self) -> bool {
        self.by_length && self.by_chunks
    }

    fn end_of_line(&mut self) {
        let line = &self.line[..self.length];
        let begins = |name: &[u8]| {
            line.get(..name.len())
                .is_some_and(|it| it.eq_ignore_ascii_case(name))
        };
        self.by_length |= begins(BY_LENGTH);
        self.by_chunks |= begins(BY_CHUNKS);
        self.is_over = line.is_empty() || line == b"\r";
        self.length = 0;
    }
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
                let mut seen = Head::default();
                head.as_bytes()
                    .chunks(piece)
                    .for_each(|bytes| seen.read(bytes));
                assert_eq!(
                    seen.has_two_lengths(),
                    both,
                    "{head:?} in pieces of {piece}"
                );
            }
        }
    }
}
