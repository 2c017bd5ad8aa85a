//! From words for the eye to words for the ear.

/// What of a text can be said.
pub fn speakable(text: &str) -> String {
    text.trim().to_owned()
}
