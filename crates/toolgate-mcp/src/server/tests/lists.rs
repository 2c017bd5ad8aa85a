use toolgate_core::{Annotations, Pattern, Policy, Rank, Source};

use super::*;

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["result"]["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

/// A tool of a server, under any name.
fn of_server(server: &str, name: &str) -> Arc<dyn Tool> {
    let definition = ToolDefinition::builder(name, "…", json!({ "type": "object" }))
        .source(Source::Mcp(server.to_owned()));
    Arc::new(Worker {
        definition: definition.build().unwrap(),
        work: |_, _| Box::pin(async { Ok(ToolOutput::text("")) }),
    })
}

#[tokio::test]
async fn tools_are_listed_as_they_are() {
    let manager = ToolManager::new();
    let schema = json!({ "type": "object", "required": ["z"], "properties": { "z": { "minimum": 1.0 }, "a": {} } });
    let tool = |name: &str, output: Value| Worker {
        definition: ToolDefinition::builder(name, "Does it", schema.clone())
            .title("It")
            .output_schema(output)
            .annotations(Annotations::READ_ONLY)
            .build()
            .unwrap(),
        work: |_, _| Box::pin(async { Ok(ToolOutput::text("")) }),
    };
    manager.add(tool("a/b:c", json!({ "type": "object", "title": "O" })));
    manager.add(tool("list", json!({ "type": "array" })));
    let mut client = Client::legacy(&Arc::new(manager)).await;
    let hints = json!({ "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true });
    let listed = client.ask("tools/list", json!({})).await;
    let expected = json!([
        {
            "name": "a/b:c", "title": "It", "description": "Does it", "inputSchema": schema,
            "outputSchema": { "type": "object", "title": "O" }, "annotations": hints,
        },
        { "name": "list", "title": "It", "description": "Does it", "inputSchema": schema, "annotations": hints },
    ]);
    // As text: the order of keys is part of it.
    assert_eq!(listed["result"]["tools"].to_string(), expected.to_string());
}

#[tokio::test]
async fn what_is_hidden_is_neither_listed_nor_found_nor_named() {
    let manager = manager();
    let server = Source::Mcp("house".to_owned());
    let tools = ["lock", "echo", "lamp"].map(|name| of_server("house", name));
    manager.replace(&server, Rank::Server(0), tools.to_vec());
    let policy: Policy = serde_json::from_value(json!({ "deny": ["fail"] })).unwrap();
    let executor = ToolExecutor::builder(manager).policy(policy).unobserved();
    let mut options = ServeOptions::new("test", "1");
    options.allow = ["echo", "fail", "house/*"].map(Pattern::new).to_vec();
    options.deny = vec![Pattern::new("lock")];
    let mut client = Client::new(McpServer::new(executor.build(), options));
    client.initialize("2025-11-25").await;
    let listed = client.ask("tools/list", json!({})).await;
    assert_eq!(names(&listed), ["echo", "house__echo", "lamp"]);
    for hidden in ["lock", "house__lock", "number", "fail", "nope"] {
        let answer = client.ask("tools/call", json!({ "name": hidden })).await;
        let text = format!(
            "Tool '{hidden}' not found. Unknown tool: '{hidden}'. Available tools: echo, house__echo, lamp"
        );
        let result = &answer["result"];
        assert_eq!(
            (&result["isError"], &result["content"][0]["text"]),
            (&json!(true), &json!(text))
        );
    }
    let answer = client.ask("tools/call", json!({ "name": "lamb" })).await;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("lamp") && !text.contains("lock"), "{text}");
    assert_eq!(
        client.call("house__lamp", json!({})).await["isError"],
        false
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_tools_is_told_once_and_only_if_it_can_be_seen() {
    let manager = manager();
    let mut options = ServeOptions::new("test", "1");
    options.deny = vec![Pattern::new("secret_*")];
    let server = McpServer::new(ToolExecutor::builder(Arc::clone(&manager)).build(), options);
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });

    let mut legacy = Client::new(server.clone());
    legacy.initialize("2025-11-25").await;
    legacy
        .send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
        .await;
    let mut modern = Client::new(server);
    let filter =
        json!({ "notifications": { "toolsListChanged": true, "promptsListChanged": true } });
    let acknowledged = modern.ask_modern("subscriptions/listen", filter).await;
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({ "toolsListChanged": true })
    );
    legacy.ask("ping", json!({})).await;

    manager.add(tool("secret_one", |_, _| {
        Box::pin(async { Ok(ToolOutput::text("")) })
    }));
    tokio::time::sleep(Duration::from_secs(1)).await;
    for name in ["one", "two", "three"] {
        manager.add(tool(name, |_, _| {
            Box::pin(async { Ok(ToolOutput::text("")) })
        }));
    }
    assert_eq!(legacy.next().await, changed);
    let told = modern.next().await;
    assert_eq!(told["method"], changed["method"]);
    assert_eq!(
        told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        1
    );
    // Nothing else came in between: the answers are next.
    let listed = legacy.ask("tools/list", json!({})).await;
    assert_eq!(names(&listed)[8..], ["one", "two", "three"]);

    // The end of a subscription is quick, and orderly.
    let started = tokio::time::Instant::now();
    let (rest, end) = modern.close().await;
    assert_eq!(
        (rest.len(), &rest[0]["id"], end.is_ok()),
        (1, &json!(1), true),
        "{rest:?}"
    );
    assert!(started.elapsed() < Duration::from_secs(1));
}
