//! What OpenAI and compatible servers accept.

use super::*;

#[test]
fn template_options_need_a_self_hosted_server() {
    let place = "/chat_template_kwargs";
    let body = with(openai(), place, json!({ "enable_thinking": false }));
    assert_eq!(
        problem(Api::OpenAi, &body),
        "Unrecognized request argument supplied: chat_template_kwargs"
    );
    let own = |body: &Value| {
        let request = request(&[("content-type", "application/json")], body);
        check(
            &request,
            Api::OpenAi,
            ServerKind::SelfHosted,
            &IssuedSignatures::default(),
        )
    };
    assert_eq!(own(&body), Ok(()));
    let problem = own(&with(openai(), place, json!(true)));
    assert_eq!(
        problem,
        Err("chat_template_kwargs: must be an object".to_owned())
    );
}

#[test]
fn reasoning_models_refuse_a_temperature() {
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
fn openai_requests_are_checked_as_the_provider_does() {
    let parameters = "/tools/0/function/parameters";
    let at = |rest: &str| format!("{parameters}{rest}");
    let arguments = "/messages/2/tool_calls/0/function/arguments";
    assert_each_is_refused(
        Api::OpenAi,
        &openai(),
        &[
            (
                arguments,
                json!({ "city": "Oslo" }),
                "arguments: must be a string",
            ),
            (
                arguments,
                json!("{"),
                "must be a string that contains a JSON object",
            ),
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
