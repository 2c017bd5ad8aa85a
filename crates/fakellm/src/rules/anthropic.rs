//! The rules of Anthropic's `POST /v1/messages`.

mod messages;

use std::collections::HashSet;

use serde_json::{Map, Value};

use self::messages::MessageChecker;
use super::{
    CheckResult, IssuedSignatures, array, check_tool_name, ensure, ensure_unique, for_each_schema,
    non_blank_string, object, only_keys, optional_bool, positive_integer, root_schema, string,
};
use crate::RecordedRequest;

const KEYS: &[&str] = &[
    "model",
    "max_tokens",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "thinking",
    "output_config",
    "metadata",
    "service_tier",
];

pub(super) fn check(
    request: &RecordedRequest,
    body: &Map<String, Value>,
    issued: &IssuedSignatures,
) -> CheckResult {
    check_headers(request)?;
    let marks = body.values().map(count_cache_marks).sum::<usize>();
    ensure(marks <= 4, || {
        format!("a maximum of 4 blocks with cache_control may be provided, found {marks}")
    })?;
    only_keys(body, KEYS, "body")?;
    let model = non_blank_string(body.get("model"), "model")?;
    positive_integer(body.get("max_tokens"), "max_tokens")?;
    optional_bool(body.get("stream"), "stream")?;
    check_sampling(body, model)?;
    check_system(body.get("system"))?;
    let tools = check_tools(body.get("tools"))?;
    check_tool_choice(body.get("tool_choice"), &tools)?;
    let messages = array(body.get("messages").unwrap_or(&Value::Null), "messages")?;
    check_roles(messages, is_recent(model))?;
    let uses_tools = MessageChecker::default().check(messages, issued)?;
    ensure(!uses_tools || !tools.is_empty(), || {
        "requests which include `tool_use` or `tool_result` blocks must define tools".to_owned()
    })
}

fn count_cache_marks(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(count_cache_marks).sum(),
        Value::Object(object) => {
            usize::from(object.contains_key("cache_control"))
                + object.values().map(count_cache_marks).sum::<usize>()
        }
        _ => 0,
    }
}

fn check_headers(request: &RecordedRequest) -> CheckResult {
    let key = request
        .header("x-api-key")
        .is_some_and(|key| !key.is_empty());
    let bearer = request
        .header("authorization")
        .is_some_and(|value| value.starts_with("Bearer "));
    ensure(key != bearer, || {
        "send exactly one of the header x-api-key and a bearer token".to_owned()
    })?;
    ensure(
        request.header("anthropic-version") == Some("2023-06-01"),
        || "anthropic-version: header is required".to_owned(),
    )?;
    ensure(
        request.header("content-type") == Some("application/json"),
        || "content-type: must be application/json".to_owned(),
    )
}

/// True for models that refuse sampling parameters and a prefilled answer.
fn is_recent(model: &str) -> bool {
    ["opus-4-7", "opus-4-8", "sonnet-5", "fable-5"]
        .iter()
        .any(|part| model.contains(part))
}

/// True for models that decide themselves how much they think.
fn is_adaptive(model: &str) -> bool {
    is_recent(model)
        || ["opus-4-6", "sonnet-4-6"]
            .iter()
            .any(|part| model.contains(part))
}

fn check_sampling(body: &Map<String, Value>, model: &str) -> CheckResult {
    let thinking = body.get("thinking").unwrap_or(&Value::Null);
    let kind = thinking["type"].as_str();
    ensure(
        thinking.is_null() || matches!(kind, Some("enabled" | "disabled" | "adaptive")),
        || "thinking.type: must be enabled, disabled or adaptive".to_owned(),
    )?;
    if kind == Some("enabled") {
        let budget = thinking["budget_tokens"].as_u64().unwrap_or(0);
        let most = body["max_tokens"].as_u64().unwrap_or(0);
        ensure((1024..most).contains(&budget), || {
            "thinking.budget_tokens: must be at least 1024 and less than max_tokens".to_owned()
        })?;
    }
    ensure(kind != Some("adaptive") || is_adaptive(model), || {
        "adaptive thinking is not supported on this model".to_owned()
    })?;
    if !is_recent(model) {
        return Ok(());
    }
    for key in ["temperature", "top_p", "top_k"] {
        ensure(!body.contains_key(key), || {
            format!("`{key}` is deprecated for this model.")
        })?;
    }
    ensure(thinking.get("budget_tokens").is_none(), || {
        format!("thinking.budget_tokens: is not supported by {model}")
    })
}

fn check_system(system: Option<&Value>) -> CheckResult {
    match system {
        None | Some(Value::String(_)) => Ok(()),
        Some(Value::Array(blocks)) => {
            for block in blocks {
                only_keys(
                    object(block, "system")?,
                    &["type", "text", "cache_control"],
                    "system",
                )?;
                ensure(block["type"] == "text", || {
                    "system: must be text".to_owned()
                })?;
                non_blank_string(block.get("text"), "system: text content blocks")?;
            }
            Ok(())
        }
        Some(_) => Err("system: must be a string or an array".to_owned()),
    }
}

fn check_tools(tools: Option<&Value>) -> Result<HashSet<&str>, String> {
    let mut names = HashSet::new();
    let Some(tools) = tools else {
        return Ok(names);
    };
    for (index, tool) in array(tools, "tools")?.iter().enumerate() {
        let at = format!("tools.{index}.custom");
        let tool = object(tool, &at)?;
        only_keys(
            tool,
            &[
                "type",
                "name",
                "description",
                "input_schema",
                "cache_control",
                "strict",
            ],
            &at,
        )?;
        let name = string(tool.get("name"), &format!("{at}.name"))?;
        check_tool_name(name, &format!("{at}.name"))?;
        ensure_unique(name, &mut names, &format!("{at}.name"))?;
        if let Some(description) = tool.get("description") {
            string(Some(description), &format!("{at}.description"))?;
        }
        let at = format!("{at}.input_schema");
        let schema = tool.get("input_schema").unwrap_or(&Value::Null);
        root_schema(schema, &at)?;
        for_each_schema(schema, &at, &mut check_property_names)?;
    }
    Ok(names)
}

/// Names must match `^[a-zA-Z0-9_.-]{1,64}$`, and `$ref` isn't allowed.
fn check_property_names(schema: &Map<String, Value>, at: &str) -> CheckResult {
    ensure(!schema.contains_key("$ref"), || {
        format!("{at}: $ref is not supported")
    })?;
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return Ok(());
    };
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    for key in properties.keys() {
        let fits = (1..=64).contains(&key.len()) && key.bytes().all(is_allowed);
        ensure(fits, || {
            format!("{at}.properties: keys should match '^[a-zA-Z0-9_.-]{{1,64}}$', not '{key}'")
        })?;
    }
    Ok(())
}

fn check_tool_choice(choice: Option<&Value>, tools: &HashSet<&str>) -> CheckResult {
    let Some(choice) = choice else {
        return Ok(());
    };
    only_keys(
        object(choice, "tool_choice")?,
        &["type", "name", "disable_parallel_tool_use"],
        "tool_choice",
    )?;
    ensure(!tools.is_empty(), || {
        "tool_choice: may only be specified while providing tools".to_owned()
    })?;
    match choice["type"].as_str() {
        Some("auto" | "any" | "none") => Ok(()),
        Some("tool") if tools.contains(choice["name"].as_str().unwrap_or_default()) => Ok(()),
        _ => Err("tool_choice: unknown type or tool".to_owned()),
    }
}

fn check_roles(messages: &[Value], no_prefill: bool) -> CheckResult {
    let roles: Vec<_> = messages
        .iter()
        .map(|message| message["role"].as_str())
        .collect();
    let known = roles
        .iter()
        .all(|role| matches!(role, Some("user" | "assistant")));
    ensure(known, || {
        "messages: roles must be user or assistant".to_owned()
    })?;
    ensure(roles.first() == Some(&Some("user")), || {
        "messages: first message must use the \"user\" role".to_owned()
    })?;
    let prefilled = roles.last() == Some(&Some("assistant"));
    ensure(!(prefilled && no_prefill), || {
        "messages: this model does not support assistant message prefill".to_owned()
    })
}
