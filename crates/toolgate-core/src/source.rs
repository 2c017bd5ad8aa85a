//! Where tools come from.

use std::fmt;

/// Where a tool comes from.
///
/// ```
/// assert!(toolgate_core::Source::Builtin.is_local());
/// assert_eq!(toolgate_core::Source::Mcp("house".to_owned()).to_string(), "mcp:house");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// Ships with Toolgate.
    Builtin,
    /// A canned answer from the configuration.
    Mock,
    /// A service inside the program.
    Internal,
    /// Registered by a program that uses these crates.
    Custom,
    /// An MCP server, by its name in the configuration.
    Mcp(String),
}

impl Source {
    /// True for tools that live in this process; their parameters are never renamed.
    pub fn is_local(&self) -> bool {
        !matches!(self, Self::Mcp(_))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin => f.write_str("builtin"),
            Self::Mock => f.write_str("mock"),
            Self::Internal => f.write_str("internal"),
            Self::Custom => f.write_str("custom"),
            Self::Mcp(server) => write!(f, "mcp:{server}"),
        }
    }
}
