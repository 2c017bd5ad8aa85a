//! [`Annotations`]: what tools claim about their effects.

use serde::Serialize;

/// What a tool claims about its effects. Claims are never a reason to trust a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Annotations {
    /// It doesn't change anything.
    pub read_only: Option<bool>,
    /// Repeating a call has no further effect.
    pub idempotent: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
    /// It interacts with people or services outside.
    pub open_world: Option<bool>,
}

impl Annotations {
    /// For a tool that only reads.
    pub const READ_ONLY: Self = Self {
        read_only: Some(true),
        idempotent: Some(true),
        destructive: Some(false),
        open_world: None,
    };
}
