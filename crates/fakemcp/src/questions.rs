//! Asks the client: for input of the person, for an answer of its model, or for its roots.

use serde_json::{Value, json};

use crate::server::{FakeServer, RpcResult};
use crate::tool_calls::text;

/// Serves `resources/read` and `prompts/get` by asking the user for the text (elicitation)
/// and returning that text.
pub(crate) fn elicit_content(server: &FakeServer, method: &str, params: &Value) -> RpcResult {
    let answer = ask_client(server, "elicit", params)?;
    if answer["resultType"] == "input_required" {
        return Ok(answer);
    }
    let text = &answer["content"][0]["text"];
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    let mut result = match method {
        "prompts/get" => json!({ "messages": [message] }),
        _ => json!({ "contents": [{ "uri": params["uri"], "text": text }] }),
    };
    result["resultType"] = json!("complete");
    Ok(result)
}

/// Asks the client. Legacy protocol: sends a request and waits. Since 2026-07-28: returns the
/// question as an `input_required` result, and the client repeats the call with the answer.
pub(crate) fn ask_client(server: &FakeServer, tool: &str, params: &Value) -> RpcResult {
    let arguments = &params["arguments"];
    let times = arguments["times"].as_u64().unwrap_or(1);
    let message = arguments["message"].as_str().unwrap_or("Who?");
    let (method, request_params) = match tool {
        "elicit" if arguments["question"].is_object() => (
            arguments["method"].as_str().unwrap_or("elicitation/create"),
            arguments["question"].clone(),
        ),
        "sample" if arguments["request"].is_object() => {
            ("sampling/createMessage", arguments["request"].clone())
        }
        "elicit" if arguments["url"] == true => (
            "elicitation/create",
            json!({
                "message": message, "mode": "url", "url": "https://example.org/who",
                "elicitationId": "1",
            }),
        ),
        "elicit" => (
            "elicitation/create",
            json!({
                "message": message, "mode": "form",
                "requestedSchema": { "type": "object", "properties": { "who": { "type": "string" } } },
            }),
        ),
        "sample" => (
            "sampling/createMessage",
            json!({
                "messages": [{ "role": "user", "content": { "type": "text", "text": "Hello" } }], "maxTokens": 10,
            }),
        ),
        _ => ("roots/list", json!({})),
    };
    let protocol_version = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
    if protocol_version.is_null() {
        let mut accepted = 0;
        for _ in 1..times {
            let answer = server
                .ask(method, &request_params)
                .recv()
                .unwrap_or_default();
            accepted += u64::from(answer["result"]["action"] == "accept");
        }
        let mut answer = server
            .ask(method, &request_params)
            .recv()
            .unwrap_or_default();
        if times > 1 {
            answer["accepted"] = json!(accepted);
        }
        return Ok(text(answer.to_string()));
    }
    // requestState is "s" repeated once per round, so its length is the number of rounds so far.
    let round = match params["requestState"].as_str() {
        Some(state) => state.len() as u64,
        None => 0,
    };
    if round < times {
        return Ok(json!({
            "resultType": "input_required",
            "inputRequests": { "one": { "method": method, "params": request_params } },
            "requestState": "s".repeat(usize::try_from(round).unwrap_or(0) + 1),
        }));
    }
    Ok(text(
        json!({ "responses": params["inputResponses"], "state": params["requestState"] })
            .to_string(),
    ))
}
