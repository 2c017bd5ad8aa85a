//! `POST /v1/messages`.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{
    Checked, Issued, each_schema, ensure, legal_name, list, object, only_keys, optional_bool,
    positive, root_schema, text, unique, words,
};
use crate::Recorded;

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

pub(super) fn check(request: &Recorded, body: &Map<String, Value>, issued: &Issued) -> Checked {
    headers(request)?;
    only_keys(body, KEYS, "body")?;
    let model = words(body.get("model"), "model")?;
    positive(body.get("max_tokens"), "max_tokens")?;
    optional_bool(body.get("stream"), "stream")?;
    sampling(body, model)?;
    system(body.get("system"))?;
    let tools = tools(body.get("tools"))?;
    choice(body.get("tool_choice"), &tools)?;
    let messages = list(body.get("messages").unwrap_or(&Value::Null), "messages")?;
    messages_in_order(messages, is_new(model))?;
    let uses_tools = Messages::default().check(messages, issued)?;
    ensure(!uses_tools || !tools.is_empty(), || {
        "requests which include `tool_use` or `tool_result` blocks must define tools".to_owned()
    })
}

fn headers(request: &Recorded) -> Checked {
    let key = request
        .header("x-api-key")
        .is_some_and(|key| !key.is_empty());
    let bearer = request
        .header("authorization")
        .is_some_and(|value| value.starts_with("Bearer "));
    ensure(key != bearer, || {
        "x-api-key: exactly one of it and a bearer token is needed".to_owned()
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

/// Models that sample as they like and take no beginning of their own answer.
fn is_new(model: &str) -> bool {
    ["opus-4-7", "opus-4-8", "sonnet-5", "fable-5"]
        .iter()
        .any(|new| model.contains(new))
}

fn sampling(body: &Map<String, Value>, model: &str) -> Checked {
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
    if !is_new(model) {
        return Ok(());
    }
    for key in ["temperature", "top_p", "top_k"] {
        ensure(!body.contains_key(key), || {
            format!("{key}: is not supported by {model}")
        })?;
    }
    ensure(thinking.get("budget_tokens").is_none(), || {
        format!("thinking.budget_tokens: is not supported by {model}")
    })
}

fn system(system: Option<&Value>) -> Checked {
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
                words(block.get("text"), "system: text content blocks")?;
            }
            Ok(())
        }
        Some(_) => Err("system: must be a string or an array".to_owned()),
    }
}

fn tools(tools: Option<&Value>) -> Result<HashSet<&str>, String> {
    let mut names = HashSet::new();
    let Some(tools) = tools else {
        return Ok(names);
    };
    for (index, tool) in list(tools, "tools")?.iter().enumerate() {
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
        let name = text(tool.get("name"), &format!("{at}.name"))?;
        legal_name(name, &format!("{at}.name"))?;
        unique(name, &mut names, "tools: tool names")?;
        if let Some(description) = tool.get("description") {
            text(Some(description), &format!("{at}.description"))?;
        }
        let at = format!("{at}.input_schema");
        let schema = tool.get("input_schema").unwrap_or(&Value::Null);
        root_schema(schema, &at)?;
        each_schema(schema, &at, &mut property_names)?;
    }
    Ok(names)
}

/// `^[a-zA-Z0-9_.-]{1,64}$`, and nothing that refers to elsewhere.
fn property_names(schema: &Map<String, Value>, at: &str) -> Checked {
    ensure(!schema.contains_key("$ref"), || {
        format!("{at}: $ref is not resolved here")
    })?;
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return Ok(());
    };
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    for key in properties.keys() {
        let fits = (1..=64).contains(&key.len()) && key.bytes().all(legal);
        ensure(fits, || {
            format!("{at}.properties: keys should match '^[a-zA-Z0-9_.-]{{1,64}}$', not '{key}'")
        })?;
    }
    Ok(())
}

fn choice(choice: Option<&Value>, tools: &HashSet<&str>) -> Checked {
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
        _ => Err("tool_choice: names no tool that is there".to_owned()),
    }
}

fn messages_in_order(messages: &[Value], no_prefill: bool) -> Checked {
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

/// What is known on the way through the history.
#[derive(Default)]
struct Messages<'a> {
    ids: HashSet<&'a str>,
    /// Calls of the message before, without a result so far.
    open: Vec<&'a str>,
}

impl<'a> Messages<'a> {
    /// True if there are calls in it.
    fn check(mut self, messages: &'a [Value], issued: &Issued) -> Result<bool, String> {
        for (index, message) in messages.iter().enumerate() {
            let at = format!("messages.{index}");
            only_keys(object(message, &at)?, &["role", "content"], &at)?;
            let blocks = match &message["content"] {
                Value::String(text) => {
                    ensure(!text.trim().is_empty(), || {
                        format!("{at}: all messages must have non-empty content")
                    })?;
                    &[][..]
                }
                content => {
                    let blocks = list(content, &format!("{at}.content"))?;
                    ensure(!blocks.is_empty(), || {
                        format!("{at}: all messages must have non-empty content")
                    })?;
                    blocks
                }
            };
            if message["role"] == "user" {
                self.user(blocks, &at)?;
            } else {
                self.unanswered(&at)?;
                self.assistant(blocks, &at, issued)?;
            }
        }
        self.unanswered("messages")?;
        Ok(!self.ids.is_empty())
    }

    fn unanswered(&self, at: &str) -> Checked {
        ensure(self.open.is_empty(), || {
            let ids = self.open.join(", ");
            format!(
                "{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}"
            )
        })
    }

    fn user(&mut self, blocks: &'a [Value], at: &str) -> Checked {
        let mut others = false;
        for (index, block) in blocks.iter().enumerate() {
            let at = format!("{at}.content.{index}");
            match block["type"].as_str() {
                Some("tool_result") => {
                    ensure(!others, || {
                        format!("{at}: `tool_result` blocks must come first")
                    })?;
                    self.result(block, &at)?;
                }
                Some("text") => plain_text(block, &at)?,
                Some("image") => image(block, &at)?,
                other => return Err(format!("{at}: {other:?} is not allowed in a user message")),
            }
            others |= block["type"] != "tool_result";
        }
        self.unanswered(at)
    }

    fn result(&mut self, block: &'a Value, at: &str) -> Checked {
        let known = &[
            "type",
            "tool_use_id",
            "content",
            "is_error",
            "cache_control",
        ];
        only_keys(object(block, at)?, known, at)?;
        optional_bool(block.get("is_error"), &format!("{at}.is_error"))?;
        let id = text(block.get("tool_use_id"), &format!("{at}.tool_use_id"))?;
        let place = self.open.iter().position(|open| *open == id);
        let place = place.ok_or_else(|| {
            format!("{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}")
        })?;
        self.open.remove(place);
        match block.get("content") {
            Some(Value::String(_)) => Ok(()),
            Some(Value::Array(content)) => {
                for (index, block) in content.iter().enumerate() {
                    let at = format!("{at}.content.{index}");
                    match block["type"].as_str() {
                        Some("text") => plain_text(block, &at)?,
                        Some("image") => image(block, &at)?,
                        other => return Err(format!("{at}: {other:?} is not allowed in a result")),
                    }
                }
                Ok(())
            }
            _ => Err(format!("{at}.content: must be a string or an array")),
        }
    }

    fn assistant(&mut self, blocks: &'a [Value], at: &str, issued: &Issued) -> Checked {
        let mut signatures = Vec::new();
        for (index, block) in blocks.iter().enumerate() {
            let at = format!("{at}.content.{index}");
            match block["type"].as_str() {
                Some("text") => plain_text(block, &at)?,
                Some("tool_use") => self.call(block, &at, issued, &signatures)?,
                Some("thinking") => signatures.push(thinking(block, &at, issued)?),
                Some("redacted_thinking") => {
                    only_keys(object(block, &at)?, &["type", "data"], &at)?;
                    words(block.get("data"), &at)?;
                }
                other => {
                    return Err(format!(
                        "{at}: {other:?} is not allowed in an assistant message"
                    ));
                }
            }
        }
        Ok(())
    }

    fn call(
        &mut self,
        block: &'a Value,
        at: &str,
        issued: &Issued,
        signatures: &[&str],
    ) -> Checked {
        only_keys(
            object(block, at)?,
            &["type", "id", "name", "input", "cache_control"],
            at,
        )?;
        let id = text(block.get("id"), &format!("{at}.id"))?;
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        ensure(!id.is_empty() && id.bytes().all(legal), || {
            format!("{at}.id: must match ^[a-zA-Z0-9_-]+$")
        })?;
        unique(id, &mut self.ids, &format!("{at}: `tool_use` ids"))?;
        legal_name(text(block.get("name"), at)?, &format!("{at}.name"))?;
        ensure(block["input"].is_object(), || {
            format!("{at}.input: must be an object")
        })?;
        let before = issued.before_call.get(id);
        ensure(before.is_none_or(|before| before == signatures), || {
            format!("{at}: `thinking` blocks before a call must be given back as they were")
        })?;
        self.open.push(id);
        Ok(())
    }
}

fn plain_text(block: &Value, at: &str) -> Checked {
    only_keys(
        object(block, at)?,
        &["type", "text", "cache_control", "citations"],
        at,
    )?;
    words(block.get("text"), &format!("{at}: text content blocks")).map(drop)
}

fn image(block: &Value, at: &str) -> Checked {
    only_keys(object(block, at)?, &["type", "source", "cache_control"], at)?;
    let source = &block["source"];
    only_keys(object(source, at)?, &["type", "media_type", "data"], at)?;
    let kinds = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    ensure(
        kinds.contains(&source["media_type"].as_str().unwrap_or_default()),
        || {
            format!(
                "{at}.source.media_type: must be one of {}",
                kinds.join(", ")
            )
        },
    )?;
    words(source.get("data"), &format!("{at}.source.data")).map(drop)
}

fn thinking<'a>(block: &'a Value, at: &str, issued: &Issued) -> Result<&'a str, String> {
    only_keys(object(block, at)?, &["type", "thinking", "signature"], at)?;
    let signature = words(block.get("signature"), &format!("{at}.signature"))?;
    let said = text(block.get("thinking"), &format!("{at}.thinking"))?;
    let same = issued
        .thinking
        .get(signature)
        .is_some_and(|known| known == said);
    ensure(same, || {
        format!("{at}: invalid `signature` in `thinking` block")
    })?;
    Ok(signature)
}
