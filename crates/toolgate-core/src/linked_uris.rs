//! Replaces the URIs in a server's lists and results by those that clients use.

use crate::{ContentSet, ToolSource};
use serde_json::Value;

/// The member of a tool's `_meta` that names its page in MCP Apps.
const APP_META: &str = "ui";
const APP_RESOURCE: &str = "resourceUri";
/// The older form of the same.
const APP_RESOURCE_FLAT: &str = "ui/resourceUri";

/// Rewrites the server's URIs in a result to those that clients use.
///
/// Covers contents, prompt messages, skills and directory entries.
pub fn rewrite_result_uris(result: &mut Value, content: &ContentSet, source: &ToolSource) {
    if let Some(Value::Array(contents)) = result.get_mut("contents") {
        for item in contents {
            rewrite(Some(item), "uri", content, source);
        }
    }
    if let Some(skill) = result.get_mut("skill") {
        rewrite_skill_uris(skill, content, source);
    }
    if let Some(Value::Array(children)) = result.get_mut("resources") {
        for child in children {
            rewrite_address(child, content, source);
        }
    }
    if let Some(Value::Array(messages)) = result.get_mut("messages") {
        for message in messages {
            if let Some(block) = message.get_mut("content") {
                rewrite_block_uris(block, content, source);
            }
        }
    }
}

/// Rewrites the URI of a skill, and those of its files.
pub(crate) fn rewrite_skill_uris(skill: &mut Value, content: &ContentSet, source: &ToolSource) {
    rewrite_address(skill, content, source);
    let files = skill.get_mut("resources").and_then(Value::as_array_mut);
    for file in files.into_iter().flatten() {
        rewrite_address(file, content, source);
    }
}

/// Rewrites a URI that is read here, whatever its scheme.
fn rewrite_address(entry: &mut Value, content: &ContentSet, source: &ToolSource) {
    if let Some(Value::String(uri)) = entry.get_mut("uri") {
        *uri = content.offered_uri(source, uri).into_owned();
    }
}

/// Rewrites the server's URI in one content block (a resource link or an embedded resource) to the
/// one that clients use.
pub fn rewrite_block_uris(block: &mut Value, content: &ContentSet, source: &ToolSource) {
    match block["type"].as_str() {
        Some("resource_link") => rewrite(Some(block), "uri", content, source),
        Some("resource") => rewrite(block.get_mut("resource"), "uri", content, source),
        _ => {}
    }
}

/// Rewrites the URI of a tool's MCP Apps page, which its `_meta` names, to the
/// one that clients use.
pub fn rewrite_app_uri(meta: &mut Value, content: &ContentSet, source: &ToolSource) {
    rewrite(meta.get_mut(APP_META), APP_RESOURCE, content, source);
    rewrite(Some(meta), APP_RESOURCE_FLAT, content, source);
}

fn rewrite(owner: Option<&mut Value>, key: &str, content: &ContentSet, source: &ToolSource) {
    if let Some(Value::String(uri)) = owner.and_then(|owner| owner.get_mut(key)) {
        let address = content.linked_uri(source, uri);
        if *address != **uri {
            *uri = address.into_owned();
        }
    }
}
