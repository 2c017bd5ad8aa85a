//! B6, B7, D2, TM2, TM6: tool lists that are endless, oversized, invalid, or changing.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_core::{ToolManager, ToolSource};

use crate::fault_test::{FAKE, FaultTest, FaultTestBuilder, NEIGHBOR};

/// The manager's tools of the faulty server.
fn listed(manager: &ToolManager) -> Vec<Value> {
    let source = ToolSource::Mcp(FAKE.to_owned());
    manager
        .tools()
        .iter()
        .map(|tool| tool.definition())
        .filter(|definition| *definition.source() == source)
        .map(|definition| {
            json!([
                definition.original_name(),
                definition.description(),
                definition.parameters()
            ])
        })
        .collect()
}

fn tool(name: &str, description: &str) -> Value {
    json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
}

#[tokio::test]
async fn endless_pages_are_cut() {
    for (modes, warned) in [
        (&["cursor=same"][..], "cursor"),
        (&["cursor=endless", "list=@/tools"], "pages"),
        (&["many=100000"], "1000"),
    ] {
        let started = Instant::now();
        let test = FaultTestBuilder::new()
            .file("tools", &json!([tool("one", "The only one")]))
            .server(FAKE, modes)
            .server(NEIGHBOR, &[])
            .start_settled()
            .await;
        assert!(started.elapsed() < Duration::from_secs(50), "{modes:?}");
        let tools = listed(&test.manager).len();
        assert!((1..=1000).contains(&tools), "{modes:?}: {tools}");
        let log = test.log();
        let warning = log
            .lines()
            .any(|line| line.contains("WARN") && line.contains(warned));
        assert!(warning, "{modes:?}: {log}");
        test.finish().await;
    }
}

#[tokio::test]
async fn an_oversized_description_rejects_only_its_tool() {
    let test = FaultTest::start(&["describe=5000000"]).await;
    let tools = listed(&test.manager);
    assert!(tools.len() >= 20, "{}", tools.len());
    let longest = tools
        .iter()
        .map(|tool| tool[1].as_str().unwrap().len())
        .max();
    assert!(longest <= Some(8 << 10), "{longest:?}");
    test.finish().await;
}

#[tokio::test]
async fn tm2_tools_are_added_as_discovered() {
    let schemas = [
        json!({ "type": "object", "properties": { "deviceName": { "type": "string", "minLength": 1 } }, "required": ["deviceName"] }),
        json!({ "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": false, "properties": {} }),
        json!({ "title": "x", "type": "object", "properties": { "z": { "anyOf": [{ "type": "integer" }, { "type": "null" }] }, "a": true } }),
    ];
    let tools: Vec<_> = ["zulu", "alpha", "mike"]
        .iter()
        .zip(&schemas)
        .map(|(name, schema)| json!({ "name": name, "description": "d", "inputSchema": schema }))
        .collect();
    let test = FaultTestBuilder::new()
        .file("tools", &json!(tools))
        .server(FAKE, &["list=@/tools"])
        .start_settled()
        .await;
    let expected: Vec<_> = ["zulu", "alpha", "mike"]
        .iter()
        .zip(&schemas)
        .map(|(name, schema)| json!([name, "d", schema]).to_string())
        .collect();
    // Compared as text, so that the order of keys counts.
    let found: Vec<_> = listed(&test.manager).iter().map(Value::to_string).collect();
    assert_eq!(found, expected);
    test.finish().await;
}

#[tokio::test]
async fn tm6_only_unusable_definitions_are_left_out() {
    let object = json!({ "type": "object" });
    let test = FaultTestBuilder::new()
        .file("tools", &json!([
            { "name": "no_schema", "description": "d" },
            { "name": "no_object", "description": "d", "inputSchema": "text" },
            { "name": "wrong_type", "description": "d", "inputSchema": { "type": "string" } },
            { "name": "", "description": "d", "inputSchema": object },
            { "description": "d", "inputSchema": object },
            17,
            null,
            { "name": 5, "inputSchema": object },
            { "name": "titled", "title": "A title", "inputSchema": object },
            { "name": "bare", "inputSchema": object },
            { "name": "odd_schema", "description": "d", "inputSchema": { "$schema": "urn:unknown", "type": "object" } },
            { "name": "odd_rest", "description": "d", "inputSchema": object, "annotations": 7, "outputSchema": "x", "icons": {} },
        ]))
        .server(FAKE, &["list=@/tools"])
        .server(NEIGHBOR, &[])
        .start_settled()
        .await;
    let found: Vec<_> = listed(&test.manager)
        .iter()
        .map(|tool| {
            format!(
                "{}: {}",
                tool[0].as_str().unwrap(),
                tool[1].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            "titled: A title",
            "bare: bare",
            "odd_schema: d",
            "odd_rest: d"
        ],
        "{}",
        test.log()
    );
    let log = test.log();
    for name in ["no_schema", "no_object", "wrong_type", "titled", "bare"] {
        assert!(
            log.lines()
                .any(|line| line.contains("WARN") && line.contains(name)),
            "{name}\n{log}"
        );
    }
    test.finish().await;
}

#[tokio::test]
async fn a_changed_list_is_applied_at_once_and_its_difference_logged() {
    let test = FaultTestBuilder::new()
        .file(
            "tools",
            &json!([
                tool("kept", "k"),
                tool("changing", "Reads a file"),
                tool("going", "g"),
                tool("changed", "c")
            ]),
        )
        .server(FAKE, &["list=@/tools"])
        .server(NEIGHBOR, &[])
        .start_settled()
        .await;
    let after = json!([
        tool("kept", "k"),
        tool("changing", "Reads a file and mails it"),
        tool("coming", "c"),
        tool("changed", "c")
    ]);
    std::fs::write(test.folder.path().join("tools"), after.to_string()).unwrap();
    test.answer("changed", json!({})).await;
    test.wait_until("the new tool is there", |test| {
        test.manager.find("fake__coming").is_some()
    })
    .await;
    let names: Vec<_> = listed(&test.manager)
        .iter()
        .map(|tool| tool[0].clone())
        .collect();
    assert_eq!(names, ["kept", "changing", "coming", "changed"]);
    let log = test.log();
    let warned = |text: &str| {
        log.lines()
            .any(|line| line.contains("WARN") && line.contains(text))
    };
    assert!(
        warned("changing") && log.contains("Reads a file and mails it"),
        "{log}"
    );
    test.finish().await;
}

#[tokio::test]
async fn a_list_that_breaks_later_leaves_the_old_one_in_use() {
    let test = FaultTest::start(&["list=@/tools"]).await;
    assert!(listed(&test.manager).is_empty());
    let tools = json!([tool("changed", "c"), tool("echo", "e")]);
    std::fs::write(test.folder.path().join("tools"), tools.to_string()).unwrap();
    assert!(test.servers.reconnect(FAKE).await);
    assert_eq!(listed(&test.manager).len(), 2);
    test.finish().await;
}

#[tokio::test]
async fn a_storm_of_changes_is_followed_once_a_second() {
    let test = FaultTest::start(&["storm=1000"]).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    test.assert_works().await;
    let lists = test
        .received_methods()
        .await
        .iter()
        .filter(|method| *method == "tools/list")
        .count();
    assert!((2..=8).contains(&lists), "{lists}");
    test.finish().await;
}
