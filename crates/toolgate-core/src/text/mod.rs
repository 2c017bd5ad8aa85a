//! Text functions: escape, truncate and compare text, and parse sizes and durations.

mod escape;
mod fold;
mod hex;
mod nearest;
mod reveal;
mod truncate;
pub(crate) mod units;
mod visible;

pub(crate) use self::escape::escape_into;
pub use self::escape::{escape, is_invisible};
pub use self::fold::fold_letter;
pub(crate) use self::hex::Hex;
pub use self::nearest::nearest_names;
pub use self::reveal::reveal;
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
