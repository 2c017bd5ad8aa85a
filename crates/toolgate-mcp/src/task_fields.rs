//! What tasks of 2025-11-25 look like, whichever side has them.

use std::time::SystemTime;

use jiff::Timestamp;

/// The key in `_meta` that says which task a message is about.
pub(crate) const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// A time in the form of ISO 8601.
pub(crate) fn timestamp(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).unwrap_or_default();
    format!("{time:.3}")
}
