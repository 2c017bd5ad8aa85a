//! The resources, templates, prompts and skills of all servers, in the form in
//! which MCP lists them.

use std::sync::Arc;

use serde_json::Value;
use toolgate_core::text::strip_invisible;
use toolgate_core::{ContentSet, ContentSource, ExecutionRules, OfferedEntry, Scope};

// Bounds of the instructions that all servers together give to a client, in bytes.
const MAX_INSTRUCTIONS: usize = 32 << 10;
const MAX_INSTRUCTIONS_OF_ONE: usize = 4 << 10;

/// The lists that one group of clients may see. Comparing pointers is enough to notice a change.
#[derive(Debug, Clone, Default)]
pub(super) struct ContentLists {
    pub(super) resources: Arc<Vec<Value>>,
    pub(super) templates: Arc<Vec<Value>>,
    pub(super) prompts: Arc<Vec<Value>>,
    pub(super) skills: Arc<Vec<Value>>,
}

impl ContentLists {
    /// Reuses the lists of `before` that are the same.
    pub(super) fn new(
        content: &ContentSet,
        rules: &ExecutionRules,
        scope: &Scope,
        before: &Self,
    ) -> Self {
        let resources = content.offered_resources(rules, scope);
        let templates = content.offered_templates(rules, scope);
        let prompts = content.offered_prompts(rules, scope);
        let skills = content.offered_skills(rules, scope);
        Self {
            resources: same_or_new(&before.resources, resources),
            templates: same_or_new(&before.templates, templates),
            prompts: same_or_new(&before.prompts, prompts),
            skills: same_or_new(&before.skills, skills),
        }
    }

    pub(super) fn has_other_resources(&self, before: &Self) -> bool {
        !Arc::ptr_eq(&self.resources, &before.resources)
            || !Arc::ptr_eq(&self.templates, &before.templates)
            // Skills are made of resources, and have no notification of their own.
            || !Arc::ptr_eq(&self.skills, &before.skills)
    }

    pub(super) fn has_other_prompts(&self, before: &Self) -> bool {
        !Arc::ptr_eq(&self.prompts, &before.prompts)
    }
}

/// Joins what servers say about themselves, each under its name. `is_visible` tells whether the
/// client sees anything of a server.
pub(super) fn join_instructions(
    own: Option<&str>,
    content: &ContentSet,
    is_visible: impl Fn(&ContentSource) -> bool,
) -> Option<String> {
    let mut joined = own.map(str::to_owned).unwrap_or_default();
    let start = joined.len();
    for owner in content.sources().iter().filter(|owner| is_visible(owner)) {
        let Some(text) = &owner.content.instructions else {
            continue;
        };
        let text = strip_invisible(text);
        let text = text.trim();
        let end = text.floor_char_boundary(MAX_INSTRUCTIONS_OF_ONE);
        let more = if end < text.len() { " […]" } else { "" };
        let part = format!("\n\n# {}\n{}{more}", owner.source, &text[..end]);
        if joined.len() - start + part.len() > MAX_INSTRUCTIONS {
            joined.push_str("\n\n[…]");
            break;
        }
        joined.push_str(&part);
    }
    let joined = joined.trim();
    (!joined.is_empty()).then(|| joined.to_owned())
}

fn same_or_new<'a>(
    before: &Arc<Vec<Value>>,
    offered: impl Iterator<Item = OfferedEntry<'a>>,
) -> Arc<Vec<Value>> {
    let list: Vec<Value> = offered.map(|it| it.entry).collect();
    match list == **before {
        true => Arc::clone(before),
        false => Arc::new(list),
    }
}
