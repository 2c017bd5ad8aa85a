//! Everything that Toolgate doesn't interpret is passed on byte for byte.

use serde_json::{Value, json};
use toolgate_core::Redactor;
use toolgate_mcp::ProtocolEra;

use crate::client::TestClient;
use crate::gateway::{Gateway, era_pairs};

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

fn meta() -> Value {
    json!({ "example.org/z": [1, { "b": null, "a": 1.50 }], "a": "ü\u{1F600}" })
}

fn icons() -> Value {
    json!([{ "src": "data:image/png;base64,aWNvbg==", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark" }])
}

fn resource_annotations() -> Value {
    json!({ "priority": 0.25, "audience": ["user", "assistant"], "lastModified": "2026-01-01T00:00:00Z", "x": 1 })
}

/// The text without what Toolgate itself adds to results for clients of 2026-07-28.
fn as_sent(mut result: Value, is_modern: bool) -> String {
    let object = result.as_object_mut().unwrap();
    if is_modern {
        for own in ["resultType", "ttlMs", "cacheScope"] {
            object.shift_remove(own);
        }
        let meta = object["_meta"].as_object_mut().unwrap();
        assert!(meta.shift_remove(SERVER_INFO).is_some());
        if meta.is_empty() {
            object.shift_remove("_meta");
        }
    }
    result.to_string()
}

#[tokio::test]
async fn entries_of_lists_keep_every_member() {
    let resource = json!({
        "size": 3, "uri": "x:1", "name": "n", "title": "T", "description": "D", "mimeType": "a/b",
        "icons": icons(), "annotations": resource_annotations(), "_meta": meta(), "unknown": [[]],
    });
    let template = json!({
        "uriTemplate": "x:{a}", "name": "n", "title": "T", "icons": icons(),
        "annotations": resource_annotations(), "_meta": meta(),
    });
    let prompt = json!({
        "name": "p", "title": "T", "description": "D", "icons": icons(), "_meta": meta(),
        "arguments": [{ "name": "a", "title": "A", "description": "d", "required": false, "unknown": 1 }],
    });
    let content = json!({ "resources": [resource], "templates": [template], "prompts": [prompt] });
    for (client_era, server_era) in era_pairs() {
        let gateway = Gateway::start(server_era, &[("s", content.clone())]).await;
        let mut client = gateway.client(client_era).await;
        for (method, key, expected) in [
            ("resources/list", "resources", &resource),
            ("resources/templates/list", "resourceTemplates", &template),
            ("prompts/list", "prompts", &prompt),
        ] {
            let listed = client.result(method, json!({})).await;
            assert_eq!(listed[key][0].to_string(), expected.to_string());
        }
        gateway.stop().await;
    }
}

#[tokio::test]
async fn results_of_reads_and_prompts_keep_every_member() {
    let read = json!({
        "contents": [
            { "uri": "x:1", "mimeType": "image/png", "blob": "aW1hZ2U=", "_meta": meta() },
            { "uri": "x:2", "text": "two\r\nlines", "annotations": resource_annotations() },
        ],
        "_meta": meta(), "unknown": { "z": 1, "a": 2 },
    });
    let prompt = json!({
        "description": "D",
        "messages": [
            { "role": "assistant", "content": { "type": "image", "data": "aW1hZ2U=", "mimeType": "image/png", "_meta": meta() } },
            { "role": "user", "content": { "type": "hologram", "depth": 3 } },
        ],
        "_meta": meta(),
    });
    let content = json!({
        "resources": [{ "uri": "x:1", "name": "n" }], "prompts": [{ "name": "p" }],
        "answers": { "x:1": read, "p": prompt },
    });
    for (client_era, server_era) in era_pairs() {
        let gateway = Gateway::start(server_era, &[("s", content.clone())]).await;
        let mut client = gateway.client(client_era).await;
        for (method, params, expected) in [
            ("resources/read", json!({ "uri": "x:1" }), &read),
            ("prompts/get", json!({ "name": "p" }), &prompt),
        ] {
            let result = client.result(method, params).await;
            let sent = as_sent(result, client_era == ProtocolEra::Modern);
            assert_eq!(sent, expected.to_string(), "{method}");
        }
        gateway.stop().await;
    }
}

#[tokio::test]
async fn the_meta_of_a_request_reaches_its_server() {
    for (client_era, server_era) in era_pairs() {
        let content = json!({ "resources": [{ "uri": "x:1" }], "prompts": [{ "name": "p" }] });
        let gateway = Gateway::start(server_era, &[("s", content)]).await;
        let mut client = gateway.client(client_era).await;
        for (method, mut params) in [
            ("resources/read", json!({ "uri": "x:1" })),
            ("prompts/get", json!({ "name": "p" })),
        ] {
            params["_meta"] = meta();
            client.result(method, params).await;
            let received = gateway.received("s", method).await;
            for (key, value) in meta().as_object().unwrap() {
                assert_eq!(received[0]["_meta"][key], *value, "{method}");
            }
        }
        gateway.stop().await;
    }
}

/// Calls the tool `raw` so that the server responds with this result.
async fn answer_with(client: &mut TestClient, result: &Value) -> Value {
    answer_raw(client, &[json!({ "result": result })]).await
}

/// Makes the server write these messages, of which the last one is the response.
async fn answer_raw(client: &mut TestClient, messages: &[Value]) -> Value {
    let mut text = String::new();
    for message in messages {
        let mut message = message.clone();
        message["jsonrpc"] = json!("2.0");
        if message["method"].is_null() {
            message["id"] = json!("$ID");
        }
        let line = message.to_string().replace("\"$ID\"", "$ID");
        text += &(line.replace('\\', "\\\\") + "\\n");
    }
    let meta = json!({ "progressToken": 7, "io.modelcontextprotocol/logLevel": "debug" });
    let params = json!({ "name": "raw", "arguments": { "text": text }, "_meta": meta });
    client.result("tools/call", params).await
}

#[tokio::test]
async fn the_meta_of_notifications_reaches_the_client() {
    let content = json!({ "resources": [{ "uri": "x:1" }] });
    let sent =
        json!({ "example.org/a": { "z": 1, "b": [1.50] }, "io.modelcontextprotocol/own": 1 });
    let kept = json!({ "example.org/a": { "z": 1, "b": [1.50] } });
    let large = json!({ "example.org/a": "x".repeat(5000) });
    for (client_era, server_era) in era_pairs() {
        let gateway = Gateway::start(server_era, &[("s", content.clone())]).await;
        let mut client = gateway.client(client_era).await;
        if client_era == ProtocolEra::Legacy {
            client
                .result("logging/setLevel", json!({ "level": "debug" }))
                .await;
        }
        client.drain().await;
        for (meta, expected) in [(&sent, &kept), (&large, &Value::Null)] {
            let progress = json!({ "progressToken": "$ID", "progress": 1, "_meta": meta });
            let log = json!({ "level": "info", "data": "logged", "_meta": meta });
            let messages = [
                json!({ "method": "notifications/progress", "params": progress }),
                json!({ "method": "notifications/message", "params": log }),
                json!({ "result": { "content": [] } }),
            ];
            answer_raw(&mut client, &messages).await;
            let received = client.drain().await;
            for method in ["notifications/progress", "notifications/message"] {
                let received = received.iter().find(|it| it["method"] == method).unwrap();
                assert_eq!(received["params"]["_meta"], *expected, "{method}");
            }
        }
        client.subscribe(&["x:1"]).await;
        gateway.wait_until_subscribed("s", &["x:1"]).await;
        client.drain().await;
        let update = json!({ "uri": "x:1", "meta": sent });
        assert_eq!(gateway.call("s", "update", update).await, true);
        let received = client.notification("resources/updated").await;
        assert_eq!(received["_meta"]["example.org/a"], kept["example.org/a"]);
        assert!(received["_meta"]["io.modelcontextprotocol/own"].is_null());
        gateway.stop().await;
    }
}

#[tokio::test]
async fn tool_results_keep_every_part_even_in_failures() {
    let blocks = json!([
        { "type": "text", "text": "a\nb", "annotations": resource_annotations(), "_meta": meta() },
        { "type": "image", "data": "aW1hZ2U=", "mimeType": "image/png", "annotations": { "audience": ["user"] } },
        { "type": "audio", "data": "YXVkaW8=", "mimeType": "audio/wav" },
        { "type": "resource", "resource": { "uri": "https://example.org/", "blob": "YQ==", "_meta": meta() } },
    ]);
    for (client_era, server_era) in era_pairs() {
        let gateway = Gateway::start(server_era, &[("s", json!({}))]).await;
        let mut client = gateway.client(client_era).await;
        for is_error in [false, true] {
            let sent = json!({
                "content": blocks, "structuredContent": { "z": 1, "a": [null] }, "isError": is_error,
                "_meta": meta(), "z-later": [null, { "b": 1.5, "a": "ü" }], "example.org/a": meta(),
            });
            let result = answer_with(&mut client, &sent).await;
            assert_eq!(
                as_sent(result, client_era == ProtocolEra::Modern),
                sent.to_string()
            );
        }
        gateway.stop().await;
    }
}

#[tokio::test]
async fn definitions_of_tools_keep_icons_meta_titles_and_schemas() {
    let tool = json!({
        "name": "t", "title": "T", "description": "D",
        "inputSchema": { "type": "object", "properties": { "z": { "type": "string", "x-own": 1 }, "a": {} }, "$comment": "c" },
        "outputSchema": { "type": "object", "properties": { "n": { "type": "integer" } } },
        "annotations": { "readOnlyHint": true, "openWorldHint": false, "example.org/x": [1.50], "new": null },
        "icons": icons(), "_meta": meta(), "z-later": [null, { "b": 1.5, "a": "ü" }],
        "example.org/a": meta(),
    });
    for (client_era, server_era) in era_pairs() {
        let mut gateway = Gateway::prepare(server_era, &[], |_| {});
        gateway.add("s", server_era, &json!({}));
        std::fs::write(gateway.path("tools"), json!([tool]).to_string()).unwrap();
        gateway.add_argument("s", "list=@/tools");
        gateway.apply().await;
        let mut client = gateway.client(client_era).await;
        let listed = client.result("tools/list", json!({})).await;
        let mut listed = listed["tools"][0].as_object().unwrap().clone();
        // Clients of 2025-11-25 hear that they may have a task.
        let execution = listed.remove("execution");
        assert_eq!(execution.is_some(), client_era == ProtocolEra::Legacy);
        for (key, value) in tool.as_object().unwrap() {
            assert_eq!(listed[key].to_string(), value.to_string(), "{key}");
        }
        assert_eq!(listed.len(), tool.as_object().unwrap().len());
        gateway.stop().await;
    }
}

#[tokio::test]
async fn errors_of_a_server_keep_their_code_and_data() {
    let error =
        json!({ "code": -32077, "message": "Out of päper", "data": { "z": [1], "a": null } });
    let missing = json!({ "code": -32002, "message": "Gone", "data": { "uri": "x:2" } });
    let content = json!({
        "resources": [{ "uri": "x:1" }], "prompts": [{ "name": "p" }],
        "answers": { "x:1": error, "p": error, "x:2": missing },
    });
    for (client_era, server_era) in era_pairs() {
        let gateway = Gateway::start(server_era, &[("s", content.clone())]).await;
        let mut client = gateway.client(client_era).await;
        let reference = json!({ "type": "ref/prompt", "name": "p" });
        for (method, params) in [
            ("resources/read", json!({ "uri": "x:1" })),
            ("prompts/get", json!({ "name": "p" })),
            (
                "completion/complete",
                json!({ "ref": reference, "argument": { "name": "a", "value": "" } }),
            ),
        ] {
            let received = client.expect_error(method, params).await;
            assert_eq!(received.to_string(), error.to_string(), "{method}");
        }
        // The model sees the text of a failed result, and its client the rest.
        let failed = answer_raw(&mut client, &[json!({ "error": error })]).await;
        assert_eq!(failed["isError"], true);
        let text = json!([{ "type": "text", "text": error["message"] }]);
        assert_eq!(failed["content"], text);
        let kept = json!({ "code": error["code"], "data": error["data"] });
        assert_eq!(
            failed["_meta"]["toolgate/jsonRpcError"].to_string(),
            kept.to_string()
        );

        // Each era has its own code for a missing resource.
        let received = client
            .expect_error("resources/read", json!({ "uri": "x:2" }))
            .await;
        let code = match client_era {
            ProtocolEra::Legacy => -32002,
            ProtocolEra::Modern => -32602,
        };
        assert_eq!(
            (&received["code"], &received["message"]),
            (&json!(code), &json!("Gone"))
        );
        assert_eq!(received["data"], missing["data"]);
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_server_cannot_set_what_is_ours_in_results() {
    let sent = json!({
        "content": [{ "type": "text", "text": "t" }], "resultType": "complete", "isError": "no",
        "inputRequests": { "a": { "method": "roots/list" } }, "requestState": "s",
        "task": { "taskId": "t" }, "_meta": { SERVER_INFO: { "name": "forged" } }, "kept": 1,
    });
    for (client_era, server_era) in era_pairs() {
        let gateway = Gateway::start(server_era, &[("s", json!({}))]).await;
        let mut client = gateway.client(client_era).await;
        let result = answer_with(&mut client, &sent).await;
        let is_modern = client_era == ProtocolEra::Modern;
        assert_eq!(result["kept"], 1);
        assert_eq!(result["isError"], false);
        assert_eq!(result["resultType"] == "complete", is_modern);
        assert_eq!(result["_meta"][SERVER_INFO]["name"] != "forged", is_modern);
        for ours in ["inputRequests", "requestState", "task"] {
            assert!(result[ours].is_null(), "{ours}: {result}");
        }

        // Other callers get the envelope, which has no place for more.
        let text = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"structuredContent":{"n":1},"kept":1}}\n"#;
        let answer = gateway.call("s", "raw", json!({ "text": text })).await;
        assert_eq!(answer, json!({ "n": 1 }));
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_server_cannot_set_what_is_ours_in_definitions() {
    let schema = json!({ "type": "object" });
    let mut tool = json!({
        "name": "t", "description": "D", "inputSchema": schema, "outputSchema": { "type": "array" },
        "execution": { "taskSupport": "forged" }, "large": "x".repeat(70_000), "kept": "hunter2-secret",
        "icons": "none", "_meta": 7,
    });
    for n in 0..100 {
        tool[format!("member-{n}")] = json!(n);
    }
    for (client_era, server_era) in era_pairs() {
        let mut gateway = Gateway::prepare(server_era, &[], |options| {
            options.redactor = Redactor::new(["hunter2-secret".to_owned()]);
        });
        gateway.add("s", server_era, &json!({}));
        std::fs::write(gateway.path("tools"), json!([tool]).to_string()).unwrap();
        gateway.add_argument("s", "list=@/tools");
        gateway.apply().await;
        let mut client = gateway.client(client_era).await;
        let listed = client.result("tools/list", json!({})).await;
        let listed = &listed["tools"][0];
        assert_ne!(listed["execution"]["taskSupport"], "forged");
        assert_eq!(listed["kept"], "[REDACTED]");
        for left_out in ["large", "outputSchema", "icons", "_meta"] {
            assert!(listed[left_out].is_null(), "{left_out}");
        }
        assert_eq!(
            (&listed["member-30"], &listed["member-31"]),
            (&json!(30), &Value::Null)
        );
        gateway.stop().await;
    }
}
