//! [`ToolSource`]: where a tool comes from.

use std::fmt;

/// Where a tool comes from: this program, or one MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolSource {
    Builtin,
    /// A canned result from the configuration.
    Mock,
    /// A service of the program, such as document search.
    Internal,
    /// Registered by a program that embeds this crate.
    Custom,
    /// An MCP server, by its name in the configuration.
    Mcp(String),
}

impl ToolSource {
    /// True for tools in this process: all but those of MCP servers.
    pub fn is_local(&self) -> bool {
        !matches!(self, Self::Mcp(_))
    }
}

impl fmt::Display for ToolSource {
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
