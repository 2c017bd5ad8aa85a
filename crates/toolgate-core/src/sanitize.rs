//! Redacts and truncates the parts of a call that are stored or shown. A truncated value says
//! how much is missing.

use serde_json::Value;

use crate::Redactor;
use crate::text::{mark_truncated, truncate};

/// Maximum bytes of recorded arguments, as many as a caller may send by default.
pub const MAX_ARGUMENTS: usize = 1 << 20;
/// Maximum bytes of arguments in a list of calls.
pub const MAX_LISTED_ARGUMENTS: usize = 2048;
/// Maximum bytes of a recorded result.
pub const MAX_RESULT: usize = 256 << 10;
// Names are also escaped, because people read them with other programs.
const MAX_NAME: usize = 200;
const MAX_TEXT: usize = 16 << 10;

/// Sanitizes an untrusted name, such as that of a tool or caller. The result is one escaped line.
pub fn name(redactor: &Redactor, name: &str) -> String {
    redactor.line(name, MAX_NAME)
}

/// Sanitizes text for people, such as an error or a transcript. Line breaks stay.
pub fn text(redactor: &Redactor, text: &str) -> String {
    truncate(&redactor.text(text), MAX_TEXT)
}

/// Sanitizes a JSON value. A value longer than `max_bytes` becomes a string with its beginning. The
/// flag says whether it was truncated.
pub fn value(redactor: &Redactor, value: &Value, max_bytes: usize) -> (Value, bool) {
    match redactor.compact(value, max_bytes) {
        (_, 0) => (redactor.value(value), false),
        (text, missing) => (mark_truncated(text, missing).into(), true),
    }
}

/// The result of [`json`].
#[derive(Debug, PartialEq, Eq)]
pub struct SanitizedJson {
    /// The value as JSON. If it was too long, a JSON string with its beginning.
    pub text: String,
    /// Length of the whole value, approximately if it was truncated.
    pub bytes: u64,
    pub is_cut: bool,
}

/// Like [`value`](value()), but returns JSON text.
pub fn json(redactor: &Redactor, value: &Value, max_bytes: usize) -> SanitizedJson {
    let (text, missing) = redactor.compact(value, max_bytes);
    let bytes = text.len() as u64 + missing;
    let is_cut = missing > 0;
    let text = if is_cut {
        Value::String(mark_truncated(text, missing)).to_string()
    } else {
        text
    };
    SanitizedJson {
        text,
        bytes,
        is_cut,
    }
}

/// The length of a value as compact JSON in bytes, computed without writing it to memory.
pub fn length(value: &Value) -> u64 {
    struct ByteCounter(u64);
    impl std::io::Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = ByteCounter(0);
    // Counting never fails.
    drop(serde_json::to_writer(&mut count, value));
    count.0
}
