//! D1, TM5, TM7, PN1, VA5, VA7: names of tools and parameters, with a real server process.

use serde_json::{Value, json};
use toolgate_core::{FunctionTool, RenameMode, ToolCall, ToolError};

use crate::fault_test::{FAKE, FaultTest, FaultTestBuilder, NEIGHBOR};

fn zwave() -> Value {
    json!([{
        "name": "control_zwave_device",
        "description": "Controls a device",
        "inputSchema": {
            "type": "object",
            "properties": {
                "deviceName": { "type": "string" },
                "action": { "type": "string", "enum": ["on", "off", "dim"] },
                "level": { "type": "integer", "minimum": 0, "maximum": 99 },
            },
            "required": ["deviceName", "action"],
        },
    }, {
        "name": "snake",
        "description": "Has its own style",
        "inputSchema": { "type": "object", "properties": { "device_name": { "type": "string" } }, "additionalProperties": false },
    }])
}

async fn sent(test: &FaultTest, tool: &str, arguments: Value) -> Value {
    test.answer(tool, arguments).await["arguments"].clone()
}

#[tokio::test]
async fn pn1_the_specified_call_reaches_a_real_server_exactly() {
    let test = FaultTestBuilder::new()
        .file("tools", &zwave())
        .server(FAKE, &["list=@/tools"])
        .start_settled()
        .await;
    let arguments = json!({ "device_name": "Switch One", "command": "on" });
    assert_eq!(
        sent(&test, "control_zwave_device", arguments)
            .await
            .to_string(),
        r#"{"deviceName":"Switch One","action":"on"}"#
    );
    // A name that the server declares is never rewritten.
    assert_eq!(
        sent(&test, "snake", json!({ "device_name": "x" })).await,
        json!({ "device_name": "x" })
    );
    test.finish().await;
}

/// A tool whose schema declares and requires snake-case parameters; `closed` allows no others.
fn snake_zwave(closed: bool) -> Value {
    json!([{
        "name": "control_zwave_device",
        "description": "Controls a device",
        "inputSchema": {
            "type": "object",
            "properties": { "device_name": { "type": "string" }, "command": { "enum": ["on", "off"] } },
            "required": ["device_name", "command"],
            "additionalProperties": !closed,
        },
    }])
}

#[tokio::test]
async fn pn6_always_and_never_are_settings_of_a_server() {
    let asked = json!({ "device_name": "Switch One", "command": "on" });
    let always = r#"{"deviceName":"Switch One","action":"on"}"#;
    for (normalize, expected) in [
        (RenameMode::Always, always),
        (RenameMode::Undeclared, &asked.to_string()),
        (RenameMode::Never, &asked.to_string()),
    ] {
        for closed in [true, false] {
            let test = FaultTestBuilder::new()
                .file("tools", &snake_zwave(closed))
                .settings(FAKE, &["list=@/tools"], |fake| fake.normalize = normalize)
                .start_settled()
                .await;
            let tool = "control_zwave_device";
            let received = sent(&test, tool, asked.clone()).await;
            assert_eq!(received.to_string(), expected, "{normalize:?} {closed}");
            // Errors use the names of the schema, and the call never reaches the server.
            let envelope = test.call(tool, json!({ "device_name": 5 })).await;
            assert_eq!(
                envelope["error"],
                "Invalid parameters: missing 'command', 'device_name' must be string"
            );
            let twice = json!({ "device_name": "a", "deviceName": "b", "command": "on" });
            let envelope = test.call(tool, twice).await;
            let refused = envelope["success"] == false;
            assert_eq!(refused, normalize == RenameMode::Always, "{envelope}");
            test.finish().await;
        }
    }
}

#[tokio::test]
async fn va5_only_arguments_outside_a_closed_schema_are_dropped() {
    let test = FaultTestBuilder::new()
        .file("tools", &zwave())
        .server(FAKE, &["list=@/tools"])
        .start_settled()
        .await;
    assert_eq!(
        sent(&test, "snake", json!({ "device_name": "x", "extra": 1 })).await,
        json!({ "device_name": "x" })
    );
    assert_eq!(
        sent(
            &test,
            "control_zwave_device",
            json!({ "deviceName": "x", "action": "on", "extra": 1 })
        )
        .await,
        json!({ "deviceName": "x", "action": "on", "extra": 1 })
    );
    test.finish().await;
}

#[tokio::test]
async fn va7_mcp_arguments_are_validated_unless_switched_off() {
    for (validate, error) in [
        (
            true,
            json!("Invalid parameters: 'action' must be one of: on, off, dim"),
        ),
        (false, Value::Null),
    ] {
        let test = FaultTestBuilder::new()
            .file("tools", &zwave())
            .settings(FAKE, &["list=@/tools"], |fake| fake.validate = validate)
            .start_settled()
            .await;
        let arguments = json!({ "deviceName": "x", "action": "explode" });
        let envelope = test.call("control_zwave_device", arguments).await;
        assert_eq!(envelope["error"], error, "{envelope}");
        test.finish().await;
    }
}

#[tokio::test]
async fn tm7_a_name_belongs_to_the_source_of_highest_rank() {
    let tools = json!([
        { "name": "datetime", "description": "Another clock", "inputSchema": { "type": "object" } },
        { "name": "shared", "description": "d", "inputSchema": { "type": "object" } },
        { "name": "dаtetime", "description": "With a Cyrillic letter", "inputSchema": { "type": "object" } },
    ]);
    let plan = FaultTestBuilder::new()
        .file("tools", &tools)
        .server("first", &["list=@/tools", "wait=500"])
        .server("second", &["list=@/tools"]);
    let test = plan.start();
    let clock = FunctionTool::new("datetime", "The clock", async |_: Value, _| {
        Ok::<_, ToolError>("local")
    });
    test.manager.add(clock.unwrap());
    test.servers.start_all().await;
    let local = test.execute(ToolCall::new("datetime", json!({}))).await;
    assert_eq!(local["result"], "local");
    for server in ["first", "second"] {
        let envelope = test.call_on(server, "datetime", json!({})).await;
        assert_eq!(envelope["success"], true, "{envelope}");
    }
    let shared = test.manager.find("shared").unwrap();
    assert_eq!(shared.definition().source().to_string(), "mcp:first");
    let log = test.log();
    assert!(
        log.lines()
            .any(|line| line.contains("WARN") && line.contains("datetime")),
        "{log}"
    );
    // A reconnect doesn't change the owner either.
    assert!(test.servers.reconnect("second").await);
    let local = test.execute(ToolCall::new("datetime", json!({}))).await;
    assert_eq!(local["result"], "local");
    let shared = test.manager.find("shared").unwrap();
    assert_eq!(shared.definition().source().to_string(), "mcp:first");
    test.finish().await;
}

#[tokio::test]
async fn tm2_any_tool_name_is_listed_and_called_unchanged() {
    let long = "long ".repeat(20_000);
    let odd = [
        "get weather",
        "größe",
        "a+b",
        "a_b",
        "a@b",
        "日本",
        "tool(1)",
        "a$b",
        "a,b",
        "un\u{200b}lock",
        "two\nlines",
        r"C:\new",
        "  ",
        &*long,
    ];
    // Without a description, the name stands in for it.
    let entry = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let tools: Vec<Value> = odd.iter().map(|name| entry(name)).collect();
    let test = FaultTestBuilder::new()
        .file("tools", &json!(tools))
        .server(FAKE, &["list=@/tools"])
        .start_settled()
        .await;
    let listed: Vec<String> = test
        .manager
        .tools()
        .iter()
        .map(|tool| tool.definition().name().to_owned())
        .collect();
    let shown = odd.map(toolgate_core::display_name);
    assert_eq!(listed, shown, "all of them, in order");
    for (listed, name) in listed.iter().zip(odd) {
        for asked in [listed.clone(), name.to_owned()] {
            let envelope = test.execute(ToolCall::new(asked, json!({ "x": 1 }))).await;
            let text = envelope["result"].as_str().unwrap_or_default();
            let received: Value = serde_json::from_str(text).unwrap();
            assert_eq!(received["tool"], name, "{envelope}");
        }
        assert_eq!(test.answer(name, json!({})).await["tool"], name);
    }
    let log = test.log();
    let is_reported = log.contains("left out") || log.contains("skipping the tool");
    assert!(!is_reported, "{log}");
    assert!(!log.contains(&*long), "a name fills no log");
    test.finish().await;
}

#[tokio::test]
async fn tm7_the_later_of_two_equal_names_wins() {
    let tool = |description: &str, parameter: &str| json!({ "name": "twice", "description": description, "inputSchema": { "type": "object", "required": [parameter] } });
    let other = json!({ "name": "once", "description": "d", "inputSchema": { "type": "object" } });
    let test = FaultTestBuilder::new()
        .file("tools", &json!([tool("one", "a"), other, tool("two", "b")]))
        .server(FAKE, &["list=@/tools"])
        .start_settled()
        .await;
    let tools = test.manager.tools();
    let listed: Vec<_> = tools
        .iter()
        .map(|tool| (tool.definition().name(), tool.definition().description()))
        .collect();
    assert_eq!(listed, [("twice", "two"), ("once", "d")]);
    let envelope = test.call("twice", json!({ "a": 1 })).await;
    assert_eq!(envelope["error"], "Invalid parameters: missing 'b'");
    assert!(test.servers.reconnect(FAKE).await);
    test.answer("once", json!({})).await;
    let log = test.log();
    let warned = |line: &&str| line.contains("WARN") && line.contains("lists a tool twice");
    assert_eq!(
        log.lines().filter(warned).count(),
        2,
        "once a listing: {log}"
    );
    assert!(!log.contains("trust"), "{log}");
    test.finish().await;
}

#[tokio::test]
async fn tm5_a_shared_name_is_found_with_its_server_prefix() {
    let test = FaultTest::start(&[]).await;
    for server in [FAKE, NEIGHBOR] {
        let envelope = test
            .call_on(server, "echo", json!({ "text": server }))
            .await;
        assert_eq!(envelope["result"], server);
    }
    test.finish().await;
}
