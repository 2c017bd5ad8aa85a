//! Replaces the URIs in a server's results by the addresses under which clients find them.

use serde_json::Value;
use toolgate_core::{ContentSet, ToolSource};

/// The member of a tool's `_meta` that names its page in MCP Apps.
const APP_META: &str = "ui";
const APP_RESOURCE: &str = "resourceUri";
/// The older form of the same.
const APP_RESOURCE_FLAT: &str = "ui/resourceUri";

/// Rewrites the URIs of contents, of prompt messages and of content blocks.
pub(super) fn rewrite_result_uris(result: &mut Value, content: &ContentSet, source: &ToolSource) {
    if let Some(Value::Array(contents)) = result.get_mut("contents") {
        for item in contents {
            rewrite(item.get_mut("uri"), content, source);
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

/// Rewrites the URI of a resource link or an embedded resource.
pub(super) fn rewrite_block_uris(block: &mut Value, content: &ContentSet, source: &ToolSource) {
    match block["type"].as_str() {
        Some("resource_link") => rewrite(block.get_mut("uri"), content, source),
        Some("resource") => {
            let resource = block.get_mut("resource");
            rewrite(
                resource.and_then(|resource| resource.get_mut("uri")),
                content,
                source,
            );
        }
        _ => {}
    }
}

/// Rewrites the page that a tool's `_meta` names.
pub(super) fn rewrite_app_uri(meta: &mut Value, content: &ContentSet, source: &ToolSource) {
    let app = meta.get_mut(APP_META);
    rewrite(
        app.and_then(|app| app.get_mut(APP_RESOURCE)),
        content,
        source,
    );
    rewrite(meta.get_mut(APP_RESOURCE_FLAT), content, source);
}

fn rewrite(uri: Option<&mut Value>, content: &ContentSet, source: &ToolSource) {
    if let Some(Value::String(uri)) = uri {
        let address = content.linked_uri(source, uri);
        if *address != **uri {
            *uri = address.into_owned();
        }
    }
}
