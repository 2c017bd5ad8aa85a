//! Questions over HTTP, in both eras.

use super::*;

fn asking_http() -> McpHttp {
    let manager = ToolManager::new();
    manager.add(tool("ask", |_, context| {
        Box::pin(async move {
            let question = toolgate_core::Question {
                key: "k".to_owned(),
                server: "files".to_owned(),
                method: "elicitation/create".to_owned(),
                params: json!({ "message": "Who?" }),
            };
            let _paused = context.pause_clock();
            let Some(handler) = context.questions() else {
                return Ok(ToolOutput::text("nobody to ask"));
            };
            let answers = handler.ask(vec![question]).await;
            Ok(ToolOutput::text(format!("{answers:?}")))
        })
    }));
    http(&Arc::new(manager))
}

fn call(id: u64) -> Value {
    let params = json!({ "name": "ask", "arguments": {} });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

async fn asked_session(mcp: &McpHttp, owner: u64) -> HttpCaller {
    let mut caller = HttpCaller::new(mcp);
    caller.owner = owner;
    let mut message = initialize("2025-11-25");
    message["params"]["capabilities"] = json!({ "elicitation": { "form": {} } });
    let answer = caller.post(message).await;
    let session = answer.headers()["mcp-session-id"].to_str().unwrap();
    caller.with("mcp-session-id", session)
}

fn modern_call(more: &Value) -> Value {
    let mut params = json!({ "name": "ask", "arguments": {} });
    (params.as_object_mut().unwrap()).extend(more.as_object().unwrap().clone());
    let mut message = modern_request_message("tools/call", params);
    let capabilities =
        &mut message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    *capabilities = json!({ "elicitation": {} });
    message
}

fn answer(question: &Value, name: &str) -> Value {
    let result = json!({ "action": "accept", "content": { "who": name } });
    json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })
}

#[tokio::test(start_paused = true)]
async fn each_session_answers_its_own_question() {
    let mcp = asking_http();
    let (ada, bob) = (asked_session(&mcp, 1).await, asked_session(&mcp, 2).await);
    let mut adas = TestEvents::new(ada.post(call(1)).await);
    let mut bobs = TestEvents::new(bob.post(call(1)).await);
    let (to_ada, to_bob) = (adas.message().await, bobs.message().await);
    assert_eq!(to_ada["id"], to_bob["id"], "each session counts for itself");
    tokio::time::sleep(Duration::from_secs(100)).await;
    // With Ada's session but Bob's token nothing is answered.
    let mut thief = ada.clone();
    thief.owner = 2;
    assert_eq!(thief.post(answer(&to_ada, "Bob")).await.status(), 404);
    assert_eq!(bob.post(answer(&to_bob, "Bob")).await.status(), 202);
    assert_eq!(ada.post(answer(&to_ada, "Ada")).await.status(), 202);
    assert_eq!(ada.post(answer(&to_ada, "Eve")).await.status(), 202);
    for (events, name) in [(&mut adas, "Ada"), (&mut bobs, "Bob")] {
        let done = events.message().await.to_string();
        assert!(done.contains(name) && !done.contains("Eve"), "{done}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_no_events_is_not_asked() {
    let mcp = asking_http();
    let caller = asked_session(&mcp, 1).await;
    let caller = caller.with("accept", "application/json");
    let done = json_of(caller.post(call(1)).await).await;
    assert_eq!(done["result"]["content"][0]["text"], "nobody to ask");
}

#[tokio::test(start_paused = true)]
async fn a_modern_state_is_worth_nothing_to_another_caller() {
    let mcp = asking_http();
    let ada = HttpCaller::modern(&mcp, "tools/call", "ask");
    let mut bob = ada.clone();
    bob.owner = 2;
    let asked = json_of(ada.post(modern_call(&json!({}))).await).await;
    let result = &asked["result"];
    assert_eq!(result["inputRequests"]["k"]["params"]["message"], "Who?");
    let accepted = json!({ "action": "accept", "content": { "who": "Ada" } });
    let more =
        json!({ "requestState": result["requestState"], "inputResponses": { "k": accepted } });
    let stolen = json_of(bob.post(modern_call(&more)).await).await;
    assert_eq!(stolen["error"]["code"], -32602, "{stolen}");
    let done = json_of(ada.post(modern_call(&more)).await).await;
    assert!(done.to_string().contains("Ada"), "{done}");
    let again = json_of(ada.post(modern_call(&more)).await).await;
    assert_eq!(again["error"]["code"], -32602, "{again}");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_people() {
    let mcp = asking_http();
    let ada = HttpCaller::modern(&mcp, "tools/call", "ask");
    let asked = json_of(ada.post(modern_call(&json!({}))).await).await;
    assert!(asked["result"]["requestState"].is_string());
    let started = tokio::time::Instant::now();
    mcp.close(Duration::from_secs(10)).await;
    assert!(started.elapsed() < Duration::from_secs(1));
}
