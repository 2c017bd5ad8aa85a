//! Variables that aren't set, and the commands that need them.

use super::{Config, ConfigError};

// Sections that tools are built from.
const TOOL_SECTIONS: [&str; 3] = ["documents", "search", "skills"];

impl Config {
    pub(crate) fn unset_for_tool(&self, tool: &str) -> Option<&ConfigError> {
        let uses = |section: &str| {
            TOOL_SECTIONS.contains(&section)
                && (tool == section || self.uses_handler(tool, section))
        };
        self.unset_where(uses).next()
    }

    pub(crate) fn unset_in_sections(&self, sections: &[&str]) -> Option<&ConfigError> {
        self.unset_where(|section| sections.contains(&section))
            .next()
    }

    pub(crate) fn unset_for_tools(&self) -> impl Iterator<Item = &ConfigError> {
        self.unset_where(|section| TOOL_SECTIONS.contains(&section))
    }

    pub(crate) fn unset(&self) -> impl Iterator<Item = &ConfigError> {
        self.unset.iter().map(|(_, error)| error)
    }

    fn unset_where(&self, is_used: impl Fn(&str) -> bool) -> impl Iterator<Item = &ConfigError> {
        let unset = self.unset.iter();
        unset
            .filter(move |(section, _)| is_used(section))
            .map(|(_, error)| error)
    }
}
