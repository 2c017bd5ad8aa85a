//! Checks entries of lists, because clients reject a whole list for one entry that
//! has the wrong form.

use serde_json::{Map, Value};
use toolgate_core::text::escape;
use tracing::warn;

// Longest URI and name that can be offered, in bytes.
const MAX_ADDRESS: usize = 8 << 10;
// Twice of what servers should have.
const MAX_SKILL_FILES: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    Resource,
    Template,
    Prompt,
    Skill,
}

impl EntryKind {
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Resource => "resources/list",
            Self::Template => "resources/templates/list",
            Self::Prompt => "prompts/list",
            Self::Skill => "skills/list",
        }
    }

    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Resource => "resources",
            Self::Template => "resourceTemplates",
            Self::Prompt => "prompts",
            Self::Skill => "skills",
        }
    }

    fn address(self) -> &'static str {
        match self {
            Self::Resource | Self::Skill => "uri",
            Self::Template => "uriTemplate",
            Self::Prompt => "name",
        }
    }
}

/// The entry without members of a wrong type; `None`, with a warning, if it has no address.
pub(super) fn checked_entry(kind: EntryKind, entry: Value, server: &str) -> Option<Value> {
    let has_address = |entry: &Value| {
        let address = entry[kind.address()].as_str();
        address.is_some_and(|address| !address.is_empty() && address.len() <= MAX_ADDRESS)
    };
    if !has_address(&entry) {
        let shown: String = entry.to_string().chars().take(100).collect();
        warn!(server, entry = %escape(&shown), "{} has an entry without a usable {}; skipping it", kind.method(), kind.address());
        return None;
    }
    if kind == EntryKind::Skill && !is_skill(&entry) {
        let shown: String = entry["uri"].to_string().chars().take(100).collect();
        warn!(server, entry = %escape(&shown), "skills/list has an entry that is not one of a skill; skipping it");
        return None;
    }
    let Value::Object(mut entry) = entry else {
        return None;
    };
    // Receivers compare a skill with its files, so it stays as it is.
    if kind == EntryKind::Skill {
        return Some(Value::Object(entry));
    }
    // Every entry needs a name, and its address is one.
    if !entry.get("name").is_some_and(Value::is_string) {
        let address = entry[kind.address()].clone();
        entry.insert("name".to_owned(), address);
    }
    keep_valid_members(&mut entry);
    if kind == EntryKind::Prompt
        && let Some(Value::Array(arguments)) = entry.get_mut("arguments")
    {
        arguments.retain(|argument| argument["name"].is_string());
        arguments
            .iter_mut()
            .filter_map(Value::as_object_mut)
            .for_each(keep_valid_members);
    }
    Some(Value::Object(entry))
}

/// True if the entry has everything that clients require of a skill. Its files may be missing,
/// because some servers list them only when they are read.
pub(super) fn is_skill(entry: &Value) -> bool {
    let is_file = |file: &Value| {
        file["uri"].is_string() && file["digest"].is_string() && file["size"].is_u64()
    };
    let files = &entry["resources"];
    let has_files = match files.as_array() {
        Some(files) => files.len() <= MAX_SKILL_FILES && files.iter().all(is_file),
        None => *files == "dynamic",
    };
    let text = |key: &str| entry["frontmatter"][key].is_string();
    entry["uri"].is_string() && text("name") && text("description") && has_files
}

fn keep_valid_members(entry: &mut Map<String, Value>) {
    entry.retain(|key, value| match &**key {
        "title" | "description" | "mimeType" => value.is_string(),
        "size" => value.is_number(),
        "required" => value.is_boolean(),
        "arguments" => value.is_array(),
        "annotations" | "_meta" => value.is_object(),
        "icons" => value
            .as_array()
            .is_some_and(|icons| icons.iter().all(|icon| icon["src"].is_string())),
        _ => true,
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_keep_what_clients_accept() {
        for (kind, entry, kept) in [
            (
                EntryKind::Resource,
                json!({ "uri": "a:b", "title": null, "size": "3", "icons": [{}], "x": [1] }),
                Some(json!({ "uri": "a:b", "x": [1], "name": "a:b" })),
            ),
            (
                EntryKind::Template,
                json!({ "uriTemplate": "a:{b}", "name": "b", "_meta": { "k": 1 } }),
                Some(json!({ "uriTemplate": "a:{b}", "name": "b", "_meta": { "k": 1 } })),
            ),
            (
                EntryKind::Prompt,
                json!({ "name": "p", "arguments": [{ "name": "a", "required": 1 }, {}, 3] }),
                Some(json!({ "name": "p", "arguments": [{ "name": "a" }] })),
            ),
            (
                EntryKind::Prompt,
                json!({ "name": "p", "arguments": "none" }),
                Some(json!({ "name": "p" })),
            ),
            (EntryKind::Resource, json!({ "uri": "" }), None),
            (
                EntryKind::Resource,
                json!({ "uri": "x".repeat(MAX_ADDRESS + 1) }),
                None,
            ),
            (EntryKind::Prompt, json!(["p"]), None),
        ] {
            assert_eq!(checked_entry(kind, entry, "files"), kept);
        }
    }
}
