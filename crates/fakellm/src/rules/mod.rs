//! The rules by which the double refuses requests, as the providers do.
//!
//! Written by hand from their documentation and from users' bug reports. Stricter than the
//! providers where that finds more mistakes: undocumented keys are always refused.

mod anthropic;
mod gemini;
mod ollama;
mod openai;

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::RecordedRequest;
use crate::answer::ScriptedPart;

/// The API that a request uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    Anthropic,
    Ollama,
    OpenAi,
    Gemini,
}

impl Api {
    /// The API of a chat path; `None` for any other path.
    pub(crate) fn from_chat_path(path: &str) -> Option<Self> {
        match path {
            "/v1/messages" => Some(Self::Anthropic),
            "/api/chat" => Some(Self::Ollama),
            "/v1/chat/completions" => Some(Self::OpenAi),
            _ => {
                let model = path.strip_prefix("/v1beta/models/")?;
                let is_stream = model.ends_with(":streamGenerateContent?alt=sse");
                is_stream.then_some(Self::Gemini)
            }
        }
    }

    pub(crate) fn from_path(path: &str) -> Self {
        let other = || match path {
            _ if path.starts_with("/api/") => Self::Ollama,
            _ if path.starts_with("/v1beta/") => Self::Gemini,
            _ => Self::OpenAi,
        };
        Self::from_chat_path(path).unwrap_or_else(other)
    }
}

/// The error says what is wrong, and where.
pub(crate) type CheckResult = Result<(), String>;

/// What the double sent earlier and must get back unchanged.
#[derive(Default)]
pub(crate) struct IssuedSignatures {
    /// Thinking texts by their signatures.
    thinking: HashMap<String, String>,
    /// The signatures before a call, by the call's id.
    before_call: HashMap<String, Vec<String>>,
}

impl IssuedSignatures {
    pub(crate) fn record(&mut self, parts: &[ScriptedPart]) {
        let mut signatures = Vec::new();
        for part in parts {
            match part {
                ScriptedPart::Thinking { text, signature } => {
                    self.thinking.insert(signature.clone(), text.clone());
                    signatures.push(signature.clone());
                }
                ScriptedPart::Call { id, .. } => {
                    self.before_call.insert(id.clone(), signatures.clone());
                }
                ScriptedPart::Text(_) => {}
            }
        }
    }
}

impl IssuedSignatures {
    /// The signature that a call came with, if it had one.
    fn signature_of(&self, call: &str) -> Option<&str> {
        let before = self.before_call.get(call)?;
        before.last().map(String::as_str)
    }
}

/// The kind of server that implements OpenAI's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerKind {
    Provider,
    /// A server such as llama.cpp's, which renders the chat template itself and
    /// accepts options for it.
    SelfHosted,
}

pub(crate) fn check(
    request: &RecordedRequest,
    api: Api,
    server: ServerKind,
    issued: &IssuedSignatures,
) -> CheckResult {
    ensure(request.method == "POST", || {
        "only POST is allowed".to_owned()
    })?;
    let body: Value = serde_json::from_slice(&request.body)
        .map_err(|error| format!("the body is not JSON: {error}"))?;
    let body = object(&body, "the body")?;
    match api {
        Api::Anthropic => anthropic::check(request, body, issued),
        Api::Ollama => ollama::check(body),
        Api::OpenAi => openai::check(request, body, server),
        Api::Gemini => gemini::check(request, body, issued),
    }
}

fn ensure(holds: bool, problem: impl FnOnce() -> String) -> CheckResult {
    if holds { Ok(()) } else { Err(problem()) }
}

fn object<'a>(value: &'a Value, at: &str) -> Result<&'a Map<String, Value>, String> {
    value
        .as_object()
        .ok_or_else(|| format!("{at}: must be an object"))
}

fn array<'a>(value: &'a Value, at: &str) -> Result<&'a Vec<Value>, String> {
    value
        .as_array()
        .ok_or_else(|| format!("{at}: must be an array"))
}

fn string<'a>(value: Option<&'a Value>, at: &str) -> Result<&'a str, String> {
    let found = value.and_then(Value::as_str);
    found.ok_or_else(|| format!("{at}: must be a string"))
}

fn non_blank_string<'a>(value: Option<&'a Value>, at: &str) -> Result<&'a str, String> {
    let text = string(value, at)?;
    ensure(!text.trim().is_empty(), || {
        format!("{at}: must not be empty")
    })?;
    Ok(text)
}

fn only_keys(object: &Map<String, Value>, known: &[&str], at: &str) -> CheckResult {
    let unknown = object.keys().find(|key| !known.contains(&key.as_str()));
    unknown.map_or(Ok(()), |key| {
        Err(format!("{at}.{key}: extra inputs are not permitted"))
    })
}

fn optional_bool(value: Option<&Value>, at: &str) -> CheckResult {
    ensure(value.is_none_or(Value::is_boolean), || {
        format!("{at}: must be a boolean")
    })
}

fn positive_integer(value: Option<&Value>, at: &str) -> CheckResult {
    let found = value.and_then(Value::as_u64).is_some_and(|count| count > 0);
    ensure(found, || format!("{at}: must be a positive integer"))
}

/// `^[a-zA-Z0-9_-]{1,64}$`
fn check_tool_name(name: &str, at: &str) -> CheckResult {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let fits = (1..=64).contains(&name.len()) && name.bytes().all(is_allowed);
    ensure(fits, || {
        format!("{at}: '{name}' must match ^[a-zA-Z0-9_-]{{1,64}}$")
    })
}

fn ensure_unique<'a>(name: &'a str, seen: &mut HashSet<&'a str>, at: &str) -> CheckResult {
    ensure(seen.insert(name), || {
        format!("{at}: '{name}' must be unique")
    })
}

/// The root of a tool's schema must be an object without combinators.
fn root_schema<'a>(schema: &'a Value, at: &str) -> Result<&'a Map<String, Value>, String> {
    let root = object(schema, at)?;
    ensure(root.get("type") == Some(&Value::from("object")), || {
        format!("{at}.type: must be 'object'")
    })?;
    for combinator in ["anyOf", "oneOf", "allOf", "not", "if"] {
        ensure(!root.contains_key(combinator), || {
            format!("{at}: does not support oneOf, allOf, or anyOf at the top level ({combinator})")
        })?;
    }
    Ok(root)
}

/// Visits every schema in a schema.
fn for_each_schema(
    schema: &Value,
    at: &str,
    visit: &mut dyn FnMut(&Map<String, Value>, &str) -> CheckResult,
) -> CheckResult {
    // `true` and `false` are schemas too.
    let Some(keywords) = schema.as_object() else {
        return ensure(schema.is_boolean(), || format!("{at}: must be a schema"));
    };
    visit(keywords, at)?;
    for (keyword, value) in keywords {
        let at = format!("{at}.{keyword}");
        match (keyword.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions",
                Value::Object(schemas),
            ) => {
                for (name, schema) in schemas {
                    for_each_schema(schema, &format!("{at}.{name}"), visit)?;
                }
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    for_each_schema(schema, &format!("{at}.{index}"), visit)?;
                }
            }
            ("items" | "additionalProperties" | "not" | "contains", schema) => {
                for_each_schema(schema, &at, visit)?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
