//! The rules of Gemini's `POST /v1beta/models/{model}:streamGenerateContent`.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{
    CheckResult, IssuedSignatures, each_schema, ensure, list, object, only_keys, optional_bool,
    positive, root_schema, text, unique, words,
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
    ensure(
        request
            .header("x-goog-api-key")
            .is_none_or(|key| !key.trim().is_empty()),
        || "API key not valid. Please pass a valid API key.".to_owned(),
    )?;
    known(body, KEYS, "")?;
    if let Some(system) = body.get("systemInstruction") {
        let system = object(system, "system_instruction")?;
        known(system, &["role", "parts"], "system_instruction")?;
        for part in parts(system, "system_instruction")? {
            words(part.get("text"), "system_instruction.parts.text")?;
        }
    }
    generation(body.get("generationConfig"))?;
    let has_tools = tools(body.get("tools"))?;
    tool_config(body.get("toolConfig"), has_tools)?;
    contents(
        list(body.get("contents").unwrap_or(&Value::Null), "contents")?,
        issued,
    )
}

/// Refuses unknown keys, with the API's own message.
fn known(object: &Map<String, Value>, keys: &[&str], at: &str) -> CheckResult {
    let unknown = object.keys().find(|key| !keys.contains(&key.as_str()));
    unknown.map_or(Ok(()), |key| {
        Err(format!(
            "Invalid JSON payload received. Unknown name \"{key}\" at '{at}': Cannot find field."
        ))
    })
}

fn parts<'a>(content: &'a Map<String, Value>, at: &str) -> Result<&'a [Value], String> {
    let parts = list(content.get("parts").unwrap_or(&Value::Null), at)?;
    ensure(!parts.is_empty(), || {
        format!("{at}.parts: must not be empty")
    })?;
    Ok(parts)
}

fn generation(config: Option<&Value>) -> CheckResult {
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
    known(config, keys, AT)?;
    positive(config.get("maxOutputTokens"), "max_output_tokens")?;
    if let Some(thinking) = config.get("thinkingConfig") {
        let thinking = object(thinking, AT)?;
        let keys = &["includeThoughts", "thinkingBudget", "thinkingLevel"];
        known(thinking, keys, "generation_config.thinking_config")?;
        optional_bool(thinking.get("includeThoughts"), "include_thoughts")?;
    }
    Ok(())
}

fn tools(tools: Option<&Value>) -> Result<bool, String> {
    let Some(tools) = tools else {
        return Ok(false);
    };
    let mut names = HashSet::new();
    for (index, tool) in list(tools, "tools")?.iter().enumerate() {
        let at = format!("tools[{index}]");
        let tool = object(tool, &at)?;
        known(tool, &["functionDeclarations"], &at)?;
        let declarations = tool.get("functionDeclarations").unwrap_or(&Value::Null);
        for (index, declaration) in list(declarations, &at)?.iter().enumerate() {
            let at = format!("{at}.function_declarations[{index}]");
            let declaration = object(declaration, &at)?;
            known(
                declaration,
                &["name", "description", "parametersJsonSchema"],
                &at,
            )?;
            let name = text(declaration.get("name"), &format!("{at}.name"))?;
            legal_name(name, &at)?;
            unique(name, &mut names, "Duplicate function declaration found")?;
            text(declaration.get("description"), &format!("{at}.description"))?;
            schema(declaration.get("parametersJsonSchema"), &at)?;
        }
    }
    Ok(!names.is_empty())
}

fn schema(schema: Option<&Value>, at: &str) -> CheckResult {
    let at = format!("{at}.parameters_json_schema");
    let schema = schema.unwrap_or(&Value::Null);
    root_schema(schema, &at)?;
    each_schema(schema, &at, &mut |schema, at| {
        only_keys(schema, KEYWORDS, at)?;
        ensure(!schema.contains_key("$ref"), || {
            format!("{at}: $ref is not resolved here")
        })?;
        let array = schema.get("type") == Some(&Value::from("array"));
        ensure(!array || schema.contains_key("items"), || {
            format!("{at}.items: missing field.")
        })
    })
}

/// Stricter than the API: no dots and no colons.
fn legal_name(name: &str, at: &str) -> CheckResult {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    ensure(
        begins && name.len() <= 64 && name.bytes().all(legal),
        || {
            format!(
                "{at}.name: Invalid function name '{name}'. Must start with a letter or an underscore."
            )
        },
    )
}

fn tool_config(config: Option<&Value>, has_tools: bool) -> CheckResult {
    let Some(config) = config else {
        return Ok(());
    };
    ensure(has_tools, || {
        "tool_config: Function calling config is set without function_declarations.".to_owned()
    })?;
    let config = object(config, "tool_config")?;
    known(config, &["functionCallingConfig"], "tool_config")?;
    let calling = &config["functionCallingConfig"];
    known(
        object(calling, "tool_config")?,
        &["mode", "allowedFunctionNames"],
        "tool_config.function_calling_config",
    )?;
    let mode = text(calling.get("mode"), "mode")?;
    ensure(["AUTO", "ANY", "NONE"].contains(&mode), || {
        format!("mode: '{mode}' is none")
    })
}

fn contents<'a>(contents: &'a [Value], issued: &IssuedSignatures) -> CheckResult {
    let mut open: Vec<(&'a str, &'a str)> = Vec::new();
    let mut last = "model";
    ensure(!contents.is_empty(), || {
        "contents is not specified".to_owned()
    })?;
    for (index, content) in contents.iter().enumerate() {
        let at = format!("contents[{index}]");
        let content = object(content, &at)?;
        known(content, &["role", "parts"], &at)?;
        let role = text(content.get("role"), &format!("{at}.role"))?;
        ensure(["user", "model"].contains(&role), || {
            "Please use a valid role: user, model.".to_owned()
        })?;
        ensure(role != last, || {
            format!("{at}: Please ensure that multiturn requests alternate between user and model.")
        })?;
        last = role;
        let parts = parts(content, &at)?;
        match role {
            "user" => responses(parts, &open, &at)?,
            _ => open = calls(parts, issued, &at)?,
        }
        if role == "user" {
            open.clear();
        }
    }
    ensure(last == "user", || {
        "Please ensure that the last content is of the user.".to_owned()
    })
}

/// Checks a user's content: one response for each call in any order, and text.
fn responses(parts: &[Value], open: &[(&str, &str)], at: &str) -> CheckResult {
    let mut answered = HashSet::new();
    for part in parts {
        let part = object(part, at)?;
        known(part, &["text", "functionResponse", "inlineData"], at)?;
        let Some(response) = part.get("functionResponse") else {
            words(part.get("text"), &format!("{at}.text"))?;
            continue;
        };
        let response = object(response, at)?;
        known(response, &["id", "name", "response"], at)?;
        object(response.get("response").unwrap_or(&Value::Null), at)?;
        let name = text(response.get("name"), at)?;
        let id = words(response.get("id"), &format!("{at}.function_response.id"))?;
        ensure(open.contains(&(id, name)), || {
            format!("{at}: function response '{name}' ({id}) comes after no such function call")
        })?;
        unique(id, &mut answered, "function response")?;
    }
    ensure(answered.len() == open.len(), || {
        format!(
            "{at}: Please ensure that the number of function response parts is equal to the number of function call parts \
             of the function call turn."
        )
    })
}

/// The id and the name of each call.
fn calls<'a>(
    parts: &'a [Value],
    issued: &IssuedSignatures,
    at: &str,
) -> Result<Vec<(&'a str, &'a str)>, String> {
    let mut open = Vec::new();
    let mut ids = HashSet::new();
    for part in parts {
        let part = object(part, at)?;
        known(
            part,
            &["text", "functionCall", "thoughtSignature", "thought"],
            at,
        )?;
        let Some(call) = part.get("functionCall") else {
            text(part.get("text"), &format!("{at}.text"))?;
            continue;
        };
        let call = object(call, at)?;
        known(call, &["id", "name", "args"], at)?;
        object(call.get("args").unwrap_or(&Value::Null), at)?;
        let name = text(call.get("name"), at)?;
        legal_name(name, at)?;
        let id = words(call.get("id"), &format!("{at}.function_call.id"))?;
        unique(id, &mut ids, "function call")?;
        if open.is_empty() {
            signature(part, id, name, issued, at)?;
        }
        open.push((id, name));
    }
    Ok(open)
}

/// The first call of a step is signed, if the model signed it.
fn signature(
    part: &Map<String, Value>,
    id: &str,
    name: &str,
    issued: &IssuedSignatures,
    at: &str,
) -> CheckResult {
    let Some(expected) = issued.signature_of(id) else {
        return Ok(());
    };
    match part.get("thoughtSignature").and_then(Value::as_str) {
        None => Err(format!(
            "{at}: Function call is missing a thought_signature in functionCall parts ({name})."
        )),
        Some(given) => ensure(given == expected, || {
            format!("{at}: Corrupted thought signature.")
        }),
    }
}
