//! `/mcp` serves the tools of its caller.

use http::Method;
use serde_json::{Value, json};
use toolgate_server::ServeSettings;

use crate::client::{send, whole};
use crate::test_gateway::{ApiTestGateway, TestGatewayOptions, long, token};

pub(crate) async fn ask(
    gateway: &ApiTestGateway,
    token: &str,
    session: Option<&str>,
    message: &Value,
) -> crate::client::ApiReply {
    let bearer = format!("Bearer {}", long(token));
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("authorization", bearer.as_str()),
    ];
    headers.extend(session.map(|session| ("mcp-session-id", session)));
    whole(
        send(
            gateway.address,
            &Method::POST,
            "/mcp",
            &headers,
            message.to_string(),
        )
        .await,
    )
    .await
}

#[tokio::test]
async fn a_client_sees_and_uses_the_tools_of_its_token_in_its_own_session() {
    let mut settings = ServeSettings::default();
    settings.token = long("full");
    settings.tokens = vec![token("some", &["echo"])];
    let gateway = ApiTestGateway::start_with(TestGatewayOptions {
        settings,
        ..TestGatewayOptions::default()
    })
    .await;
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let mut sessions = Vec::new();
    for (token, tools) in [
        ("full", gateway.executor.manager().tools().len()),
        ("some", 1),
    ] {
        let greeting = ask(&gateway, token, None, &hello).await;
        assert_eq!(greeting.status, 200, "{}", greeting.text);
        let session = greeting.header("mcp-session-id").to_owned();
        let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(
            ask(&gateway, token, Some(&session), &told).await.status,
            202
        );
        let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
        let list = ask(&gateway, token, Some(&session), &list).await.text;
        assert_eq!(list.matches("\"inputSchema\"").count(), tools, "{list}");
        let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "count", "arguments": {} } });
        ask(&gateway, token, Some(&session), &call).await;
        sessions.push(session);
    }
    assert_eq!(gateway.counted.load(std::sync::atomic::Ordering::SeqCst), 1);
    let calls = gateway.get_as("full", "/api/calls").await.json();
    let callers: Vec<&Value> = calls
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["caller"])
        .collect();
    assert_eq!(callers, [&json!("some"), &json!("serve.token")]);
    let ping = json!({ "jsonrpc": "2.0", "id": 4, "method": "ping" });
    assert_eq!(
        ask(&gateway, "some", Some(&sessions[0]), &ping)
            .await
            .status,
        404
    );
    assert_eq!(
        ask(&gateway, "full", Some(&sessions[0]), &ping)
            .await
            .status,
        200
    );
    assert_eq!(
        ask(&gateway, "wrong", Some(&sessions[0]), &ping)
            .await
            .status,
        401
    );
}
