use toolgate_core::LogLevel;

use super::*;

#[tokio::test]
async fn log_messages_come_on_the_stream_of_the_request_that_wants_them() {
    let manager = manager();
    manager.add(tool("talk", |_, context| {
        context.log(LogLevel::Warning, "careful");
        Box::pin(async { Ok(ToolOutput::text("done")) })
    }));
    let mcp = http(&manager);
    let call = json!({ "name": "talk", "arguments": {} });

    let session = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let silent = session.ask("tools/call", call.clone()).await;
    assert_eq!(silent["result"]["content"][0]["text"], "done");
    session
        .ask("logging/setLevel", json!({ "level": "info" }))
        .await;
    let answer = session
        .post(request_message("tools/call", call.clone()))
        .await;
    let mut events = TestEvents::new(answer);
    assert_eq!(events.message().await["params"]["data"], "careful");
    assert_eq!(events.message().await["id"], 1);
    let other = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let silent = other.ask("tools/call", call.clone()).await;
    assert_eq!(silent["id"], 1);

    let modern = HttpCaller::modern(&mcp, "tools/call", "talk");
    let silent = modern.post(modern_request_message("tools/call", call.clone()));
    assert_eq!(json_of(silent.await).await["id"], 1);
    let mut asking = call;
    asking["_meta"] = json!({ "io.modelcontextprotocol/logLevel": "warning" });
    let answer = modern
        .post(modern_request_message("tools/call", asking))
        .await;
    let mut events = TestEvents::new(answer);
    assert_eq!(events.message().await["params"]["data"], "careful");
    assert_eq!(events.message().await["id"], 1);
}
