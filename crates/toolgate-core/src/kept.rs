//! How much of a call is kept, wherever it is written down or shown: secrets out, and what is longer is cut and says so.

use serde_json::Value;

use crate::{Redactor, bounded, marked};

/// Bytes of arguments; the usual limit of what a caller may send is the same.
pub const ARGUMENTS: usize = 1 << 20;
/// Bytes of arguments in a list of calls.
pub const SHOWN: usize = 2048;
/// Bytes of a result.
pub const RESULT: usize = 256 << 10;
/// Bytes of a name. People read it with other programs, so it is escaped too.
const NAME: usize = 200;
/// Bytes of a text for people.
const TEXT: usize = 16 << 10;

/// A name that somebody made up: of a tool, of a caller.
///
/// ```
/// use toolgate_core::{Redactor, kept};
///
/// assert_eq!(kept::name(&Redactor::default(), "echo\u{1b}[2J"), "echo\\u{1b}[2J");
/// ```
pub fn name(redactor: &Redactor, name: &str) -> String {
    redactor.line(name, NAME)
}

/// A text for people: an error, what was heard.
///
/// ```
/// use toolgate_core::{Redactor, kept};
///
/// let long = kept::text(&Redactor::default(), &"x".repeat(20_000));
/// assert!(long.ends_with("… (3616 more bytes)"));
/// ```
pub fn text(redactor: &Redactor, text: &str) -> String {
    bounded(&redactor.text(text), TEXT)
}

/// A value; one of more than `longest` bytes as a text of its beginning, and true for that.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{Redactor, kept};
///
/// let (redactor, asked) = (Redactor::default(), json!({ "pin": 1234, "door": "front" }));
/// let whole = json!({ "pin": "[REDACTED]", "door": "front" });
/// assert_eq!(kept::value(&redactor, &asked, kept::SHOWN), (whole, false));
/// assert_eq!(kept::value(&redactor, &json!([1, 2, 3]), 3), (json!("[1,… (4 more bytes)"), true));
/// ```
pub fn value(redactor: &Redactor, value: &Value, longest: usize) -> (Value, bool) {
    match redactor.compact(value, longest) {
        (_, 0) => (redactor.value(value), false),
        (text, missing) => (marked(text, missing).into(), true),
    }
}

/// A value as JSON text: [`json`].
#[derive(Debug, PartialEq, Eq)]
pub struct Json {
    /// Of a value that is too long it is a JSON string of its beginning that says how much is missing.
    pub text: String,
    /// How long the whole is.
    pub bytes: u64,
    /// True if it is too long.
    pub is_cut: bool,
}

/// The same as JSON text.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{Redactor, kept};
///
/// let cut = kept::json(&Redactor::default(), &json!([1, 2, 3]), 3);
/// assert_eq!((cut.text.as_str(), cut.bytes), ("\"[1,… (4 more bytes)\"", 7));
/// ```
pub fn json(redactor: &Redactor, value: &Value, longest: usize) -> Json {
    let (text, missing) = redactor.compact(value, longest);
    let bytes = text.len() as u64 + missing;
    let is_cut = missing > 0;
    let text = if is_cut {
        Value::String(marked(text, missing)).to_string()
    } else {
        text
    };
    Json {
        text,
        bytes,
        is_cut,
    }
}

/// The length of a value as compact JSON, without making it.
///
/// ```
/// use toolgate_core::kept;
///
/// assert_eq!(kept::length(&serde_json::json!({ "a": [1, 2] })), 11);
/// ```
pub fn length(value: &Value) -> u64 {
    struct Count(u64);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting does not fail.
    drop(serde_json::to_writer(&mut count, value));
    count.0
}
