//! The rules of OpenAI's `POST /v1/chat/completions`.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{
    CheckResult, ServerKind, array, check_tool_name, ensure, ensure_unique, for_each_schema,
    non_blank_string, object, only_keys, optional_bool, positive_integer, root_schema, string,
};
use crate::RecordedRequest;

const KEYS: &[&str] = &[
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "seed",
    "max_tokens",
    "max_completion_tokens",
    "reasoning_effort",
    "stop",
    "response_format",
    TEMPLATE_OPTIONS,
];
/// Only servers that render the chat template themselves accept these.
const TEMPLATE_OPTIONS: &str = "chat_template_kwargs";

pub(super) fn check(
    request: &RecordedRequest,
    body: &Map<String, Value>,
    server: ServerKind,
) -> CheckResult {
    ensure(
        request.header("content-type") == Some("application/json"),
        || "content-type: must be application/json".to_owned(),
    )?;
    let bearer = |value: &str| {
        value
            .strip_prefix("Bearer ")
            .is_some_and(|key| !key.trim().is_empty())
    };
    // A server on this machine needs no key, so it is optional; an empty one is a bug of the
    // client.
    ensure(request.header("authorization").is_none_or(bearer), || {
        "authorization: must be a bearer token".to_owned()
    })?;
    only_keys(body, KEYS, "body")?;
    if let Some(options) = body.get(TEMPLATE_OPTIONS) {
        ensure(server == ServerKind::SelfHosted, || {
            format!("Unrecognized request argument supplied: {TEMPLATE_OPTIONS}")
        })?;
        object(options, TEMPLATE_OPTIONS)?;
    }
    let model = non_blank_string(body.get("model"), "model")?;
    check_sampling(body, model)?;
    optional_bool(body.get("stream"), "stream")?;
    if let Some(options) = body.get("stream_options") {
        ensure(body.get("stream") == Some(&Value::Bool(true)), || {
            "stream_options: is only allowed when stream is enabled".to_owned()
        })?;
        only_keys(
            object(options, "stream_options")?,
            &["include_usage"],
            "stream_options",
        )?;
        optional_bool(options.get("include_usage"), "stream_options.include_usage")?;
    }
    let has_tools = check_tools(body.get("tools"))?;
    for key in ["tool_choice", "parallel_tool_calls"] {
        ensure(has_tools || !body.contains_key(key), || {
            format!("{key}: is only allowed when tools are specified")
        })?;
    }
    check_messages(array(
        body.get("messages").unwrap_or(&Value::Null),
        "messages",
    )?)
}

/// Reasoning models require `max_completion_tokens` instead of `max_tokens`,
/// and refuse a temperature.
fn check_sampling(body: &Map<String, Value>, model: &str) -> CheckResult {
    for key in ["max_tokens", "max_completion_tokens"] {
        if body.contains_key(key) {
            positive_integer(body.get(key), key)?;
        }
    }
    let is_reasoning_model = ["gpt-5", "o1", "o3", "o4"]
        .iter()
        .any(|start| model.starts_with(start));
    if !is_reasoning_model {
        return Ok(());
    }
    ensure(!body.contains_key("max_tokens"), || {
        "max_tokens: is not supported with this model. Use 'max_completion_tokens' instead."
            .to_owned()
    })?;
    body.get("temperature").map_or(Ok(()), |value| {
        Err(format!(
            "Unsupported value: 'temperature' does not support {value} with this model. Only the default (1) value is supported."
        ))
    })
}

fn check_tools(tools: Option<&Value>) -> Result<bool, String> {
    let Some(tools) = tools else {
        return Ok(false);
    };
    let tools = array(tools, "tools")?;
    ensure((1..=128).contains(&tools.len()), || {
        "tools: must have 1 to 128 items".to_owned()
    })?;
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("tools.{index}");
        let tool = object(tool, &at)?;
        only_keys(tool, &["type", "function"], &at)?;
        ensure(tool.get("type") == Some(&Value::from("function")), || {
            format!("{at}.type: must be 'function'")
        })?;
        let at = format!("{at}.function");
        let function = object(tool.get("function").unwrap_or(&Value::Null), &at)?;
        only_keys(
            function,
            &["name", "description", "parameters", "strict"],
            &at,
        )?;
        let name = string(function.get("name"), &format!("{at}.name"))?;
        check_tool_name(name, &format!("{at}.name"))?;
        ensure_unique(name, &mut names, &format!("{at}.name"))?;
        let at = format!("{at}.parameters");
        let schema = function.get("parameters").unwrap_or(&Value::Null);
        let root = root_schema(schema, &at)?;
        ensure(root.contains_key("properties"), || {
            format!("{at}: object schema missing properties")
        })?;
        for_each_schema(schema, &at, &mut |schema, at| {
            let array = schema.get("type") == Some(&Value::from("array"));
            ensure(!array || schema.contains_key("items"), || {
                format!("{at}: array schema missing items")
            })?;
            ensure(!schema.contains_key("$ref"), || {
                format!("{at}: $ref is not supported")
            })
        })?;
    }
    Ok(true)
}

fn check_messages<'a>(messages: &'a [Value]) -> CheckResult {
    ensure(!messages.is_empty(), || {
        "messages: must not be empty".to_owned()
    })?;
    let mut pending_calls: Vec<&'a str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages.{index}");
        let message = object(message, &at)?;
        let role = string(message.get("role"), &format!("{at}.role"))?;
        if role == "tool" {
            only_keys(message, &["role", "content", "tool_call_id"], &at)?;
            string(message.get("content"), &format!("{at}.content"))?;
            let id = non_blank_string(message.get("tool_call_id"), &format!("{at}.tool_call_id"))?;
            let index = pending_calls.iter().position(|call| *call == id);
            let index = index.ok_or_else(|| {
                format!("{at}: messages with role 'tool' must be a response to a preceding message with 'tool_calls' ({id})")
            })?;
            pending_calls.remove(index);
            continue;
        }
        ensure_no_pending_calls(&pending_calls, &at)?;
        match role {
            "system" | "developer" | "user" => {
                only_keys(message, &["role", "content"], &at)?;
                check_content(message.get("content"), &at)?;
            }
            "assistant" => pending_calls = check_assistant_message(message, &at)?,
            other => return Err(format!("{at}.role: unknown role '{other}'")),
        }
    }
    ensure_no_pending_calls(&pending_calls, "messages")
}

fn ensure_no_pending_calls(ids: &[&str], at: &str) -> CheckResult {
    ensure(ids.is_empty(), || {
        let ids = ids.join(", ");
        format!(
            "{at}: an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id': {ids}"
        )
    })
}

/// Text, or text and images.
fn check_content(content: Option<&Value>, at: &str) -> CheckResult {
    match content {
        Some(Value::Array(parts)) => {
            for part in parts {
                match part["type"].as_str() {
                    Some("text") => non_blank_string(part.get("text"), at)?,
                    Some("image_url") => non_blank_string(part["image_url"].get("url"), at)?,
                    other => {
                        let kind = other.unwrap_or_default();
                        return Err(format!("{at}.content: unknown part type '{kind}'"));
                    }
                };
            }
            Ok(())
        }
        content => string(content, &format!("{at}.content")).map(drop),
    }
}

/// Returns the ids of the message's calls.
fn check_assistant_message<'a>(
    message: &'a Map<String, Value>,
    at: &str,
) -> Result<Vec<&'a str>, String> {
    only_keys(message, &["role", "content", "tool_calls"], at)?;
    let Some(calls) = message.get("tool_calls") else {
        non_blank_string(message.get("content"), &format!("{at}.content"))?;
        return Ok(Vec::new());
    };
    if let Some(content) = message.get("content").filter(|content| !content.is_null()) {
        string(Some(content), &format!("{at}.content"))?;
    }
    let calls = array(calls, &format!("{at}.tool_calls"))?;
    ensure(!calls.is_empty(), || {
        format!("{at}.tool_calls: must not be empty")
    })?;
    let mut ids = HashSet::new();
    let mut pending_calls = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let at = format!("{at}.tool_calls.{index}");
        only_keys(object(call, &at)?, &["id", "type", "function"], &at)?;
        ensure(call["type"] == "function", || {
            format!("{at}.type: must be 'function'")
        })?;
        let id = non_blank_string(call.get("id"), &format!("{at}.id"))?;
        ensure_unique(id, &mut ids, &format!("{at}.id"))?;
        let at = format!("{at}.function");
        let function = object(&call["function"], &at)?;
        only_keys(function, &["name", "arguments"], &at)?;
        check_tool_name(string(function.get("name"), &at)?, &format!("{at}.name"))?;
        let arguments = string(function.get("arguments"), &format!("{at}.arguments"))?;
        let parsed: Option<Value> = serde_json::from_str(arguments).ok();
        ensure(parsed.is_some_and(|value| value.is_object()), || {
            format!("{at}.arguments: must be a string that contains a JSON object")
        })?;
        pending_calls.push(id);
    }
    Ok(pending_calls)
}
