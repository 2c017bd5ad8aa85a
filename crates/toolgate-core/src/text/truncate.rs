//! Truncation of long texts.

use super::escape;

/// Truncates a text to `longest` bytes and says how much is missing.
pub fn truncate(text: &str, longest: usize) -> String {
    let shown = prefix(text, longest);
    match text.len() - shown.len() {
        0 => shown.to_owned(),
        missing => mark_truncated(shown.to_owned(), missing as u64),
    }
}

/// Appends to a truncated text how many bytes are missing.
pub fn mark_truncated(shown: String, missing: u64) -> String {
    shown + &format!("… ({missing} more bytes)")
}

/// Escapes a text, and truncates it after about `longest` bytes with its full size.
pub(crate) fn escape_truncated(text: &str, longest: usize) -> String {
    let mut out = escape(prefix(text, longest));
    if text.len() > longest {
        out.push_str(&format!("… ({} bytes)", text.len()));
    }
    out
}

pub(crate) fn prefix(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}
