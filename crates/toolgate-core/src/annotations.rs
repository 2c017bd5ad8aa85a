//! [`Annotations`]: what tools claim about their effects.

use serde::Serialize;

/// What a tool claims about its effects, as in MCP. `None` means that it claims nothing. A claim is
/// never a reason to trust a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Annotations {
    /// A call doesn't change anything.
    pub read_only: Option<bool>,
    /// Repeating a call has no further effect.
    pub idempotent: Option<bool>,
    /// A call may destroy something.
    pub destructive: Option<bool>,
    /// A call interacts with people or services outside this machine.
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
