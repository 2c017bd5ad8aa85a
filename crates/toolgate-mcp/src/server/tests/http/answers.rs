use toolgate_core::{Scope, ToolPattern};

use super::*;

#[tokio::test]
async fn every_older_revision_is_supported() {
    let mcp = http(&manager());
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let answer = HttpCaller::new(&mcp).post(initialize(asked)).await;
        let id = answer.headers()["mcp-session-id"].clone();
        assert_eq!(id.len(), 32, "128 bits");
        let expected = json!({ "jsonrpc": "2.0", "id": 1, "result": {
            "protocolVersion": answered,
            "capabilities": offered(answered),
            "serverInfo": { "name": "test", "version": "1.2.3" },
        } });
        assert_eq!(json_of(answer).await, expected);
    }
    assert_eq!(mcp.session_count(), 5);
}

/// Requests for both transports. On stdio the first one decides the era.
const QUESTIONS: [(&str, &str); 14] = [
    ("tools/list", "{}"),
    ("ping", "{}"),
    ("tools/list", r#"{"cursor":"x"}"#),
    (
        "tools/call",
        r#"{"name":"echo","arguments":{"b":1,"a":[2]}}"#,
    ),
    ("tools/call", r#"{"name":"number"}"#),
    ("tools/call", r#"{"name":"blocks","arguments":null}"#),
    ("tools/call", r#"{"name":"fail"}"#),
    ("tools/call", r#"{"name":"panic"}"#),
    ("tools/call", r#"{"name":"nope"}"#),
    ("tools/call", r#"{"name":"echo","arguments":[1]}"#),
    ("tools/call", r#"{"name":"echo","arguments":{"a":1,"a":2}}"#),
    ("prompts/list", "{}"),
    ("resources/templates/list", "{}"),
    ("nothing/at/all", "{}"),
];

#[tokio::test]
async fn the_older_era_is_answered_as_on_stdio() {
    let mcp = http(&manager());
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let mut stdio = LineClient::legacy(&manager()).await;
    for (method, params) in QUESTIONS {
        let line = format!(r#"{{"jsonrpc":"2.0","id":"q","method":"{method}","params":{params}}}"#);
        stdio.raw(&line).await;
        let expected = stdio.next().await;
        let answer = json_of(caller.send("POST", line).await).await;
        assert_eq!(answer, expected, "{method} {params}");
    }
}

#[tokio::test]
async fn the_newer_era_is_answered_as_on_stdio() {
    let mcp = http(&manager());
    let mut stdio = LineClient::new(server(&manager()));
    for (method, params) in QUESTIONS.into_iter().chain([("server/discover", "{}")]) {
        // A `Value` can't hold a duplicate key.
        let Ok(params) = toolgate_core::parse_json(params.as_bytes()) else {
            continue;
        };
        let message = modern_request_message(method, params.clone());
        let expected = stdio.ask_modern(method, params.clone()).await;
        let caller = HttpCaller::modern(&mcp, method, params["name"].as_str().unwrap_or(""));
        let answer = json_of(caller.post(message).await).await;
        assert_eq!(answer["result"], expected["result"], "{method} {params}");
        assert_eq!(
            answer["error"]["code"], expected["error"]["code"],
            "{method}"
        );
    }
}

#[tokio::test]
async fn an_events_only_client_gets_its_answer_as_an_event() {
    let mcp = http(&manager());
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let caller = caller.with("accept", "text/event-stream");
    let mut events = TestEvents::new(caller.post(request_message("ping", json!({}))).await);
    assert_eq!(events.message().await["result"], json!({}));
    assert_eq!(events.next().await, None);
    let call = request_message("tools/call", json!({ "name": "number" }));
    let mut events = TestEvents::new(caller.post(call).await);
    assert_eq!(events.message().await["result"]["content"][0]["text"], "7");
    assert_eq!(events.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn progress_comes_in_events_and_ends_before_the_answer() {
    let mcp = http(&manager());
    let params = json!({ "name": "steps", "_meta": { "progressToken": "t" } });
    let legacy = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let modern = HttpCaller::modern(&mcp, "tools/call", "steps");
    for answer in [
        legacy
            .post(request_message("tools/call", params.clone()))
            .await,
        modern
            .post(modern_request_message("tools/call", params.clone()))
            .await,
    ] {
        let mut events = TestEvents::new(answer);
        for (progress, message) in [(1.0, None), (2.0, Some("half")), (3.0, None), (4.0, None)] {
            let told = events.message().await;
            assert_eq!(told["method"], "notifications/progress");
            let params = &told["params"];
            assert_eq!(
                (&params["progressToken"], &params["progress"]),
                (&json!("t"), &json!(progress))
            );
            assert_eq!(params["message"].as_str(), message);
        }
        let answer = events.message().await;
        assert_eq!(answer["id"], 1);
        assert_eq!(answer["result"]["content"][0]["text"], "done");
        assert_eq!(events.next().await, None);
    }
    // A client that doesn't accept events gets the answer without them.
    let legacy = legacy.with("accept", "application/json");
    let answer = legacy.ask("tools/call", params).await;
    assert_eq!(answer["result"]["content"][0]["text"], "done");
}

#[tokio::test]
async fn a_client_with_a_share_of_the_tools_has_no_others() {
    let mcp = http(&manager());
    let only =
        |names: &[&str]| Scope::only(names.iter().map(|name| ToolPattern::new(name)).collect());
    let less = mcp.within(only(&["number", "echo"]));
    let least = less.within(only(&["echo", "fail"]));
    let none = mcp.within(only(&[]));
    for (mcp, expected) in [
        (&less, vec!["echo", "number"]),
        (&least, vec!["echo"]),
        (&none, vec![]),
    ] {
        let caller = HttpCaller::with_session(mcp, "2025-11-25").await;
        let listed = caller.ask("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap();
        let names: Vec<&str> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, expected);
        for name in ["echo", "number", "fail"] {
            let answer = caller.ask("tools/call", json!({ "name": name })).await;
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            let found = !text.contains("not found");
            assert_eq!(found, expected.contains(&name), "{name}: {text}");
            assert!(!text.contains("panic"), "others are not named: {text}");
        }
    }
    assert_eq!(mcp.session_count(), 3, "they share their sessions");
}
