//! Long texts, kept as their beginning.

use super::escape;

/// A text of at most `longest` bytes; of a longer one the beginning, and how much is missing.
///
/// ```
/// assert_eq!(toolgate_core::bounded("short", 10), "short");
/// assert_eq!(toolgate_core::bounded("ééé", 3), "é… (4 more bytes)");
/// ```
pub fn bounded(text: &str, longest: usize) -> String {
    let shown = prefix(text, longest);
    match text.len() - shown.len() {
        0 => shown.to_owned(),
        missing => marked(shown.to_owned(), missing as u64),
    }
}

/// Says how much of a text is missing.
///
/// ```
/// assert_eq!(toolgate_core::marked("be".to_owned(), 7), "be… (7 more bytes)");
/// ```
pub fn marked(shown: String, missing: u64) -> String {
    shown + &format!("… ({missing} more bytes)")
}

/// Escaped, and cut after about `longest` bytes with the true size said.
pub(crate) fn cut(text: &str, longest: usize) -> String {
    let mut out = escape(prefix(text, longest));
    if text.len() > longest {
        out.push_str(&format!("… ({} bytes)", text.len()));
    }
    out
}

pub(crate) fn prefix(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}
