//! The resources, templates and prompts of all servers, in the form in which MCP lists them.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_core::{
    ContentMethod, ContentSet, ContentSource, ExecutionRules, ListedResource, Scope,
    strip_invisible,
};

// Bounds of the instructions that all servers together give to a client, in bytes.
const MAX_INSTRUCTIONS: usize = 32 << 10;
const MAX_INSTRUCTIONS_OF_ONE: usize = 4 << 10;

/// The lists that one group of clients may see. Comparing pointers is enough to notice a change.
#[derive(Debug, Clone, Default)]
pub(super) struct ContentLists {
    pub(super) resources: Arc<Vec<Value>>,
    pub(super) templates: Arc<Vec<Value>>,
    pub(super) prompts: Arc<Vec<Value>>,
}

impl ContentLists {
    /// Reuses the lists of `before` that are the same.
    pub(super) fn new(
        content: &ContentSet,
        rules: &ExecutionRules,
        scope: &Scope,
        before: &Self,
    ) -> Self {
        let may = |owner: &ContentSource, method| is_offered(owner, method, rules, scope);
        let readable = |it: &ListedResource<'_>| may(it.owner, ContentMethod::ReadResource);
        let resources = content.resources().filter(readable);
        let templates = content.templates().filter(readable);
        let prompts = content
            .prompts()
            .filter(|it| may(it.owner, ContentMethod::GetPrompt));
        let prompts = prompts.map(|it| shown(it.entry, "name", it.name));
        Self {
            resources: same_or_new(
                &before.resources,
                resources
                    .map(|it| shown(it.entry, "uri", &it.uri))
                    .collect(),
            ),
            templates: same_or_new(
                &before.templates,
                templates
                    .map(|it| shown(it.entry, "uriTemplate", &it.uri))
                    .collect(),
            ),
            prompts: same_or_new(&before.prompts, prompts.collect()),
        }
    }

    pub(super) fn has_other_resources(&self, before: &Self) -> bool {
        !Arc::ptr_eq(&self.resources, &before.resources)
            || !Arc::ptr_eq(&self.templates, &before.templates)
    }

    pub(super) fn has_other_prompts(&self, before: &Self) -> bool {
        !Arc::ptr_eq(&self.prompts, &before.prompts)
    }
}

/// True if the source supports the method, and policy and scope let the caller use it.
pub(super) fn is_offered(
    owner: &ContentSource,
    method: ContentMethod,
    rules: &ExecutionRules,
    scope: &Scope,
) -> bool {
    let tool = owner.content.access.tool(method);
    tool.is_some_and(|tool| rules.offers(tool.definition(), scope))
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

fn shown(entry: &Value, key: &str, address: &str) -> Value {
    let mut entry = entry.clone();
    entry[key] = json!(address);
    hide_invisible(&mut entry);
    entry
}

/// Removes invisible characters from the texts that people and models read, because they can hide
/// instructions.
fn hide_invisible(entry: &mut Value) {
    for key in ["title", "description"] {
        if let Some(Value::String(text)) = entry.get_mut(key) {
            *text = strip_invisible(text).into_owned();
        }
    }
    let arguments = entry.get_mut("arguments").and_then(Value::as_array_mut);
    arguments.into_iter().flatten().for_each(hide_invisible);
}

fn same_or_new(before: &Arc<Vec<Value>>, list: Vec<Value>) -> Arc<Vec<Value>> {
    match list == **before {
        true => Arc::clone(before),
        false => Arc::new(list),
    }
}
