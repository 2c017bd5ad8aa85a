//! The rules of `POST /api/chat`. Ollama reads JSON into Go structs: a wrong type is a 400, but
//! an unknown key is silently dropped. The double refuses those too, because the model never
//! sees a dropped constraint.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{
    CheckResult, array, ensure, ensure_unique, non_blank_string, object, only_keys, optional_bool,
    positive_integer, root_schema, string,
};

const KEYS: &[&str] = &[
    "model",
    "messages",
    "tools",
    "stream",
    "format",
    "options",
    "keep_alive",
    "think",
    "truncate",
    "shift",
];
const OPTIONS: &[&str] = &[
    "num_ctx",
    "num_predict",
    "temperature",
    "seed",
    "top_k",
    "top_p",
    "min_p",
    "repeat_penalty",
    "stop",
];
const SCHEMA: &[&str] = &[
    "type",
    "description",
    "enum",
    "items",
    "properties",
    "required",
    "anyOf",
];

pub(super) fn check(body: &Map<String, Value>) -> CheckResult {
    only_keys(body, KEYS, "body")?;
    non_blank_string(body.get("model"), "model")?;
    optional_bool(body.get("stream"), "stream")?;
    match body.get("keep_alive") {
        None | Some(Value::Number(_)) => {}
        Some(Value::String(duration)) => check_go_duration(duration)?,
        Some(_) => return Err("keep_alive: must be a number of seconds or a duration".to_owned()),
    }
    match body.get("think") {
        None | Some(Value::Bool(_)) => {}
        Some(Value::String(level))
            if ["low", "medium", "high", "max"].contains(&level.as_str()) => {}
        Some(_) => return Err("think: must be a boolean or low, medium, high, max".to_owned()),
    }
    let options = object(body.get("options").unwrap_or(&Value::Null), "options")?;
    only_keys(options, OPTIONS, "options")?;
    positive_integer(options.get("num_ctx"), "options.num_ctx")?;
    if let Some(tools) = body.get("tools") {
        check_tools(tools)?;
    }
    check_messages(array(
        body.get("messages").unwrap_or(&Value::Null),
        "messages",
    )?)
}

fn check_go_duration(text: &str) -> CheckResult {
    let number = text
        .trim_start_matches('-')
        .trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let unit = text.trim_start_matches(|first: char| !first.is_ascii_alphabetic());
    let known = ["ns", "us", "ms", "s", "m", "h"].contains(&unit);
    ensure(number.parse::<f64>().is_ok() && known, || {
        format!("keep_alive: '{text}' is not a duration")
    })
}

fn check_tools(tools: &Value) -> CheckResult {
    let mut names = HashSet::new();
    for (index, tool) in array(tools, "tools")?.iter().enumerate() {
        let at = format!("tools.{index}");
        let tool = object(tool, &at)?;
        only_keys(tool, &["type", "function"], &at)?;
        ensure(tool.get("type") == Some(&Value::from("function")), || {
            format!("{at}.type: must be 'function'")
        })?;
        let at = format!("{at}.function");
        let function = object(tool.get("function").unwrap_or(&Value::Null), &at)?;
        only_keys(function, &["name", "description", "parameters"], &at)?;
        ensure_unique(
            non_blank_string(function.get("name"), &format!("{at}.name"))?,
            &mut names,
            &format!("{at}.name"),
        )?;
        string(function.get("description"), &format!("{at}.description"))?;
        let at = format!("{at}.parameters");
        let parameters = root_schema(function.get("parameters").unwrap_or(&Value::Null), &at)?;
        only_keys(parameters, &["type", "properties", "required"], &at)?;
        ensure(parameters.contains_key("properties"), || {
            format!("{at}.properties: is missing")
        })?;
        check_schema(parameters, &at)?;
    }
    Ok(())
}

/// Checks a property's schema: only keywords that Ollama has fields for, with their types.
fn check_schema(keywords: &Map<String, Value>, at: &str) -> CheckResult {
    only_keys(keywords, SCHEMA, at)?;
    let is_type = |value: &Value| value.as_str().is_some_and(is_known_type);
    let typed = match keywords.get("type") {
        None => true,
        Some(Value::Array(types)) => !types.is_empty() && types.iter().all(is_type),
        Some(one) => is_type(one),
    };
    ensure(typed, || {
        format!("{at}.type: must be a type or a list of types")
    })?;
    if let Some(description) = keywords.get("description") {
        string(Some(description), &format!("{at}.description"))?;
    }
    if let Some(values) = keywords.get("enum") {
        array(values, &format!("{at}.enum"))?;
    }
    if let Some(properties) = keywords.get("properties") {
        for (name, property) in object(properties, &format!("{at}.properties"))? {
            let at = format!("{at}.properties.{name}");
            check_schema(object(property, &at)?, &at)?;
        }
    }
    check_required(keywords, at)?;
    if let Some(items) = keywords.get("items") {
        check_schema(
            object(items, &format!("{at}.items"))?,
            &format!("{at}.items"),
        )?;
    }
    for (index, form) in keywords
        .get("anyOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
    {
        let at = format!("{at}.anyOf.{index}");
        check_schema(object(form, &at)?, &at)?;
    }
    Ok(())
}

fn is_known_type(name: &str) -> bool {
    [
        "string", "number", "integer", "boolean", "array", "object", "null",
    ]
    .contains(&name)
}

fn check_required(keywords: &Map<String, Value>, at: &str) -> CheckResult {
    let Some(required) = keywords.get("required") else {
        return Ok(());
    };
    let properties = keywords.get("properties").and_then(Value::as_object);
    for name in array(required, &format!("{at}.required"))? {
        let name = string(Some(name), &format!("{at}.required"))?;
        let known = properties.is_some_and(|known| known.contains_key(name));
        ensure(known, || {
            format!("{at}.required: '{name}' is not a property")
        })?;
    }
    Ok(())
}

/// Calls of an assistant message that wait for their results, in order.
type PendingCalls<'a> = std::collections::VecDeque<(&'a str, Option<&'a str>)>;

fn check_messages(messages: &[Value]) -> CheckResult {
    let mut pending_calls = PendingCalls::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages.{index}");
        let message = object(message, &at)?;
        let known = &[
            "role",
            "content",
            "thinking",
            "images",
            "tool_calls",
            "tool_name",
            "tool_call_id",
        ];
        only_keys(message, known, &at)?;
        let content = string(message.get("content"), &format!("{at}.content"))?;
        let role = string(message.get("role"), &format!("{at}.role"))?;
        if role == "tool" {
            check_tool_result(message, &at, &mut pending_calls)?;
            continue;
        }
        ensure(pending_calls.is_empty(), || {
            format!(
                "{at}: {} calls before this message have no result",
                pending_calls.len()
            )
        })?;
        for key in ["tool_name", "tool_call_id"] {
            ensure(!message.contains_key(key), || {
                format!("{at}.{key}: is allowed only in tool messages")
            })?;
        }
        match role {
            "assistant" => {
                pending_calls = check_tool_calls(message, &at)?;
                let has_content = !content.is_empty()
                    || !pending_calls.is_empty()
                    || message.contains_key("thinking");
                ensure(has_content, || {
                    format!("{at}: an assistant message must have text, thinking or tool calls")
                })?;
            }
            "system" | "user" => {
                ensure(!message.contains_key("tool_calls"), || {
                    format!("{at}.tool_calls: are allowed only in assistant messages")
                })?;
                ensure(!content.is_empty(), || {
                    format!("{at}.content: must not be empty")
                })?;
            }
            other => {
                return Err(format!(
                    "{at}.role: '{other}' must be system, user, assistant or tool"
                ));
            }
        }
    }
    ensure(pending_calls.is_empty(), || {
        format!("messages: {} calls have no result", pending_calls.len())
    })?;
    let has_user = messages.iter().any(|message| message["role"] == "user");
    ensure(has_user, || {
        "messages: at least one message must have the role 'user'".to_owned()
    })
}

fn check_tool_calls<'a>(
    message: &'a Map<String, Value>,
    at: &str,
) -> Result<PendingCalls<'a>, String> {
    let mut pending_calls = PendingCalls::new();
    let Some(calls) = message.get("tool_calls") else {
        return Ok(pending_calls);
    };
    for (index, call) in array(calls, &format!("{at}.tool_calls"))?
        .iter()
        .enumerate()
    {
        let at = format!("{at}.tool_calls.{index}");
        only_keys(object(call, &at)?, &["id", "function"], &at)?;
        let id = call
            .get("id")
            .map(|id| non_blank_string(Some(id), &format!("{at}.id")))
            .transpose()?;
        let at = format!("{at}.function");
        let function = object(&call["function"], &at)?;
        only_keys(function, &["index", "name", "arguments"], &at)?;
        let name = non_blank_string(function.get("name"), &format!("{at}.name"))?;
        ensure(
            function.get("arguments").is_some_and(Value::is_object),
            || format!("{at}.arguments: must be an object"),
        )?;
        pending_calls.push_back((name, id));
    }
    Ok(pending_calls)
}

fn check_tool_result(
    message: &Map<String, Value>,
    at: &str,
    pending_calls: &mut PendingCalls<'_>,
) -> CheckResult {
    let name = string(message.get("tool_name"), &format!("{at}.tool_name"))?;
    let (called, id) = pending_calls
        .pop_front()
        .ok_or_else(|| format!("{at}: a tool result without a call"))?;
    ensure(name == called, || {
        format!("{at}.tool_name: '{name}', but the call was of '{called}'")
    })?;
    match (message.get("tool_call_id"), id) {
        (Some(given), Some(id)) if given != id => Err(format!(
            "{at}.tool_call_id: {given}, but the call was '{id}'"
        )),
        _ => Ok(()),
    }
}
