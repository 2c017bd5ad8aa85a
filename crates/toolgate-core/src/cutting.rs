//! Long texts, kept as their beginning.

/// A text of at most `longest` bytes; of a longer one the beginning, and how much is missing.
///
/// ```
/// assert_eq!(toolgate_core::bounded("short", 10), "short");
/// assert_eq!(toolgate_core::bounded("ééé", 3), "é… (4 more bytes)");
/// ```
pub fn bounded(text: &str, longest: usize) -> String {
    let shown = &text[..text.floor_char_boundary(longest)];
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
