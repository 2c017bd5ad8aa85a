//! The rules of Gemini's `POST /v1beta/models/{model}:streamGenerateContent`.

mod contents;

use std::collections::HashSet;

use serde_json::{Map, Value};

use self::contents::check_contents;
use super::{
    CheckResult, IssuedSignatures, array, ensure, ensure_unique, for_each_schema, non_blank_string,
    object, only_keys, optional_bool, positive_integer, root_schema, string,
};
use crate::RecordedRequest;

const KEYS: &[&str] = &[
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "generationConfig",
    "cachedContent",
];
/// The keywords of a schema in `parametersJsonSchema`.
const KEYWORDS: &[&str] = &[
    "$id",
    "$defs",
    // Refused too, but with a clearer message than that of an unknown key.
    "$ref",
    "$anchor",
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
    "propertyOrdering",
];

pub(super) fn check(
    request: &RecordedRequest,
    body: &Map<String, Value>,
    issued: &IssuedSignatures,
) -> CheckResult {
    ensure(
        request.header("content-type") == Some("application/json"),
        || "content-type: must be application/json".to_owned(),
    )?;
    // Most tests configure no key, so it is optional; an empty one is a bug of the client.
    ensure(
        request
            .header("x-goog-api-key")
            .is_none_or(|key| !key.trim().is_empty()),
        || "API key not valid. Please pass a valid API key.".to_owned(),
    )?;
    reject_unknown_keys(body, KEYS, "")?;
    if let Some(system) = body.get("systemInstruction") {
        let system = object(system, "system_instruction")?;
        reject_unknown_keys(system, &["role", "parts"], "system_instruction")?;
        for part in non_empty_parts(system, "system_instruction")? {
            non_blank_string(part.get("text"), "system_instruction.parts.text")?;
        }
    }
    check_generation_config(body.get("generationConfig"))?;
    let has_tools = check_tools(body.get("tools"))?;
    check_tool_config(body.get("toolConfig"), has_tools)?;
    check_contents(
        array(body.get("contents").unwrap_or(&Value::Null), "contents")?,
        issued,
    )
}

/// Like `only_keys`, but with Gemini's own wording.
fn reject_unknown_keys(object: &Map<String, Value>, keys: &[&str], at: &str) -> CheckResult {
    let unknown = object.keys().find(|key| !keys.contains(&key.as_str()));
    unknown.map_or(Ok(()), |key| {
        Err(format!(
            "Invalid JSON payload received. Unknown name \"{key}\" at '{at}': Cannot find field."
        ))
    })
}

fn non_empty_parts<'a>(content: &'a Map<String, Value>, at: &str) -> Result<&'a [Value], String> {
    let parts = array(content.get("parts").unwrap_or(&Value::Null), at)?;
    ensure(!parts.is_empty(), || {
        format!("{at}.parts: must not be empty")
    })?;
    Ok(parts)
}

fn check_generation_config(config: Option<&Value>) -> CheckResult {
    const AT: &str = "generation_config";
    let Some(config) = config else {
        return Ok(());
    };
    let config = object(config, AT)?;
    let keys = &[
        "maxOutputTokens",
        "temperature",
        "topP",
        "topK",
        "seed",
        "stopSequences",
        "candidateCount",
        "thinkingConfig",
    ];
    reject_unknown_keys(config, keys, AT)?;
    positive_integer(config.get("maxOutputTokens"), "max_output_tokens")?;
    if let Some(thinking) = config.get("thinkingConfig") {
        let thinking = object(thinking, AT)?;
        let keys = &["includeThoughts", "thinkingBudget", "thinkingLevel"];
        reject_unknown_keys(thinking, keys, "generation_config.thinking_config")?;
        optional_bool(thinking.get("includeThoughts"), "include_thoughts")?;
    }
    Ok(())
}

fn check_tools(tools: Option<&Value>) -> Result<bool, String> {
    let Some(tools) = tools else {
        return Ok(false);
    };
    let mut names = HashSet::new();
    for (index, tool) in array(tools, "tools")?.iter().enumerate() {
        let at = format!("tools[{index}]");
        let tool = object(tool, &at)?;
        reject_unknown_keys(tool, &["functionDeclarations"], &at)?;
        let declarations = tool.get("functionDeclarations").unwrap_or(&Value::Null);
        for (index, declaration) in array(declarations, &at)?.iter().enumerate() {
            let at = format!("{at}.function_declarations[{index}]");
            let declaration = object(declaration, &at)?;
            reject_unknown_keys(
                declaration,
                &["name", "description", "parametersJsonSchema"],
                &at,
            )?;
            let name = string(declaration.get("name"), &format!("{at}.name"))?;
            check_function_name(name, &format!("{at}.name"))?;
            ensure_unique(name, &mut names, &format!("{at}.name"))?;
            string(declaration.get("description"), &format!("{at}.description"))?;
            check_schema(declaration.get("parametersJsonSchema"), &at)?;
        }
    }
    Ok(!names.is_empty())
}

fn check_schema(schema: Option<&Value>, at: &str) -> CheckResult {
    let at = format!("{at}.parameters_json_schema");
    let schema = schema.unwrap_or(&Value::Null);
    root_schema(schema, &at)?;
    for_each_schema(schema, &at, &mut |schema, at| {
        only_keys(schema, KEYWORDS, at)?;
        ensure(!schema.contains_key("$ref"), || {
            format!("{at}: $ref is not supported")
        })?;
        let array = schema.get("type") == Some(&Value::from("array"));
        ensure(!array || schema.contains_key("items"), || {
            format!("{at}.items: missing field.")
        })
    })
}

/// Stricter than Gemini, which also allows dots and colons.
fn check_function_name(name: &str, at: &str) -> CheckResult {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    ensure(
        starts_well && name.len() <= 64 && name.bytes().all(is_allowed),
        || format!("{at}: '{name}' must match ^[A-Za-z_][A-Za-z0-9_-]{{0,63}}$"),
    )
}

fn check_tool_config(config: Option<&Value>, has_tools: bool) -> CheckResult {
    let Some(config) = config else {
        return Ok(());
    };
    ensure(has_tools, || {
        "tool_config: Function calling config is set without function_declarations.".to_owned()
    })?;
    let config = object(config, "tool_config")?;
    reject_unknown_keys(config, &["functionCallingConfig"], "tool_config")?;
    let calling = &config["functionCallingConfig"];
    reject_unknown_keys(
        object(calling, "tool_config")?,
        &["mode", "allowedFunctionNames"],
        "tool_config.function_calling_config",
    )?;
    let mode = string(calling.get("mode"), "mode")?;
    ensure(["AUTO", "ANY", "NONE"].contains(&mode), || {
        format!("unknown mode '{mode}'")
    })
}
