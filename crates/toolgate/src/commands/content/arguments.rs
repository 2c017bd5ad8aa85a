//! The arguments of a prompt, which are always strings.

use serde_json::{Map, Value, json};
use toolgate_core::text::escape;
use toolgate_core::{Schema, SchemaLimits, ToolError};
use tracing::warn;

use crate::command_words::did_you_mean;
use crate::commands::call::CliArguments;

const METHOD: &str = "prompts/get";

/// Checks what was typed against the prompt's entry in the list, so that a missing argument is
/// reported before anything is sent.
pub(in crate::commands) fn prompt_arguments(
    entry: &Value,
    typed: &CliArguments,
) -> Result<Map<String, Value>, ToolError> {
    let schema = schema(entry);
    let call = typed.to_call(METHOD, &schema);
    let mut arguments = match call.arguments()?.as_ref() {
        Value::Object(arguments) => arguments.clone(),
        _ => Map::new(),
    };
    // Values of unknown keys may have been parsed as numbers, booleans or null.
    for value in arguments.values_mut().filter(|value| is_plain(value)) {
        *value = json!(value.to_string());
    }
    let checked = Schema::compile(schema.clone(), &SchemaLimits::default());
    if let Ok(schema) = checked {
        schema.check(Value::Object(arguments.clone()))?;
    }
    let declared = schema["properties"].as_object();
    let known: Vec<&str> = declared
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
        .collect();
    let is_unknown = |name: &&String| !known.contains(&name.as_str());
    for name in arguments.keys().filter(is_unknown) {
        let hint = did_you_mean(name, known.iter().copied());
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        warn!("'{}' is not an argument of this prompt{hint}", escape(name));
    }
    Ok(arguments)
}

fn is_plain(value: &Value) -> bool {
    value.is_number() || value.is_boolean() || value.is_null()
}

fn schema(entry: &Value) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for argument in entry["arguments"].as_array().into_iter().flatten() {
        let Some(name) = argument["name"].as_str() else {
            continue;
        };
        properties.insert(name.to_owned(), json!({ "type": "string" }));
        if argument["required"] == true {
            required.push(name);
        }
    }
    json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": { "type": "string" },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(words: &[&str]) -> Result<Value, String> {
        let entry = json!({ "name": "review", "arguments": [
            { "name": "code", "required": true }, { "name": "style" }, { "name": "a.b" },
        ] });
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let typed = CliArguments::read(&words, 1000).unwrap();
        let arguments = prompt_arguments(&entry, &typed);
        arguments
            .map(Value::Object)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_are_texts_and_required_ones_are_named() {
        for (words, expected) in [
            (&["code=1"][..], Ok(json!({ "code": "1" }))),
            (&["code="], Ok(json!({ "code": "" }))),
            (
                &["code=a=b", "other=2", "a.b=3"],
                Ok(json!({ "code": "a=b", "a.b": "3", "other": "2" })),
            ),
            (
                &[r#"{"code":"x","style":"short"}"#],
                Ok(json!({ "code": "x", "style": "short" })),
            ),
            (&["style=short"], Err("Invalid parameters: missing 'code'")),
            (&[], Err("Invalid parameters: missing 'code'")),
            (
                &[r#"{"code":[1]}"#],
                Err("Invalid parameters: 'code' must be string"),
            ),
        ] {
            let expected = expected.map_err(str::to_owned);
            assert_eq!(checked(words), expected, "{words:?}");
        }
    }
}
