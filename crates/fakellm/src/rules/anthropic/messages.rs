//! Checks the history of a request: the blocks of each role, and that every call has its result.

use std::collections::HashSet;

use serde_json::Value;

use crate::rules::{
    CheckResult, IssuedSignatures, ensure, legal_name, list, object, only_keys, optional_bool,
    text, unique, words,
};

/// What is known at this point of the history.
#[derive(Default)]
pub(super) struct Messages<'a> {
    ids: HashSet<&'a str>,
    /// Calls of the message before without a result so far.
    open: Vec<&'a str>,
}

impl<'a> Messages<'a> {
    /// True if it contains calls.
    pub(super) fn check(
        mut self,
        messages: &'a [Value],
        issued: &IssuedSignatures,
    ) -> Result<bool, String> {
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

    fn unanswered(&self, at: &str) -> CheckResult {
        ensure(self.open.is_empty(), || {
            let ids = self.open.join(", ");
            format!(
                "{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}"
            )
        })
    }

    fn user(&mut self, blocks: &'a [Value], at: &str) -> CheckResult {
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

    fn result(&mut self, block: &'a Value, at: &str) -> CheckResult {
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

    fn assistant(
        &mut self,
        blocks: &'a [Value],
        at: &str,
        issued: &IssuedSignatures,
    ) -> CheckResult {
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
        issued: &IssuedSignatures,
        signatures: &[&str],
    ) -> CheckResult {
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

fn plain_text(block: &Value, at: &str) -> CheckResult {
    only_keys(
        object(block, at)?,
        &["type", "text", "cache_control", "citations"],
        at,
    )?;
    words(block.get("text"), &format!("{at}: text content blocks")).map(drop)
}

fn image(block: &Value, at: &str) -> CheckResult {
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

fn thinking<'a>(block: &'a Value, at: &str, issued: &IssuedSignatures) -> Result<&'a str, String> {
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
