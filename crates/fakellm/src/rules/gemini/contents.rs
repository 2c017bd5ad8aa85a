//! Checks the contents of a request: that the roles alternate, and that every
//! call has its response.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{check_function_name, non_empty_parts, reject_unknown_keys};
use crate::rules::{
    CheckResult, IssuedSignatures, ensure, ensure_unique, non_blank_string, object, string,
};

pub(super) fn check_contents<'a>(contents: &'a [Value], issued: &IssuedSignatures) -> CheckResult {
    let mut pending_calls: Vec<(&'a str, &'a str)> = Vec::new();
    // As if the model had spoken before, so that the first content must be the user's.
    let mut previous_role = "model";
    ensure(!contents.is_empty(), || {
        "contents is not specified".to_owned()
    })?;
    for (index, content) in contents.iter().enumerate() {
        let at = format!("contents[{index}]");
        let content = object(content, &at)?;
        reject_unknown_keys(content, &["role", "parts"], &at)?;
        let role = string(content.get("role"), &format!("{at}.role"))?;
        ensure(["user", "model"].contains(&role), || {
            format!("{at}: unknown role '{role}'; use user or model")
        })?;
        ensure(role != previous_role, || {
            format!("{at}: Please ensure that multiturn requests alternate between user and model.")
        })?;
        previous_role = role;
        let parts = non_empty_parts(content, &at)?;
        match role {
            "user" => {
                check_function_responses(parts, &pending_calls, &at)?;
                pending_calls.clear();
            }
            _ => pending_calls = check_function_calls(parts, issued, &at)?,
        }
    }
    ensure(previous_role == "user", || {
        "the last content must have the role 'user'".to_owned()
    })
}

/// Checks a user's content: one response for each call in any order, and text.
fn check_function_responses(
    parts: &[Value],
    pending_calls: &[(&str, &str)],
    at: &str,
) -> CheckResult {
    let mut answered = HashSet::new();
    for part in parts {
        let part = object(part, at)?;
        reject_unknown_keys(part, &["text", "functionResponse", "inlineData"], at)?;
        let Some(response) = part.get("functionResponse") else {
            non_blank_string(part.get("text"), &format!("{at}.text"))?;
            continue;
        };
        let response = object(response, at)?;
        reject_unknown_keys(response, &["id", "name", "response"], at)?;
        object(response.get("response").unwrap_or(&Value::Null), at)?;
        let name = string(response.get("name"), at)?;
        let id = non_blank_string(response.get("id"), &format!("{at}.function_response.id"))?;
        ensure(pending_calls.contains(&(id, name)), || {
            format!(
                "{at}: function response '{name}' ({id}) does not match a function call in the previous turn"
            )
        })?;
        ensure_unique(id, &mut answered, &format!("{at}.function_response.id"))?;
    }
    ensure(answered.len() == pending_calls.len(), || {
        format!(
            "{at}: Please ensure that the number of function response parts is equal to the number of function call parts \
             of the function call turn."
        )
    })
}

/// Returns the id and the name of each call.
fn check_function_calls<'a>(
    parts: &'a [Value],
    issued: &IssuedSignatures,
    at: &str,
) -> Result<Vec<(&'a str, &'a str)>, String> {
    let mut calls = Vec::new();
    let mut ids = HashSet::new();
    for part in parts {
        let part = object(part, at)?;
        reject_unknown_keys(
            part,
            &["text", "functionCall", "thoughtSignature", "thought"],
            at,
        )?;
        let Some(call) = part.get("functionCall") else {
            string(part.get("text"), &format!("{at}.text"))?;
            continue;
        };
        let call = object(call, at)?;
        reject_unknown_keys(call, &["id", "name", "args"], at)?;
        object(call.get("args").unwrap_or(&Value::Null), at)?;
        let name = string(call.get("name"), at)?;
        check_function_name(name, &format!("{at}.function_call.name"))?;
        let id = non_blank_string(call.get("id"), &format!("{at}.function_call.id"))?;
        ensure_unique(id, &mut ids, &format!("{at}.function_call.id"))?;
        if calls.is_empty() {
            check_thought_signature(part, id, name, issued, at)?;
        }
        calls.push((id, name));
    }
    Ok(calls)
}

/// If the model signed the first call of its turn, the client must send
/// that signature back unchanged.
fn check_thought_signature(
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
