use serde_json::{Value, json};

use super::{Api, Issued, Server, check};
use crate::Recorded;
use crate::answer::Say;

fn schema() -> Value {
    json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] })
}

/// A question, two calls with thinking before them, both results.
fn anthropic() -> Value {
    json!({
        "model": "claude-sonnet-5", "max_tokens": 100, "stream": true, "system": "Be brief.",
        "tools": [{ "name": "weather", "description": "Weather", "input_schema": schema() }],
        "messages": [
            { "role": "user", "content": "Oslo and Rome?" },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm", "signature": "sig" },
                { "type": "tool_use", "id": "a", "name": "weather", "input": { "city": "Oslo" } },
                { "type": "tool_use", "id": "b", "name": "weather", "input": { "city": "Rome" } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "a", "content": "3" },
                { "type": "tool_result", "tool_use_id": "b", "content": [{ "type": "text", "text": "21" }], "is_error": false },
            ] },
        ],
    })
}

fn function() -> Value {
    json!([{ "type": "function", "function": { "name": "weather", "description": "Weather", "parameters": schema() } }])
}

fn ollama() -> Value {
    json!({
        "model": "qwen3", "stream": true, "keep_alive": -1, "think": false, "options": { "num_ctx": 4096 }, "tools": function(),
        "messages": [
            { "role": "user", "content": "Oslo and Rome?" },
            { "role": "assistant", "content": "", "tool_calls": [
                { "id": "a", "function": { "name": "weather", "arguments": { "city": "Oslo" } } },
                { "function": { "name": "weather", "arguments": { "city": "Rome" } } },
            ] },
            { "role": "tool", "tool_name": "weather", "content": "3", "tool_call_id": "a" },
            { "role": "tool", "tool_name": "weather", "content": "21" },
        ],
    })
}

fn openai() -> Value {
    json!({
        "model": "qwen3", "stream": true, "stream_options": { "include_usage": true }, "max_tokens": 100, "tools": function(),
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "Oslo?" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "weather", "arguments": "{\"city\": \"Oslo\"}" } },
            ] },
            { "role": "tool", "tool_call_id": "a", "content": "3" },
        ],
    })
}

fn request(headers: &[(&str, &str)], body: &Value) -> Recorded {
    let headers = headers.iter();
    Recorded {
        method: "POST".to_owned(),
        path: String::new(),
        headers: headers
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        body: body.to_string().into_bytes(),
        refused: None,
    }
}

fn problem(api: Api, body: &Value) -> String {
    let all = [
        ("content-type", "application/json"),
        ("x-api-key", "k"),
        ("anthropic-version", "2023-06-01"),
    ];
    problem_with(api, &all, body)
}

fn problem_with(api: Api, headers: &[(&str, &str)], body: &Value) -> String {
    let mut issued = Issued::default();
    let (text, signature) = ("hm".to_owned(), "sig".to_owned());
    let call = |id: &str| Say::Call {
        id: id.to_owned(),
        name: String::new(),
        arguments: String::new(),
    };
    issued.note(&[Say::Thinking { text, signature }, call("a"), call("b")]);
    check(&request(headers, body), api, Server::Provider, &issued)
        .err()
        .unwrap_or_default()
}

/// Puts a value at a place: of an object also where nothing was, null takes it away.
fn with(mut body: Value, place: &str, value: Value) -> Value {
    let (parent, key) = place.rsplit_once('/').unwrap();
    let parent = body
        .pointer_mut(parent)
        .unwrap_or_else(|| panic!("{place}"));
    match parent {
        Value::Array(list) => match key.parse::<usize>() {
            Ok(index) if value.is_null() => drop(list.remove(index)),
            Ok(index) => list[index] = value,
            Err(_) => list.push(value),
        },
        _ if value.is_null() => drop(parent.as_object_mut().unwrap().shift_remove(key)),
        _ => parent[key] = value,
    }
    body
}

fn each_is_refused(api: Api, good: &Value, table: &[(&str, Value, &str)]) {
    assert_eq!(problem(api, good), "");
    for (place, value, expected) in table {
        let found = problem(api, &with(good.clone(), place, value.clone()));
        assert!(
            found.contains(expected),
            "{place} = {value}: '{found}' should have '{expected}'"
        );
    }
}

#[test]
fn anthropic_refuses_what_the_real_one_refuses() {
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "weather", "input": {} });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let tool = |name: &str| json!({ "name": name, "input_schema": schema() });
    each_is_refused(
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
                "must be given back as they were",
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
                "names no tool",
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
fn anthropic_keeps_four_marks_of_its_cache() {
    let marked = json!({ "type": "text", "text": "x", "cache_control": { "type": "ephemeral" } });
    let with_marks = |count| with(anthropic(), "/system", json!(vec![marked.clone(); count]));
    assert_eq!(problem(Api::Anthropic, &with_marks(4)), "");
    assert!(problem(Api::Anthropic, &with_marks(5)).contains("found 5"));
}

#[test]
fn anthropic_wants_one_kind_of_key_and_a_version() {
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
fn an_old_model_may_be_told_its_temperature() {
    let old = with(anthropic(), "/model", json!("claude-3-5-haiku"));
    assert_eq!(
        problem(Api::Anthropic, &with(old, "/temperature", json!(0))),
        ""
    );
}

#[test]
fn only_newer_models_decide_how_much_they_think() {
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

#[test]
fn options_of_a_template_are_for_a_server_of_ones_own() {
    let place = "/chat_template_kwargs";
    let body = with(openai(), place, json!({ "enable_thinking": false }));
    assert_eq!(
        problem(Api::OpenAi, &body),
        "Unrecognized request argument supplied: chat_template_kwargs"
    );
    let own = |body: &Value| {
        let request = request(&[("content-type", "application/json")], body);
        check(&request, Api::OpenAi, Server::Own, &Issued::default())
    };
    assert_eq!(own(&body), Ok(()));
    let problem = own(&with(openai(), place, json!(true)));
    assert_eq!(
        problem,
        Err("chat_template_kwargs: must be an object".to_owned())
    );
}

#[test]
fn a_model_that_reasons_takes_no_temperature() {
    let body = with(openai(), "/temperature", json!(0.5));
    assert_eq!(problem(Api::OpenAi, &body), "");
    let body = with(body, "/model", json!("gpt-5-mini"));
    let body = with(body, "/max_tokens", json!(null));
    let found = problem(Api::OpenAi, &body);
    assert!(
        found.contains("'temperature' does not support 0.5"),
        "{found}"
    );
}

#[test]
fn ollama_refuses_what_go_can_not_read_and_what_it_would_drop() {
    let parameters = "/tools/0/function/parameters";
    let at = |rest: &str| format!("{parameters}{rest}");
    let city = at("/properties/city");
    let result = json!({ "role": "tool", "tool_name": "weather", "content": "one too many" });
    each_is_refused(
        Api::Ollama,
        &ollama(),
        &[
            ("/model", json!(null), "model"),
            ("/options", json!(null), "options: must be an object"),
            ("/options/num_ctx", json!(null), "num_ctx"),
            ("/options/max_tokens", json!(5), "extra inputs"),
            ("/keep_alive", json!(true), "keep_alive"),
            ("/keep_alive", json!("soon"), "is no duration"),
            ("/think", json!("yes"), "think"),
            ("/max_tokens", json!(5), "extra inputs"),
            (
                "/messages/1/tool_calls/0/function/arguments",
                json!("{}"),
                "arguments",
            ),
            (
                "/messages/1/tool_calls/0/type",
                json!("function"),
                "extra inputs",
            ),
            ("/messages/2/tool_name", json!(null), "tool_name"),
            (
                "/messages/2/tool_name",
                json!("clock"),
                "but the call was of 'weather'",
            ),
            (
                "/messages/2/tool_call_id",
                json!("b"),
                "but the call was 'a'",
            ),
            ("/messages/2/name", json!("weather"), "extra inputs"),
            (
                "/messages/2/content",
                json!([]),
                "content: must be a string",
            ),
            ("/messages/3", json!(null), "1 calls have no result"),
            ("/messages/-", result, "a result without a call"),
            ("/messages/0/role", json!("human"), "must be system, user"),
            ("/messages/0/role", json!("system"), "no user query"),
            ("/tools/0/name", json!("weather"), "extra inputs"),
            ("/tools/0/function/strict", json!(true), "extra inputs"),
            ("/tools/0/function/description", json!(null), "description"),
            (&at("/properties"), json!(null), "properties: is missing"),
            (&at("/type"), json!("array"), "must be 'object'"),
            (&at("/$defs"), json!({}), "extra inputs"),
            (&at("/additionalProperties"), json!(false), "extra inputs"),
            (&at("/required"), json!(["country"]), "is no property"),
            (&format!("{city}/minLength"), json!(1), "extra inputs"),
            (&format!("{city}/type"), json!({}), "must be a type"),
            (&format!("{city}/$ref"), json!("#"), "extra inputs"),
        ],
    );
}

#[test]
fn openai_refuses_what_the_real_one_refuses() {
    let parameters = "/tools/0/function/parameters";
    let at = |rest: &str| format!("{parameters}{rest}");
    let arguments = "/messages/2/tool_calls/0/function/arguments";
    each_is_refused(
        Api::OpenAi,
        &openai(),
        &[
            (
                arguments,
                json!({ "city": "Oslo" }),
                "arguments: must be a string",
            ),
            (arguments, json!("{"), "must be the text of a JSON object"),
            ("/messages/2/tool_calls", json!([]), "must not be empty"),
            (
                "/messages/2/tool_calls/0/type",
                json!(null),
                "type: must be 'function'",
            ),
            (
                "/messages/2/tool_calls/0/id",
                json!(""),
                "id: must not be empty",
            ),
            (
                "/messages/3",
                json!(null),
                "must be followed by tool messages",
            ),
            (
                "/messages/3/tool_call_id",
                json!("b"),
                "must be a response to a preceding message",
            ),
            ("/messages/3/name", json!("weather"), "extra inputs"),
            (
                "/messages/3",
                json!({ "role": "user", "content": "well?" }),
                "must be followed",
            ),
            (
                "/messages/1/content",
                json!(null),
                "content: must be a string",
            ),
            ("/stream", json!(false), "stream_options"),
            ("/tools", json!([]), "1 to 128"),
            ("/tools/0/function/name", json!("a/b"), "must match"),
            (&at("/properties"), json!(null), "missing properties"),
            (&at("/oneOf"), json!([]), "top level"),
            (
                &at("/properties/city"),
                json!({ "type": "array" }),
                "missing items",
            ),
            ("/model", json!("gpt-5-mini"), "max_completion_tokens"),
            ("/options", json!({}), "extra inputs"),
        ],
    );
}
