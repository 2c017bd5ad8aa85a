//! By what figures of a tool are found.

use indexmap::Equivalent;
use toolgate_core::{Source, ToolDefinition};

/// A tool's name and where it comes from: a name may move from one server to another, and what the one did is not the other's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ToolKey {
    pub(crate) name: String,
    pub(crate) source: Source,
}

/// The same, to look with: every call does.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct ToolKeyRef<'a> {
    name: &'a str,
    source: &'a Source,
}

impl ToolKey {
    pub(crate) fn server(&self) -> Option<&str> {
        match &self.source {
            Source::Mcp(server) => Some(server),
            _ => None,
        }
    }
}

impl<'a> ToolKeyRef<'a> {
    pub(crate) fn of(tool: &'a ToolDefinition) -> Self {
        Self {
            name: tool.name(),
            source: tool.source(),
        }
    }

    pub(crate) fn to_key(self) -> ToolKey {
        ToolKey {
            name: self.name.to_owned(),
            source: self.source.clone(),
        }
    }
}

impl Equivalent<ToolKey> for ToolKeyRef<'_> {
    fn equivalent(&self, key: &ToolKey) -> bool {
        self.name == key.name && *self.source == key.source
    }
}
