//! What Anthropic accepts.

use super::*;

#[test]
fn anthropic_requests_are_checked_as_the_provider_does() {
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "weather", "input": {} });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let tool = |name: &str| json!({ "name": name, "input_schema": schema() });
    assert_each_is_refused(
        Api::Anthropic,
        &anthropic(),
        &[
            ("/model", json!(null), "model: must be a string"),
            (
                "/max_tokens",
                json!(null),
                "max_tokens: must be a positive integer",
            ),
            ("/messages", json!(null), "messages: must be an array"),
            (
                "/messages/0/role",
                json!("system"),
                "roles must be user or assistant",
            ),
            (
                "/messages/0",
                json!(null),
                "first message must use the \"user\" role",
            ),
            (
                "/messages/0/content",
                json!(""),
                "must have non-empty content",
            ),
            (
                "/messages/0/name",
                json!("x"),
                "messages.0.name: extra inputs",
            ),
            ("/messages/2", json!(null), "prefill"),
            (
                "/messages/2/content/1",
                json!(null),
                "without `tool_result` blocks immediately after: b",
            ),
            (
                "/messages/2/content/1/tool_use_id",
                json!("c"),
                "unexpected `tool_use_id`",
            ),
            (
                "/messages/2/content/1/tool_use_id",
                json!("a"),
                "unexpected `tool_use_id`",
            ),
            ("/messages/2/content/0", text("first"), "must come first"),
            (
                "/messages/2/content/1/content",
                json!([text("")]),
                "must not be empty",
            ),
            (
                "/messages/2/content/1/content",
                json!(5),
                "must be a string or an array",
            ),
            (
                "/messages/2/content/1/name",
                json!("weather"),
                "extra inputs",
            ),
            ("/messages/1/content/2/id", json!("a"), "must be unique"),
            ("/messages/1/content/2/id", json!("call.1"), "must match"),
            ("/messages/1/content/2/name", json!("a.b"), "must match"),
            (
                "/messages/1/content/2/input",
                json!("{}"),
                "must be an object",
            ),
            (
                "/messages/1/content/0/thinking",
                json!("other"),
                "invalid `signature`",
            ),
            (
                "/messages/1/content/0/signature",
                json!("other"),
                "invalid `signature`",
            ),
            (
                "/messages/1/content/0",
                json!(null),
                "must be sent back unchanged",
            ),
            ("/messages/1/content/-", text(" "), "must not be empty"),
            (
                "/messages/2/content/-",
                call("z"),
                "not allowed in a user message",
            ),
            ("/tools", json!(null), "must define tools"),
            (
                "/tools/0/name",
                json!("home.weather"),
                "must match ^[a-zA-Z0-9_-]{1,64}$",
            ),
            ("/tools/0/name", json!("x".repeat(65)), "must match"),
            ("/tools/-", tool("weather"), "must be unique"),
            ("/tools/0/function", json!({}), "extra inputs"),
            (
                "/tools/0/input_schema",
                json!({ "properties": {} }),
                "type: must be 'object'",
            ),
            (
                "/tools/0/input_schema/anyOf",
                json!([{}]),
                "at the top level",
            ),
            (
                "/tools/0/input_schema/properties",
                json!({ "a b": {} }),
                "keys should match",
            ),
            (
                "/tools/0/input_schema/properties/city",
                json!({ "$ref": "#/$defs/x" }),
                "$ref",
            ),
            (
                "/tool_choice",
                json!({ "type": "tool", "name": "nope" }),
                "unknown type or tool",
            ),
            ("/temperature", json!(0), "`temperature` is deprecated"),
            (
                "/thinking",
                json!({ "type": "enabled", "budget_tokens": 2000 }),
                "budget_tokens",
            ),
            ("/system", json!([text("")]), "must not be empty"),
            ("/keep_alive", json!(1), "keep_alive: extra inputs"),
        ],
    );
}

#[test]
fn anthropic_accepts_at_most_four_cache_marks() {
    let marked = json!({ "type": "text", "text": "x", "cache_control": { "type": "ephemeral" } });
    let with_marks = |count| with(anthropic(), "/system", json!(vec![marked.clone(); count]));
    assert_eq!(problem(Api::Anthropic, &with_marks(4)), "");
    assert!(problem(Api::Anthropic, &with_marks(5)).contains("found 5"));
}

#[test]
fn anthropic_requires_one_kind_of_key_and_a_version() {
    let content = ("content-type", "application/json");
    let (key, bearer) = (("x-api-key", "k"), ("authorization", "Bearer k"));
    let version = ("anthropic-version", "2023-06-01");
    let problem = |headers: &[_]| problem_with(Api::Anthropic, headers, &anthropic());
    assert_eq!(problem(&[content, bearer, version]), "");
    assert!(problem(&[content, version]).contains("exactly one"));
    assert!(problem(&[content, key, bearer, version]).contains("exactly one"));
    assert!(problem(&[content, key]).contains("anthropic-version"));
    assert!(problem(&[key, version]).contains("content-type"));
}

#[test]
fn old_models_accept_a_temperature() {
    let old = with(anthropic(), "/model", json!("claude-3-5-haiku"));
    assert_eq!(
        problem(Api::Anthropic, &with(old, "/temperature", json!(0))),
        ""
    );
}

#[test]
fn only_newer_models_accept_adaptive_thinking() {
    let body = with(anthropic(), "/thinking", json!({ "type": "adaptive" }));
    for (model, expected) in [
        ("claude-sonnet-5", ""),
        ("claude-opus-4-6", ""),
        (
            "claude-haiku-4-5",
            "adaptive thinking is not supported on this model",
        ),
        (
            "claude-3-5-haiku",
            "adaptive thinking is not supported on this model",
        ),
    ] {
        let body = with(body.clone(), "/model", json!(model));
        assert_eq!(problem(Api::Anthropic, &body), expected, "{model}");
    }
}
