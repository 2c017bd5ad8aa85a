//! Text, whatever it is about: escaped, cut, compared, and read as sizes and times.

mod cut;
mod escape;
mod fold;
mod hex;
mod nearest;
mod reveal;
pub(crate) mod units;
mod visible;

pub use self::cut::{bounded, marked};
pub(crate) use self::cut::{cut, prefix};
pub(crate) use self::escape::escape_into;
pub use self::escape::{escape, is_unseen};
pub use self::fold::fold;
pub(crate) use self::hex::Hex;
pub use self::nearest::nearest;
pub use self::reveal::reveal;
pub use self::units::{
    BYTES_PATTERN, DURATION_PATTERN, bytes_from_json, deserialize_bytes, deserialize_duration,
    duration_from_json, parse_bytes, parse_duration,
};
pub use self::visible::{is_visible, visible, visible_schema};
