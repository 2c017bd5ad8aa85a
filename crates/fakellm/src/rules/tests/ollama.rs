//! What Ollama accepts.

use super::*;

#[test]
fn ollama_refuses_wrong_types_and_keys_it_would_drop() {
    let parameters = "/tools/0/function/parameters";
    let at = |rest: &str| format!("{parameters}{rest}");
    let city = at("/properties/city");
    let result = json!({ "role": "tool", "tool_name": "weather", "content": "one too many" });
    assert_each_is_refused(
        Api::Ollama,
        &ollama(),
        &[
            ("/model", json!(null), "model"),
            ("/options", json!(null), "options: must be an object"),
            ("/options/num_ctx", json!(null), "num_ctx"),
            ("/options/max_tokens", json!(5), "extra inputs"),
            ("/keep_alive", json!(true), "keep_alive"),
            ("/keep_alive", json!("soon"), "is not a duration"),
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
            ("/messages/-", result, "a tool result without a call"),
            ("/messages/0/role", json!("human"), "must be system, user"),
            (
                "/messages/0/role",
                json!("system"),
                "must have the role 'user'",
            ),
            ("/tools/0/name", json!("weather"), "extra inputs"),
            ("/tools/0/function/strict", json!(true), "extra inputs"),
            ("/tools/0/function/description", json!(null), "description"),
            (&at("/properties"), json!(null), "properties: is missing"),
            (&at("/type"), json!("array"), "must be 'object'"),
            (&at("/$defs"), json!({}), "extra inputs"),
            (&at("/additionalProperties"), json!(false), "extra inputs"),
            (&at("/required"), json!(["country"]), "is not a property"),
            (&format!("{city}/minLength"), json!(1), "extra inputs"),
            (&format!("{city}/type"), json!({}), "must be a type"),
            (&format!("{city}/$ref"), json!("#"), "extra inputs"),
        ],
    );
}
