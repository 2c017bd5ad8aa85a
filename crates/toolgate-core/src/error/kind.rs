//! The names of failures, for programs.

use std::fmt;

/// Where a handler is looked for.
///
/// ```
/// use toolgate_core::{HandlerKind, ToolError};
///
/// let error = ToolError::HandlerNotFound { kind: HandlerKind::Builtin, name: "teleport".to_owned() };
/// assert_eq!(error.to_string(), "Builtin handler 'teleport' not found");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandlerKind {
    /// A function that ships with Toolgate.
    Builtin,
    /// A service inside the program.
    Internal,
}

impl fmt::Display for HandlerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Builtin => "Builtin",
            Self::Internal => "Internal",
        })
    }
}

/// The stable name of a failure, for programs: the envelope's `error_kind`.
///
/// ```
/// assert_eq!(toolgate_core::ErrorKind::NotFound.as_str(), "not_found");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(
    missing_docs,
    reason = "each is explained at the ToolError variant it belongs to"
)]
pub enum ErrorKind {
    NotFound,
    InvalidArguments,
    Denied,
    Unavailable,
    Timeout,
    Cancelled,
    HandlerNotFound,
    ToolError,
    Panicked,
    TooLarge,
    Overloaded,
    Interrupted,
}

impl ErrorKind {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::InvalidArguments => "invalid_arguments",
            Self::Denied => "denied",
            Self::Unavailable => "unavailable",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::HandlerNotFound => "handler_not_found",
            Self::ToolError => "tool_error",
            Self::Panicked => "panicked",
            Self::TooLarge => "too_large",
            Self::Overloaded => "overloaded",
            Self::Interrupted => "interrupted",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
