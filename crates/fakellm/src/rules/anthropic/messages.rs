//! Checks the history of a request: the blocks of each role, and that every call has its result.

use std::collections::HashSet;

use serde_json::Value;

use crate::rules::{
    CheckResult, IssuedSignatures, array, check_tool_name, ensure, ensure_unique, non_blank_string,
    object, only_keys, optional_bool, string,
};

/// Checks messages in order, and remembers their calls.
#[derive(Default)]
pub(super) struct MessageChecker<'a> {
    call_ids: HashSet<&'a str>,
    /// Ids of the previous message's calls that have no result so far.
    pending_calls: Vec<&'a str>,
}

impl<'a> MessageChecker<'a> {
    /// Returns true if the messages contain calls.
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
                    let blocks = array(content, &format!("{at}.content"))?;
                    ensure(!blocks.is_empty(), || {
                        format!("{at}: all messages must have non-empty content")
                    })?;
                    blocks
                }
            };
            if message["role"] == "user" {
                self.check_user(blocks, &at)?;
            } else {
                self.ensure_no_pending_calls(&at)?;
                self.check_assistant(blocks, &at, issued)?;
            }
        }
        self.ensure_no_pending_calls("messages")?;
        Ok(!self.call_ids.is_empty())
    }

    fn ensure_no_pending_calls(&self, at: &str) -> CheckResult {
        ensure(self.pending_calls.is_empty(), || {
            let ids = self.pending_calls.join(", ");
            format!(
                "{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}"
            )
        })
    }

    fn check_user(&mut self, blocks: &'a [Value], at: &str) -> CheckResult {
        let mut has_other_blocks = false;
        for (index, block) in blocks.iter().enumerate() {
            let at = format!("{at}.content.{index}");
            match block["type"].as_str() {
                Some("tool_result") => {
                    ensure(!has_other_blocks, || {
                        format!("{at}: `tool_result` blocks must come first")
                    })?;
                    self.check_tool_result(block, &at)?;
                }
                Some("text") => check_text(block, &at)?,
                Some("image") => check_image(block, &at)?,
                other => return Err(disallowed_block(other, &at, "a user message")),
            }
            has_other_blocks |= block["type"] != "tool_result";
        }
        self.ensure_no_pending_calls(at)
    }

    fn check_tool_result(&mut self, block: &'a Value, at: &str) -> CheckResult {
        let known = &[
            "type",
            "tool_use_id",
            "content",
            "is_error",
            "cache_control",
        ];
        only_keys(object(block, at)?, known, at)?;
        optional_bool(block.get("is_error"), &format!("{at}.is_error"))?;
        let id = string(block.get("tool_use_id"), &format!("{at}.tool_use_id"))?;
        let index = self.pending_calls.iter().position(|call| *call == id);
        let index = index.ok_or_else(|| {
            format!("{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}")
        })?;
        self.pending_calls.remove(index);
        match block.get("content") {
            Some(Value::String(_)) => Ok(()),
            Some(Value::Array(content)) => {
                for (index, block) in content.iter().enumerate() {
                    let at = format!("{at}.content.{index}");
                    match block["type"].as_str() {
                        Some("text") => check_text(block, &at)?,
                        Some("image") => check_image(block, &at)?,
                        other => return Err(disallowed_block(other, &at, "a result")),
                    }
                }
                Ok(())
            }
            _ => Err(format!("{at}.content: must be a string or an array")),
        }
    }

    fn check_assistant(
        &mut self,
        blocks: &'a [Value],
        at: &str,
        issued: &IssuedSignatures,
    ) -> CheckResult {
        let mut signatures = Vec::new();
        for (index, block) in blocks.iter().enumerate() {
            let at = format!("{at}.content.{index}");
            match block["type"].as_str() {
                Some("text") => check_text(block, &at)?,
                Some("tool_use") => self.check_tool_use(block, &at, issued, &signatures)?,
                Some("thinking") => signatures.push(check_thinking(block, &at, issued)?),
                Some("redacted_thinking") => {
                    only_keys(object(block, &at)?, &["type", "data"], &at)?;
                    non_blank_string(block.get("data"), &at)?;
                }
                other => return Err(disallowed_block(other, &at, "an assistant message")),
            }
        }
        Ok(())
    }

    fn check_tool_use(
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
        let id = string(block.get("id"), &format!("{at}.id"))?;
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        ensure(!id.is_empty() && id.bytes().all(is_allowed), || {
            format!("{at}.id: must match ^[a-zA-Z0-9_-]+$")
        })?;
        ensure_unique(id, &mut self.call_ids, &format!("{at}: `tool_use` ids"))?;
        check_tool_name(string(block.get("name"), at)?, &format!("{at}.name"))?;
        ensure(block["input"].is_object(), || {
            format!("{at}.input: must be an object")
        })?;
        let before = issued.before_call.get(id);
        ensure(before.is_none_or(|before| before == signatures), || {
            format!("{at}: `thinking` blocks before a call must be sent back unchanged")
        })?;
        self.pending_calls.push(id);
        Ok(())
    }
}

fn disallowed_block(kind: Option<&str>, at: &str, message: &str) -> String {
    let kind = kind.unwrap_or_default();
    format!("{at}: a block of type '{kind}' is not allowed in {message}")
}

fn check_text(block: &Value, at: &str) -> CheckResult {
    only_keys(
        object(block, at)?,
        &["type", "text", "cache_control", "citations"],
        at,
    )?;
    non_blank_string(block.get("text"), &format!("{at}: text content blocks")).map(drop)
}

fn check_image(block: &Value, at: &str) -> CheckResult {
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
    non_blank_string(source.get("data"), &format!("{at}.source.data")).map(drop)
}

fn check_thinking<'a>(
    block: &'a Value,
    at: &str,
    issued: &IssuedSignatures,
) -> Result<&'a str, String> {
    only_keys(object(block, at)?, &["type", "thinking", "signature"], at)?;
    let signature = non_blank_string(block.get("signature"), &format!("{at}.signature"))?;
    let text = string(block.get("thinking"), &format!("{at}.thinking"))?;
    let is_unchanged = issued
        .thinking
        .get(signature)
        .is_some_and(|known| known == text);
    ensure(is_unchanged, || {
        format!("{at}: invalid `signature` in `thinking` block")
    })?;
    Ok(signature)
}
