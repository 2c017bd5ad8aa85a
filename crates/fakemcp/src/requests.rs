//! What the server asks its client while a call runs.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{Answer, FakeServer};
use crate::start::pause;
use crate::tools::text;

// A request may be ignored.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sends requests of the form `{method, params}`, and returns the responses. `"times": N` repeats
/// one at once; `"later": true` returns its response last, while others are sent; `{"pause": MS}`
/// waits. `$TASK` in parameters is the id of the first task that a response has named.
pub(crate) fn send_all(server: &FakeServer, requests: &Value) -> Value {
    let (mut responses, mut waiting) = (Vec::new(), Vec::new());
    let mut task = None;
    for request in requests.as_array().into_iter().flatten() {
        if let Some(ms) = request["pause"].as_u64() {
            pause(ms);
            continue;
        }
        let mut params = request["params"].clone();
        if let (Some(task), Some("$TASK")) = (&task, params["taskId"].as_str()) {
            params["taskId"] = json!(task);
        }
        let method = request["method"].as_str().unwrap_or_default();
        let times = request["times"].as_u64().unwrap_or(1);
        let sent: Vec<Receiver<Value>> = (0..times).map(|_| server.ask(method, &params)).collect();
        if request["later"] == true {
            waiting.extend(sent);
            continue;
        }
        let mut patience = PATIENCE;
        for response in sent {
            let response = response.recv_timeout(patience).unwrap_or_default();
            if response.is_null() {
                patience = Duration::ZERO; // The others were sent at the same time.
            }
            let id = response["result"]["task"]["taskId"].as_str();
            task = task.or_else(|| id.map(str::to_owned));
            responses.push(response);
        }
    }
    let late = waiting
        .iter()
        .map(|it| it.recv_timeout(PATIENCE).unwrap_or_default());
    responses.extend(late);
    json!(responses)
}

/// Asks the person before it answers with what they said.
pub(crate) fn ask_for_content(server: &FakeServer, method: &str, params: &Value) -> Answer {
    let answer = ask(server, "elicit", params)?;
    if answer["resultType"] == "input_required" {
        return Ok(answer);
    }
    let said = &answer["content"][0]["text"];
    let message = json!({ "role": "user", "content": { "type": "text", "text": said } });
    let mut result = match method {
        "prompts/get" => json!({ "messages": [message] }),
        _ => json!({ "contents": [{ "uri": params["uri"], "text": said }] }),
    };
    result["resultType"] = json!("complete");
    Ok(result)
}

/// In the legacy era it sends a request to the client. In the modern era the result contains the
/// request, and the client repeats the call with the response.
pub(crate) fn ask(server: &FakeServer, name: &str, params: &Value) -> Answer {
    let given = &params["arguments"];
    let times = given["times"].as_u64().unwrap_or(1);
    let message = given["message"].as_str().unwrap_or("Who?");
    let (method, asked) = match name {
        "elicit" if given["question"].is_object() => {
            ("elicitation/create", given["question"].clone())
        }
        "sample" if given["request"].is_object() => {
            ("sampling/createMessage", given["request"].clone())
        }
        "elicit" if given["url"] == true => (
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
    let modern = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
    if modern.is_null() {
        let mut accepted = 0;
        for _ in 1..times {
            let answer = server.ask(method, &asked).recv().unwrap_or_default();
            accepted += u64::from(answer["result"]["action"] == "accept");
        }
        let mut answer = server.ask(method, &asked).recv().unwrap_or_default();
        if times > 1 {
            answer["accepted"] = json!(accepted);
        }
        return Ok(text(answer.to_string()));
    }
    // The state counts the rounds.
    let round = match params["requestState"].as_str() {
        Some(state) => state.len() as u64,
        None => 0,
    };
    if round < times {
        return Ok(json!({
            "resultType": "input_required",
            "inputRequests": { "one": { "method": method, "params": asked } },
            "requestState": "s".repeat(usize::try_from(round).unwrap_or(0) + 1),
        }));
    }
    Ok(text(
        json!({ "responses": params["inputResponses"], "state": params["requestState"] })
            .to_string(),
    ))
}
