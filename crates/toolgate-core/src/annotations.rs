//! What tools say of themselves.

use serde::Serialize;

/// What a tool says of its effects. Told by the tool, so never a reason to trust it.
///
/// ```
/// assert_eq!(toolgate_core::Annotations::READ_ONLY.destructive, Some(false));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Annotations {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// Twice is as good as once.
    pub idempotent: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
    /// It deals with the world outside: people, the web.
    pub open_world: Option<bool>,
}

impl Annotations {
    /// Of a tool that only looks.
    pub const READ_ONLY: Self = Self {
        read_only: Some(true),
        idempotent: Some(true),
        destructive: Some(false),
        open_world: None,
    };
}
