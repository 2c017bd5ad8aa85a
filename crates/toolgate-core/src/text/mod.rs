//! Text helpers that all crates share.
//!
//! - **Escaping.** [`escape`] for logs and terminals, [`escape_for_review`] for what a person must
//!   approve. [`strip_invisible`] removes what only a model would read.
//! - **Truncating.** [`truncate`], and [`mark_truncated`] for text that is already cut.
//! - **Comparing.** [`nearest_names`] suggests names for a misspelled one, and [`fold_char`]
//!   ignores case and accents.
//! - **Durations and sizes.** [`parse_duration`] and [`parse_bytes`] read text such as `30s` and
//!   `1MiB`; [`deserialize_duration`] and [`deserialize_bytes`] do so for settings.
//! - **Messages.** [`describe_mismatch`] and [`unknown_value_message`] explain mistakes
//!   in a settings file.

mod deserialize_error;
mod escape;
mod escape_for_review;
mod fold;
mod hex;
mod nearest;
mod truncate;
pub(crate) mod units;
mod visible;

pub use self::deserialize_error::{describe_mismatch, unknown_value_message};
pub(crate) use self::escape::escape_into;
pub use self::escape::{escape, is_invisible};
pub use self::escape_for_review::escape_for_review;
pub use self::fold::fold_char;
pub(crate) use self::hex::Hex;
pub use self::nearest::nearest_names;
pub(crate) use self::truncate::{escape_truncated, prefix};
pub use self::truncate::{mark_truncated, truncate};
pub use self::units::{
    BYTES_PATTERN, DURATION_PATTERN, DurationText, bytes_from_json, deserialize_bytes,
    deserialize_duration, duration_from_json, parse_bytes, parse_duration,
};
pub use self::visible::{is_visible, strip_invisible, strip_invisible_in_schema};

/// Like `[String]::join`, for anything with a `Display`.
pub(crate) fn join<T: ToString>(items: impl IntoIterator<Item = T>, separator: &str) -> String {
    let texts: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    texts.join(separator)
}
