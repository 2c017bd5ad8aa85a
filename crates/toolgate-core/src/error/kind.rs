//! Stable names of failures, for programs.

use std::fmt;

/// Which registry a handler is looked up in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandlerKind {
    Builtin,
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

/// The stable name of a kind of failure: the envelope's `error_kind`. Each is explained at the
/// [`ToolError`](crate::ToolError) variant it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
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
