//! Identifies a tool in statistics and metrics.

use indexmap::Equivalent;
use toolgate_core::{ToolDefinition, ToolSource};

/// Name and source, because a name may move to another server, whose calls must not be mixed with
/// those of the old one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ToolKey {
    pub(crate) name: String,
    pub(crate) source: ToolSource,
}

/// Borrows what [`ToolKey`] owns, so that looking a tool up on every call allocates nothing.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct ToolKeyRef<'a> {
    name: &'a str,
    source: &'a ToolSource,
}

impl ToolKey {
    pub(crate) fn server(&self) -> Option<&str> {
        match &self.source {
            ToolSource::Mcp(server) => Some(server),
            _ => None,
        }
    }
}

impl<'a> ToolKeyRef<'a> {
    pub(crate) fn new(tool: &'a ToolDefinition) -> Self {
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
