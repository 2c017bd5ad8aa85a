use toolgate_core::{Annotations, Policy, ToolPattern, ToolRank, ToolSource};

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
        .source(ToolSource::Mcp(server.to_owned()));
    Arc::new(WorkerTool {
        definition: definition.build().unwrap(),
        work: |_, _| Box::pin(async { Ok(ToolOutput::text("")) }),
    })
}

#[tokio::test]
async fn tools_are_listed_as_they_are() {
    let manager = ToolManager::new();
    let schema = json!({ "type": "object", "required": ["z"], "properties": { "z": { "minimum": 1.0 }, "a": {} } });
    let tool = |name: &str, output: Value| WorkerTool {
        definition: ToolDefinition::builder(name, "Does it", schema.clone())
            .title("It")
            .output_schema(output)
            .annotations(Annotations::READ_ONLY)
            .build()
            .unwrap(),
        work: |_, _| Box::pin(async { Ok(ToolOutput::text("")) }),
    };
    manager.add(tool("a-b_c", json!({ "type": "object", "title": "O" })));
    manager.add(tool("list", json!({ "type": "array" })));
    let mut client = LineClient::legacy(&Arc::new(manager)).await;
    let hints = json!({ "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true });
    let tasks = json!({ "taskSupport": "optional" });
    let listed = client.ask("tools/list", json!({})).await;
    let expected = json!([
        {
            "name": "a-b_c", "title": "It", "description": "Does it", "inputSchema": schema,
            "outputSchema": { "type": "object", "title": "O" }, "annotations": hints,
            "execution": tasks,
        },
        {
            "name": "list", "title": "It", "description": "Does it", "inputSchema": schema,
            "annotations": hints, "execution": tasks,
        },
    ]);
    // As text: the order of keys is part of it.
    assert_eq!(listed["result"]["tools"].to_string(), expected.to_string());
}

#[tokio::test]
async fn f19_hidden_characters_in_texts_are_not_passed_on() {
    // ESC, C1, bidi, zero width and a Unicode tag.
    const HIDDEN: &str = "\u{1b}\u{9b}\u{202e}\u{200b}\u{e0041}";
    let hidden = |text: &str| format!("{text}{HIDDEN}");
    let (exact, manager) = (hidden("c"), ToolManager::new());
    let schema = json!({
        "type": "object",
        "title": hidden("T"),
        "properties": { "description": { "description": hidden("D"), "default": hidden("d"), "enum": [exact] } },
    });
    let definition = ToolDefinition::builder("list", hidden("Lists\nall"), schema);
    manager.add(WorkerTool {
        definition: definition.title(hidden("List")).build().unwrap(),
        work: |_, _| Box::pin(async { Ok(ToolOutput::text("")) }),
    });
    let mut client = LineClient::legacy(&Arc::new(manager)).await;
    let listed = client.ask("tools/list", json!({})).await;
    let expected = json!([{
        "name": "list", "title": "List", "description": "Lists\nall",
        "inputSchema": {
            "type": "object",
            "title": "T",
            "properties": { "description": { "description": "D", "default": "d", "enum": [exact] } },
        },
        "execution": { "taskSupport": "optional" },
    }]);
    assert_eq!(listed["result"]["tools"], expected);
}

#[tokio::test]
async fn tm2_sanitized_names_map_back() {
    let long = "x".repeat(300);
    let odd = [
        "get weather",
        "get_weather",
        "docs.create",
        "größe",
        "日本",
        "a/b:c",
        "un\u{200b}lock",
        &*long,
    ];
    let tools = odd.map(|name| {
        let definition = ToolDefinition::builder(name, "…", json!({ "type": "object" }))
            .source(ToolSource::Mcp("odd".to_owned()));
        let definition = definition.build().unwrap();
        Arc::new(WorkerTool {
            definition,
            work: |_, context| {
                let name = context.tool_name().to_owned();
                Box::pin(async move { Ok(ToolOutput::text(name)) })
            },
        }) as Arc<dyn Tool>
    });
    let manager = Arc::new(ToolManager::new());
    let source = ToolSource::Mcp("odd".to_owned());
    manager.replace(&source, ToolRank::Server(0), tools.to_vec());
    let mut client = LineClient::legacy(&manager).await;
    let listed = client.ask("tools/list", json!({})).await;
    let listed = listed["result"]["tools"].as_array().unwrap().clone();
    let mut unique = std::collections::HashSet::new();
    let here: Vec<String> = manager
        .tools()
        .iter()
        .map(|tool| tool.definition().name().to_owned())
        .collect();
    for (tool, here) in listed.iter().zip(&here) {
        let name = tool["name"].as_str().unwrap();
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!(
            (1..=64).contains(&name.len()) && name.chars().all(legal),
            "{name}"
        );
        assert!(unique.insert(name.to_owned()), "{name} twice");
        // A person sees what it is called.
        let title = (name != here).then_some(here.as_str());
        assert_eq!(tool["title"].as_str(), title);
        for asked in [name, here] {
            let answer = client.call(asked, json!({})).await;
            assert_eq!(answer["content"][0]["text"], *here, "{asked}");
        }
    }
    assert_eq!(listed.len(), odd.len());
    assert_eq!(listed[1]["name"], "get_weather");
    assert!(
        listed[0]["name"]
            .as_str()
            .unwrap()
            .starts_with("get_weather_")
    );
    // A name that a client remembers never comes to mean another tool.
    let remembered = listed[0]["name"].as_str().unwrap();
    manager.replace(&source, ToolRank::Server(0), vec![tools[1].clone()]);
    let answer = client.call(remembered, json!({})).await;
    assert_eq!(answer["isError"], true, "{answer}");
}

#[tokio::test]
async fn hidden_tools_are_neither_listed_nor_found_nor_named() {
    let manager = manager();
    let server = ToolSource::Mcp("house".to_owned());
    let tools = ["lock", "echo", "lamp"].map(|name| of_server("house", name));
    manager.replace(&server, ToolRank::Server(0), tools.to_vec());
    let policy: Policy = serde_json::from_value(json!({ "deny": ["fail"] })).unwrap();
    let executor = ToolExecutor::builder(manager)
        .policy(policy)
        .without_observers();
    let mut options = ServeOptions::new("test", "1");
    options.allow = ["echo", "fail", "house/*"].map(ToolPattern::new).to_vec();
    options.deny = vec![ToolPattern::new("lock")];
    let mut client = LineClient::new(McpServer::new(executor.build(), options));
    client.initialize("2025-11-25").await;
    let listed = client.ask("tools/list", json!({})).await;
    assert_eq!(names(&listed), ["echo", "house__echo", "lamp"]);
    for hidden in ["lock", "house__lock", "number", "fail", "nope"] {
        let answer = client.ask("tools/call", json!({ "name": hidden })).await;
        let text = format!("Tool '{hidden}' not found. Available tools: echo, house__echo, lamp");
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
async fn a_visible_change_of_the_tools_is_announced_once() {
    let manager = manager();
    let mut options = ServeOptions::new("test", "1");
    options.deny = vec![ToolPattern::new("secret_*")];
    let server = McpServer::new(ToolExecutor::builder(Arc::clone(&manager)).build(), options);
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });

    let mut legacy = LineClient::new(server.clone());
    legacy.initialize("2025-11-25").await;
    legacy
        .send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
        .await;
    let mut modern = LineClient::new(server);
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

    // A subscription ends at once and in an orderly way.
    let started = tokio::time::Instant::now();
    let (rest, end) = modern.close().await;
    assert_eq!(
        (rest.len(), &rest[0]["id"], end.is_ok()),
        (1, &json!(1), true),
        "{rest:?}"
    );
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn tools_that_a_new_policy_hides_or_shows_are_a_change_of_the_list() {
    let manager = manager();
    let executor = ToolExecutor::builder(manager).without_observers().build();
    let mut client = LineClient::new(McpServer::new(
        executor.clone(),
        ServeOptions::new("test", "1"),
    ));
    client.initialize("2025-11-25").await;
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    client.send(initialized).await;
    client.ask("ping", json!({})).await;
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    for (policy, is_there) in [(json!({ "deny": ["echo"] }), false), (json!({}), true)] {
        let policy: Policy = serde_json::from_value(policy).unwrap();
        executor.set_rules(toolgate_core::Limits::default(), policy);
        assert_eq!(client.next().await, changed);
        let listed = client.ask("tools/list", json!({})).await;
        assert_eq!(names(&listed).contains(&"echo"), is_there);
    }
}
