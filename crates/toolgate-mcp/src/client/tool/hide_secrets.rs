//! Hides secrets of the configuration that a server repeats in its tool definitions.

use std::borrow::Cow;

use serde_json::{Map, Value};
use toolgate_core::Redactor;

use super::definition::is_unknown_member;

const TEXT_KEYS: [&str; 3] = ["description", "title", "$comment"];
// Keys whose values a model might send as they are, so they are removed rather than redacted.
const VALUE_KEYS: [&str; 3] = ["default", "examples", "example"];

/// Like [`hide_secrets`], for an entry of `tools/list`. Nothing depends on the members that we
/// don't know, so secrets are hidden in all of their texts.
pub(crate) fn hide_tool_secrets(entry: &mut Value, redactor: &Redactor) {
    hide_secrets(entry, redactor);
    for (key, value) in entry.as_object_mut().into_iter().flatten() {
        if is_unknown_member(key) {
            hide_everywhere(value, redactor);
        }
    }
}

fn hide_everywhere(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(hidden) = redactor.redact_known(text) {
                *text = hidden;
            }
        }
        Value::Array(list) => list
            .iter_mut()
            .for_each(|value| hide_everywhere(value, redactor)),
        Value::Object(object) => {
            let members = std::mem::take(object).into_iter();
            let hidden = members.map(|(key, mut value)| {
                hide_everywhere(&mut value, redactor);
                (redactor.redact_known(&key).into_owned(), value)
            });
            *object = hidden.collect::<Map<_, _>>();
        }
        _ => {}
    }
}

/// Hides known secrets in the texts of an entry of `tools/list`. Names and constraints on arguments
/// stay unchanged, because calls must match them.
pub(crate) fn hide_secrets(entry: &mut Value, redactor: &Redactor) {
    match entry {
        Value::Array(list) => list
            .iter_mut()
            .for_each(|value| hide_secrets(value, redactor)),
        Value::Object(object) => {
            object.retain(|key, value| {
                // A parameter named `default` holds a schema, not a value.
                let is_value = VALUE_KEYS.contains(&key.as_str());
                !(is_value && holds_secret(value, redactor) && !is_schema(value))
            });
            for (key, value) in object {
                match value {
                    Value::String(text) if TEXT_KEYS.contains(&key.as_str()) => {
                        if let Cow::Owned(hidden) = redactor.redact_known(text) {
                            *text = hidden;
                        }
                    }
                    value => hide_secrets(value, redactor),
                }
            }
        }
        _ => {}
    }
}

fn is_schema(value: &Value) -> bool {
    let keys = [
        "type",
        "properties",
        "description",
        "$ref",
        "anyOf",
        "oneOf",
    ];
    keys.iter().any(|key| value.get(key).is_some())
}

fn holds_secret(value: &Value, redactor: &Redactor) -> bool {
    matches!(redactor.redact_known(&value.to_string()), Cow::Owned(_))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_that_nobody_knows_hide_secrets_in_every_text() {
        let redactor = Redactor::new(["tok-S3NT1NEL".to_owned()]);
        let mut entry = json!({
            "name": "tok-S3NT1NEL",
            "unknown": { "a": ["tok-S3NT1NEL", 1], "tok-S3NT1NEL": { "b": "x tok-S3NT1NEL" } },
        });
        hide_tool_secrets(&mut entry, &redactor);
        let hidden = json!({ "a": ["[REDACTED]", 1], "[REDACTED]": { "b": "x [REDACTED]" } });
        assert_eq!(entry, json!({ "name": "tok-S3NT1NEL", "unknown": hidden }));
    }

    #[test]
    fn f28_a_secret_in_a_tool_definition_is_hidden() {
        let redactor = Redactor::new(["tok-S3NT1NEL".to_owned()]);
        let mut entry = json!({
            "name": "fetch",
            "title": "With tok-S3NT1NEL",
            "description": "Uses tok-S3NT1NEL, dG9rLVMzTlQxTkVM in base64",
            "annotations": { "title": "tok-S3NT1NEL" },
            "inputSchema": {
                "type": "object",
                "properties": {
                    "token": { "type": "string", "description": "such as tok-S3NT1NEL", "default": "tok-S3NT1NEL" },
                    "default": { "type": "string", "description": "not tok-S3NT1NEL" },
                    "deep": { "items": [{ "examples": ["a", { "x": "tok-S3NT1NEL" }] }] },
                    "size": { "type": "integer", "default": 3 },
                },
                "required": ["token"],
            },
        });
        hide_secrets(&mut entry, &redactor);
        assert_eq!(
            entry,
            json!({
                "name": "fetch",
                "title": "With [REDACTED]",
                "description": "Uses [REDACTED], [REDACTED] in base64",
                "annotations": { "title": "[REDACTED]" },
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "token": { "type": "string", "description": "such as [REDACTED]" },
                        "default": { "type": "string", "description": "not [REDACTED]" },
                        "deep": { "items": [{}] },
                        "size": { "type": "integer", "default": 3 },
                    },
                    "required": ["token"],
                },
            })
        );
    }
}
