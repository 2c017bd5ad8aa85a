//! How many tokens a text is, about. No tokenizer: each model has its own, and what is asked here is whether a prompt fits.

/// A guess that is rather too high than too low.
pub(crate) fn estimate(text: &str) -> usize {
    text.len().div_ceil(3)
}
