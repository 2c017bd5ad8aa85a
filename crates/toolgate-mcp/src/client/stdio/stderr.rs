//! Reads a server's stderr until it ends, and keeps the tail.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;
use toolgate_core::Redactor;
use toolgate_core::text::escape;

use crate::client::diagnostics::ServerDiagnostics;

// Bytes that are kept.
const MAX_KEPT: usize = 64 * 1024;
const SHOWN_LINES: usize = 20;
const SHOWN_BYTES: usize = 4096;
const CHUNK: usize = 64 * 1024;
const LOGGED_LINES: usize = 100;
const LOG_WINDOW: Duration = Duration::from_secs(1);

/// A ring buffer of the last bytes. Adding only copies, because a server may write gigabytes.
#[derive(Default)]
pub(crate) struct StderrBuffer {
    buffered: Mutex<BufferedBytes>,
}

#[derive(Default)]
struct BufferedBytes {
    bytes: VecDeque<u8>,
    is_truncated: bool,
}

impl StderrBuffer {
    fn add(&self, bytes: &[u8]) {
        let mut kept = self.buffered.lock();
        let last = &bytes[bytes.len().saturating_sub(MAX_KEPT)..];
        let superfluous = (kept.bytes.len() + bytes.len()).saturating_sub(MAX_KEPT);
        let dropped = superfluous.min(kept.bytes.len());
        kept.is_truncated |= superfluous > 0;
        kept.bytes.drain(..dropped);
        kept.bytes.extend(last);
    }

    /// Returns the last lines, redacted and escaped. If a line was overwritten with `\r`, only its
    /// final text is returned.
    pub(crate) fn tail(&self, redactor: &Redactor) -> Vec<String> {
        let bytes = self.whole_lines();
        let mut tail = VecDeque::new();
        let mut left = SHOWN_BYTES;
        for line in bytes.rsplit(|byte| *byte == b'\n') {
            let Some(line) = display_line(line, redactor) else {
                continue;
            };
            if tail.len() == SHOWN_LINES || (line.len() > left && !tail.is_empty()) {
                break;
            }
            left = left.saturating_sub(line.len());
            tail.push_front(line);
        }
        tail.into()
    }

    // Returns the bytes from the first whole line on. Without a line break near the start it skips
    // as much: a secret that was cut in half there could not be recognized and redacted.
    fn whole_lines(&self) -> Vec<u8> {
        let kept = self.buffered.lock();
        let bytes: Vec<u8> = kept.bytes.iter().copied().collect();
        if !kept.is_truncated {
            return bytes;
        }
        let near = &bytes[..SHOWN_BYTES.min(bytes.len())];
        let first = memchr::memchr(b'\n', near).map_or(near.len(), |end| end + 1);
        bytes[first..].to_vec()
    }
}

fn display_line(line: &[u8], redactor: &Redactor) -> Option<String> {
    let line = line.trim_ascii_end();
    let from = memchr::memrchr(b'\r', line).map_or(0, |at| at + 1);
    let line = String::from_utf8_lossy(&line[from..]);
    let mut text = escape(&redactor.text(&line));
    if text.len() > SHOWN_BYTES {
        let from = text.ceil_char_boundary(text.len() - SHOWN_BYTES);
        text.replace_range(..from, "…");
    }
    (!text.is_empty()).then_some(text)
}

pub(super) async fn drain(
    mut from: impl AsyncRead + Unpin,
    buffer: Arc<StderrBuffer>,
    diagnostics: Arc<ServerDiagnostics>,
) {
    let mut chunk = vec![0; CHUNK];
    let mut log = StderrLog::new(diagnostics);
    while let Ok(read @ 1..) = from.read(&mut chunk).await {
        buffer.add(&chunk[..read]);
        if tracing::enabled!(tracing::Level::DEBUG) {
            log.add(&chunk[..read]);
        }
    }
    log.add(b"\n");
}

// Logs complete lines. Beyond a limit they are only counted, because logging a flood would
// delay the server's messages.
struct StderrLog {
    diagnostics: Arc<ServerDiagnostics>,
    unfinished: Vec<u8>,
    since: Instant,
    lines: usize,
}

impl StderrLog {
    fn new(diagnostics: Arc<ServerDiagnostics>) -> Self {
        Self {
            diagnostics,
            unfinished: Vec::new(),
            since: Instant::now(),
            lines: 0,
        }
    }

    fn add(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            append_bounded(&mut self.unfinished, &bytes[..end]);
            bytes = &bytes[end + 1..];
            self.log_line();
            self.unfinished.clear();
        }
        append_bounded(&mut self.unfinished, bytes);
    }

    fn log_line(&mut self) {
        if self.since.elapsed() >= LOG_WINDOW {
            let left_out = self.lines.saturating_sub(LOGGED_LINES);
            if left_out > 0 {
                tracing::debug!(server = self.diagnostics.server(), left_out, "stderr");
            }
            (self.since, self.lines) = (Instant::now(), 0);
        }
        self.lines += 1;
        if self.lines <= LOGGED_LINES
            && let Some(line) = display_line(&self.unfinished, self.diagnostics.redactor())
        {
            tracing::debug!(server = self.diagnostics.server(), line, "stderr");
        }
    }
}

fn append_bounded(unfinished: &mut Vec<u8>, bytes: &[u8]) {
    let left = SHOWN_BYTES.saturating_sub(unfinished.len());
    unfinished.extend_from_slice(&bytes[..left.min(bytes.len())]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(chunks: &[&[u8]]) -> Vec<String> {
        let buffer = StderrBuffer::default();
        for chunk in chunks {
            buffer.add(chunk);
        }
        buffer.tail(&Redactor::new(["hunter2".to_owned()]))
    }

    #[test]
    fn the_tail_is_the_last_lines_fit_to_be_shown() {
        for (text, expected) in [
            ("", &[][..]),
            ("one\ntwo\r\n\nthree", &["one", "two", "three"]),
            ("10%\r50%\r100%\nok\n", &["100%", "ok"]),
            ("10%\r50%", &["50%"]),
            ("pass hunter2\n", &["pass [REDACTED]"]),
            ("\u{1b}[31mred\n", &["\\u{1b}[31mred"]),
        ] {
            assert_eq!(tail(&[text.as_bytes()]), expected, "{text:?}");
        }
        assert_eq!(tail(&[b"a\xffb\n"]), ["a\u{fffd}b"]);
        let endless = tail(&[&b"x".repeat(2 * MAX_KEPT), b"end\n"]);
        assert!(endless.len() == 1 && endless[0].starts_with("…x") && endless[0].ends_with("xend"));
        let many: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let shown = tail(&[many.as_bytes()]);
        assert_eq!(shown.len(), SHOWN_LINES);
        assert_eq!(shown.last().unwrap(), "line 99");
    }

    #[test]
    fn memory_and_tail_stay_bounded_with_and_without_newlines() {
        for line in [&b"x"[..], b"some text that ends\n", b"10%\r"] {
            let buffer = StderrBuffer::default();
            let chunk = line.repeat(100_000);
            for _ in 0..20 {
                buffer.add(&chunk);
                assert!(buffer.buffered.lock().bytes.len() <= MAX_KEPT);
            }
            let shown = buffer.tail(&Redactor::default());
            assert!(!shown.is_empty(), "{line:?}");
            assert!(shown.iter().map(String::len).sum::<usize>() < 2 * SHOWN_BYTES);
        }
    }

    #[test]
    fn half_a_secret_at_the_cut_is_not_shown() {
        let buffer = StderrBuffer::default();
        buffer.add(b"hunter2 and more\n");
        // Exactly so much that the front is cut in the middle of the secret.
        let filler = format!("{}\n", "x".repeat(MAX_KEPT - 15));
        buffer.add(filler.as_bytes());
        buffer.add(b"end");
        let shown = buffer.tail(&Redactor::new(["hunter2".to_owned()]));
        assert!(!shown.concat().contains("ter2"), "{shown:?}");
        assert_eq!(shown.last().unwrap(), "end");
    }
}
