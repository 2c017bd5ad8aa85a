//! Reads lines of limited length. A line that is too long is skipped except for its request id, so
//! that it can be answered with an error.

use std::io;

use bytes::Bytes;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};
use toolgate_net::{self as net, LineBuffer};

#[derive(Debug, PartialEq)]
pub(super) enum RequestLine {
    Whole(Bytes),
    // Holds the `id` of the JSON object on the line, if it has one.
    TooLong { id: Option<Value> },
}

/// Buffers what was read so far, so [`next`](Self::next) is cancel safe.
pub(super) struct RequestLines<R> {
    reader: R,
    lines: LineBuffer,
    // Set while a line that is too long is being skipped.
    skipping: Option<IdSearch>,
}

impl<R: AsyncRead + Unpin> RequestLines<R> {
    pub(super) fn new(reader: R, longest: usize) -> Self {
        Self {
            reader,
            lines: LineBuffer::new(longest),
            skipping: None,
        }
    }

    /// The next line, or `None` at the end. The last line needs no newline.
    pub(super) async fn next(&mut self) -> io::Result<Option<RequestLine>> {
        const CHUNK: usize = 16 * 1024;
        loop {
            while let Some(line) = self.lines.next() {
                if let Some(line) = self.handle_part(line) {
                    return Ok(Some(line));
                }
            }
            if self.reader.read_buf(self.lines.spare_buffer(CHUNK)).await? == 0 {
                let rest = self.lines.finish();
                return Ok(rest.and_then(|rest| self.handle_part(rest)));
            }
        }
    }

    fn handle_part(&mut self, line: net::BufferedLine) -> Option<RequestLine> {
        match line {
            net::BufferedLine::Whole(line) => Some(RequestLine::Whole(line)),
            net::BufferedLine::Oversized { part, is_last } => {
                let mut search = self.skipping.take().unwrap_or_default();
                search.read(&part);
                if is_last {
                    return Some(RequestLine::TooLong { id: search.id });
                }
                self.skipping = Some(search);
                None
            }
        }
    }
}

pub(super) fn find_id(line: &[u8]) -> Option<Value> {
    let mut search = IdSearch::default();
    search.read(line);
    search.id
}

// Finds the `id` of a JSON object that arrives in pieces. It has to look at the whole line, because
// some clients write the id last, after all parameters.
#[derive(Default)]
struct IdSearch {
    depth: usize,
    in_string: bool,
    escaped: bool,
    in_value: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    id: Option<Value>,
}

impl IdSearch {
    fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.step(*byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            self.in_string = self.escaped || byte != b'"';
            self.escaped = byte == b'\\' && !self.escaped;
            return self.keep(byte);
        }
        match byte {
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.finish_member();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.finish_member(),
            b':' if self.depth == 1 => self.in_value = true,
            _ => {
                self.in_string = byte == b'"';
                self.keep(byte);
            }
        }
    }

    fn keep(&mut self, byte: u8) {
        // Longer than any id in use.
        const MAX_ID_BYTES: usize = 256;
        let token = if self.in_value {
            &mut self.value
        } else {
            &mut self.key
        };
        if self.depth == 1 && token.len() < MAX_ID_BYTES {
            token.push(byte);
        }
    }

    fn finish_member(&mut self) {
        if self.depth != 1 {
            return;
        }
        if self.key.trim_ascii() == br#""id""# {
            self.id = serde_json::from_slice(&self.value).ok();
        }
        self.in_value = false;
        self.key.clear();
        self.value.clear();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn lines(text: &[u8], piece: usize, longest: usize) -> Vec<RequestLine> {
        let (mut writer, reader) = tokio::io::duplex(piece);
        let text = text.to_vec();
        let writing = tokio::spawn(async move {
            tokio::io::AsyncWriteExt::write_all(&mut writer, &text)
                .await
                .unwrap();
        });
        let mut lines = RequestLines::new(reader, longest);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            all.push(line);
        }
        writing.await.unwrap();
        all
    }

    #[tokio::test]
    async fn lines_are_reassembled_from_pieces() {
        let whole = |text: &'static [u8]| RequestLine::Whole(Bytes::from_static(text));
        for piece in [1, 3, 1024] {
            let read = lines(b"one\n\ntwo\r\n\xff\nlast", piece, 8).await;
            let expected = [&b"one"[..], b"", b"two\r", b"\xff", b"last"].map(whole);
            assert_eq!(read, expected, "pieces of {piece}");
        }
    }

    #[tokio::test]
    async fn the_id_of_an_oversized_line_is_found() {
        let filler = "x".repeat(100);
        for (text, id) in [
            (format!(r#"{{"id":7,"p":"{filler}"}}"#), Some(json!(7))),
            (
                format!(r#"{{"p":{{"id":1,"q":["{filler}"]}} , "id" : "a\"b" }}"#),
                Some(json!("a\"b")),
            ),
            (
                format!(r#"{{"p":"\"id\":3,{filler}","id":4}}"#),
                Some(json!(4)),
            ),
            (format!(r#"{{"p":"{filler}"}}"#), None),
            (format!(r#"{{"id":{{"a":1}},"p":"{filler}"}}"#), None),
            (format!("{filler} no JSON at all"), None),
            ("[".repeat(200), None),
            (format!("}}}}}}{filler}"), None),
        ] {
            for piece in [1, 7, 1024] {
                let read = lines(format!("{text}\nnext\n").as_bytes(), piece, 64).await;
                let expected = [
                    RequestLine::TooLong { id: id.clone() },
                    RequestLine::Whole(Bytes::from_static(b"next")),
                ];
                assert_eq!(read, expected, "{text} in pieces of {piece}");
            }
        }
    }

    #[tokio::test]
    async fn a_dropped_read_loses_nothing() {
        use tokio::io::AsyncWriteExt;
        let (mut writer, reader) = tokio::io::duplex(64);
        let mut lines = RequestLines::new(reader, 64);
        writer.write_all(b"first ").await.unwrap();
        tokio::select! {
            biased;
            _ = lines.next() => panic!("the line is not over"),
            () = tokio::task::yield_now() => {}
        }
        writer.write_all(b"half\n").await.unwrap();
        let line = lines.next().await.unwrap().unwrap();
        assert_eq!(line, RequestLine::Whole(Bytes::from_static(b"first half")));
    }
}
