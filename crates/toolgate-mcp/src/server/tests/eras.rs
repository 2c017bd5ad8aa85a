use super::*;

#[tokio::test]
async fn every_older_revision_is_supported() {
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let mut client = LineClient::new(server(&manager()));
        let expected = json!({ "jsonrpc": "2.0", "id": 1, "result": {
            "protocolVersion": answered,
            "capabilities": offered(answered),
            "serverInfo": { "name": "test", "version": "1.2.3" },
        } });
        assert_eq!(client.initialize(asked).await, expected, "{asked}");
        let echoed = client.call("echo", json!({ "a": 1 })).await;
        let expected = json!({
            "content": [{ "type": "text", "text": r#"{"a":1}"# }],
            "structuredContent": { "a": 1 }, "isError": false,
        });
        assert_eq!(echoed, expected, "{asked}");
    }
}

#[tokio::test]
async fn the_newer_era_needs_no_handshake() {
    let mut client = LineClient::new(server(&manager()));
    let info =
        json!({ "io.modelcontextprotocol/serverInfo": { "name": "test", "version": "1.2.3" } });
    let discovered = client.ask_modern("server/discover", json!({})).await;
    let expected = json!({
        "resultType": "complete",
        "supportedVersions": ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"],
        "capabilities": offered("2026-07-28"),
        "ttlMs": 0, "cacheScope": "private", "_meta": info,
    });
    assert_eq!(discovered["result"], expected);

    let listed = client.ask_modern("tools/list", json!({})).await;
    let result = &listed["result"];
    assert_eq!(
        (
            &result["resultType"],
            &result["ttlMs"],
            &result["cacheScope"],
            &result["_meta"]
        ),
        (&json!("complete"), &json!(0), &json!("private"), &info)
    );
    assert_eq!(result["tools"][0]["name"], "echo");

    // A value of any type is structured content now.
    let called = client
        .ask_modern("tools/call", json!({ "name": "number" }))
        .await;
    let expected = json!({
        "resultType": "complete", "content": [{ "type": "text", "text": "7" }],
        "structuredContent": 7, "isError": false, "_meta": info,
    });
    assert_eq!(called["result"], expected);
}

#[tokio::test]
async fn an_unknown_revision_is_rejected_with_the_supported_ones() {
    let mut client = LineClient::new(server(&manager()));
    let mut params = json!({ "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2027-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
    } });
    let answer = client.ask("tools/list", params.clone()).await;
    assert_eq!(answer["error"]["code"], -32022, "{answer}");
    assert_eq!(answer["error"]["data"]["requested"], "2027-01-01");
    params["_meta"] = json!({});
    let answer = client.ask("tools/list", params).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(
        client.initialize("2025-06-18").await["result"]["protocolVersion"],
        "2025-06-18"
    );
}

#[tokio::test]
async fn messages_before_the_handshake_do_not_end_the_server() {
    let mut client = LineClient::new(server(&manager()));
    client.raw("garbage").await;
    assert_eq!(client.next().await["error"]["code"], -32700);
    for early in [
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/x",
    ] {
        let params = json!({ "requestId": 9 });
        client
            .send(json!({ "jsonrpc": "2.0", "method": early, "params": params }))
            .await;
    }
    let no_params = client.ask("initialize", json!({})).await;
    assert_eq!(no_params["error"]["code"], -32602, "{no_params}");
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    let answer = client.initialize("2025-11-25").await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
}

#[tokio::test]
async fn methods_we_do_not_have_are_refused_by_name() {
    let mut client = LineClient::legacy(&manager()).await;
    let answer = client.ask("tools/destroy", json!({})).await;
    let expected = json!({ "code": -32601, "message": "unknown method 'tools/destroy'" });
    assert_eq!(answer["error"], expected);
    let answer = client
        .ask("tools/list", json!({ "cursor": "page 2" }))
        .await;
    assert_eq!(answer["error"]["code"], -32602);
    let answer = client
        .ask("subscriptions/listen", json!({ "notifications": {} }))
        .await;
    assert_eq!(answer["error"]["code"], -32601);
}
