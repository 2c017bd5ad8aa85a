//! Filters resources, templates, prompts and skills to what a caller may use, as
//! entries of MCP lists.

use serde_json::{Value, json};

use crate::linked_uris::rewrite_skill_uris;
use crate::text::strip_invisible;
use crate::{
    ContentMethod, ContentSet, ContentSource, ExecutionRules, ListedResource, Scope, ToolSource,
};

/// A resource, resource template or prompt as callers see it, under the name or URI that they use.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OfferedEntry<'a> {
    pub source: &'a ToolSource,
    pub entry: Value,
}

impl ContentSource {
    /// True if the source supports the method, and policy and scope let the caller use it. Skills
    /// and folders describe resources, so they require the right to read resources too.
    pub fn is_offered(&self, method: ContentMethod, rules: &ExecutionRules, scope: &Scope) -> bool {
        use ContentMethod::{GetSkill, ReadDirectory, ReadResource};
        let offers = |method| {
            let tool = self.content.access.tool(method);
            tool.is_some_and(|tool| rules.offers(tool.definition(), scope))
        };
        let needs_read_access = matches!(method, GetSkill | ReadDirectory);
        offers(method) && (!needs_read_access || offers(ReadResource))
    }
}

impl ContentSet {
    pub fn offered_resources(
        &self,
        rules: &ExecutionRules,
        scope: &Scope,
    ) -> impl Iterator<Item = OfferedEntry<'_>> {
        offered(self.resources(), "uri", rules, scope)
    }

    pub fn offered_templates(
        &self,
        rules: &ExecutionRules,
        scope: &Scope,
    ) -> impl Iterator<Item = OfferedEntry<'_>> {
        offered(self.templates(), "uriTemplate", rules, scope)
    }

    pub fn offered_prompts(
        &self,
        rules: &ExecutionRules,
        scope: &Scope,
    ) -> impl Iterator<Item = OfferedEntry<'_>> {
        let may_get =
            |owner: &ContentSource| owner.is_offered(ContentMethod::GetPrompt, rules, scope);
        self.prompts()
            .filter(move |prompt| may_get(prompt.owner))
            .map(|prompt| OfferedEntry {
                source: &prompt.owner.source,
                entry: entry_with_address(prompt.entry, "name", prompt.name),
            })
    }

    /// The skills of sources that let the caller get them and read their files. Their frontmatter
    /// stays as it is, because receivers compare it with the file.
    pub fn offered_skills(
        &self,
        rules: &ExecutionRules,
        scope: &Scope,
    ) -> impl Iterator<Item = OfferedEntry<'_>> {
        let is_offered =
            move |owner: &ContentSource| owner.is_offered(ContentMethod::GetSkill, rules, scope);
        let offered = self.skills().filter(move |skill| is_offered(skill.owner));
        offered.map(|skill| {
            let source = &skill.owner.source;
            let mut entry = skill.entry.clone();
            rewrite_skill_uris(&mut entry, self, source);
            OfferedEntry { source, entry }
        })
    }
}

fn offered<'a>(
    resources: impl Iterator<Item = ListedResource<'a>>,
    key: &str,
    rules: &ExecutionRules,
    scope: &Scope,
) -> impl Iterator<Item = OfferedEntry<'a>> {
    let may_read =
        |owner: &ContentSource| owner.is_offered(ContentMethod::ReadResource, rules, scope);
    resources
        .filter(move |resource| may_read(resource.owner))
        .map(move |resource| OfferedEntry {
            source: &resource.owner.source,
            entry: entry_with_address(resource.entry, key, &resource.uri),
        })
}

fn entry_with_address(entry: &Value, key: &str, address: &str) -> Value {
    let mut entry = entry.clone();
    entry[key] = json!(address);
    hide_invisible(&mut entry);
    entry
}

/// Removes invisible characters from the texts that people and models read, because
/// they can hide instructions.
fn hide_invisible(entry: &mut Value) {
    for key in ["title", "description"] {
        if let Some(Value::String(text)) = entry.get_mut(key) {
            *text = strip_invisible(text).into_owned();
        }
    }
    let arguments = entry.get_mut("arguments").and_then(Value::as_array_mut);
    arguments.into_iter().flatten().for_each(hide_invisible);
}
