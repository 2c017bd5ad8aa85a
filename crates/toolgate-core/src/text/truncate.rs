//! Truncates long texts.

use super::escape;

/// Truncates a text to `max_bytes`, and appends how many bytes are missing: `… (7 more bytes)`.
pub fn truncate(text: &str, max_bytes: usize) -> String {
    let shown = prefix(text, max_bytes);
    match text.len() - shown.len() {
        0 => shown.to_owned(),
        missing => mark_truncated(shown.to_owned(), missing as u64),
    }
}

/// Appends the mark of [`truncate`] to a text that is already truncated, and lacks `missing` bytes.
pub fn mark_truncated(shown: String, missing: u64) -> String {
    shown + &format!("… ({missing} more bytes)")
}

/// Escapes a text after truncating it to `max_bytes`, and appends its full size: `… (900 bytes)`.
pub(crate) fn escape_truncated(text: &str, max_bytes: usize) -> String {
    let mut out = escape(prefix(text, max_bytes));
    if text.len() > max_bytes {
        out.push_str(&format!("… ({} bytes)", text.len()));
    }
    out
}

pub(crate) fn prefix(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}
