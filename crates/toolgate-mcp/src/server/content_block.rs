//! Turns the content blocks of a tool result into blocks that every MCP client can read.

use serde_json::{Map, Value};
use toolgate_core::ToolContent;

/// Turns a block of an unknown kind or form into text, because clients reject a whole result
/// for one such block.
pub(super) fn make_readable(content: ToolContent) -> ToolContent {
    // The common case: `type` and `text`, and nothing else.
    if content.as_text().is_some() && content.as_value().as_object().map(Map::len) == Some(2) {
        return content;
    }
    match content.into_value() {
        Value::Object(block) => match check_block(block.clone()) {
            Some(block) => ToolContent::from(Value::Object(block)),
            None => ToolContent::text(Value::Object(block).to_string()),
        },
        value => ToolContent::text(value.to_string()),
    }
}

// Returns `None` for an unknown block. Drops optional members that are null, because clients
// reject those too.
fn check_block(mut block: Map<String, Value>) -> Option<Map<String, Value>> {
    block.retain(|_, value| !value.is_null());
    let required: &[&str] = match block.get("type")?.as_str()? {
        "text" => &["text"],
        "image" | "audio" => &["data", "mimeType"],
        "resource_link" => &["uri", "name"],
        "resource" => {
            let resource = block.get_mut("resource")?.as_object_mut()?;
            resource.retain(|_, value| !value.is_null());
            let has_body = ["text", "blob"].iter().any(|key| is_text(resource, key));
            let is_known = is_text(resource, "uri") && has_body && has_known_options(resource);
            is_known.then_some(&[])?
        }
        _ => return None,
    };
    let has_required = required.iter().all(|key| is_text(&block, key));
    if let Some(Value::Object(annotations)) = block.get_mut("annotations") {
        annotations.retain(|_, value| !value.is_null());
    }
    (has_required && has_known_options(&block)).then_some(block)
}

fn is_text(object: &Map<String, Value>, key: &str) -> bool {
    object.get(key).is_some_and(Value::is_string)
}

fn has_known_options(block: &Map<String, Value>) -> bool {
    block.iter().all(|(key, value)| match &**key {
        "title" | "description" | "mimeType" => value.is_string(),
        "size" => value.is_u64(),
        "icons" => is_list_of(value, |icon| icon["src"].is_string()),
        "_meta" => value.is_object(),
        "annotations" => value.as_object().is_some_and(is_known_annotations),
        _ => true,
    })
}

fn is_known_annotations(annotations: &Map<String, Value>) -> bool {
    annotations.iter().all(|(key, value)| match &**key {
        "audience" => is_list_of(value, |role| role == "user" || role == "assistant"),
        "priority" => value.is_number(),
        "lastModified" => value.is_string(),
        _ => true,
    })
}

fn is_list_of(value: &Value, is_item: impl Fn(&Value) -> bool) -> bool {
    value
        .as_array()
        .is_some_and(|items| items.iter().all(is_item))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_that_clients_would_reject_become_text() {
        let link = |more: Value| {
            let mut link = json!({ "type": "resource_link", "uri": "a:b", "name": "a" });
            link.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            link
        };
        for known in [
            json!({ "type": "text", "text": "a" }),
            json!({ "type": "text", "text": "a", "_meta": {}, "annotations": { "priority": 0.5 } }),
            json!({ "type": "image", "data": "", "mimeType": "image/png" }),
            json!({ "type": "audio", "data": "", "mimeType": "audio/wav", "x-other": [1] }),
            link(json!({ "title": "A", "size": 3, "icons": [{ "src": "a:b" }] })),
            json!({ "type": "resource", "resource": { "uri": "a:b", "blob": "" } }),
        ] {
            assert_eq!(
                make_readable(ToolContent::from(known.clone())).as_value(),
                &known
            );
        }
        for unknown in [
            json!(7),
            json!({ "text": "a" }),
            json!({ "type": "hologram" }),
            json!({ "type": "text", "text": 7 }),
            json!({ "type": "text", "text": "a", "annotations": [] }),
            json!({ "type": "text", "text": "a", "annotations": { "audience": ["all"] } }),
            json!({ "type": "image", "data": "" }),
            link(json!({ "size": -1 })),
            link(json!({ "icons": [{}] })),
            json!({ "type": "resource", "resource": { "uri": "a:b" } }),
            json!({ "type": "resource", "resource": { "text": "", "uri": "a:b", "mimeType": 1 } }),
        ] {
            let block = make_readable(ToolContent::from(unknown.clone()));
            assert_eq!(block.as_text(), Some(&*unknown.to_string()));
        }
        let null = json!({ "type": "text", "text": "a", "annotations": { "priority": null }, "_meta": null });
        let block = make_readable(ToolContent::from(null));
        assert_eq!(
            block.as_value(),
            &json!({ "type": "text", "text": "a", "annotations": {} })
        );
    }
}
