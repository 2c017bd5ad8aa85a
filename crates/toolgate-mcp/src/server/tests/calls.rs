use std::sync::atomic::{AtomicBool, Ordering};

use super::super::ServerReadiness;
use super::*;

#[tokio::test]
async fn results_keep_their_form() {
    let mut client = LineClient::legacy(&manager()).await;
    let text =
        |text: &str| json!({ "content": [{ "type": "text", "text": text }], "isError": false });
    let error =
        |text: &str| json!({ "content": [{ "type": "text", "text": text }], "isError": true });
    let mut blocks = serde_json::to_value(blocks().content).unwrap();
    // Clients can only show a block of an unknown kind as text.
    blocks[4] = json!({ "type": "text", "text": blocks[4].to_string() });
    for (name, expected) in [
        ("number", text("7")),
        ("blocks", json!({ "content": blocks, "isError": false })),
        ("fail", error("out of paper")),
        ("panic", error("Tool 'panic' failed unexpectedly")),
        ("trace", text("none mcp")),
    ] {
        assert_eq!(client.call(name, json!({})).await, expected, "{name}");
    }
}

#[tokio::test]
async fn invalid_arguments_are_reported_to_the_model() {
    let manager = manager();
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
    manager.add(WorkerTool {
        definition: ToolDefinition::builder("weather", "Weather", schema)
            .build()
            .unwrap(),
        work: |_, _| Box::pin(async { Ok(ToolOutput::text("sun")) }),
    });
    let mut client = LineClient::legacy(&manager).await;
    for (arguments, expected) in [
        (
            "{}",
            "Invalid parameters: missing 'city'. Required parameters: 'city' (string)",
        ),
        ("[]", "Invalid parameters: 'arguments' must be object"),
        (
            r#"{"city":"Oslo","city":"Rome"}"#,
            "Invalid parameters: 'city' given twice",
        ),
    ] {
        client
            .raw(&format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"weather","arguments":{arguments}}}}}"#
            ))
            .await;
        let answer = client.next().await;
        let expected =
            json!({ "content": [{ "type": "text", "text": expected }], "isError": true });
        assert_eq!(answer["result"], expected, "{arguments}");
    }
}

#[tokio::test]
async fn the_trace_of_a_request_belongs_to_the_call() {
    let mut client = LineClient::legacy(&manager()).await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (given, expected, state) in [
        (trace, &trace[..36], " mcp a=1,b=2"),
        (&"x".repeat(1000), "none mcp", "none mcp"),
    ] {
        let meta = json!({ "traceparent": given, "tracestate": "a=1, b=2" });
        let params = json!({ "name": "trace", "_meta": meta });
        let answer = client.ask("tools/call", params).await;
        let told = answer["result"]["content"][0]["text"].as_str().unwrap();
        // The trace is the same, with the call as the parent.
        assert!(
            told.starts_with(expected) && told.ends_with(state) && !told.contains(trace),
            "{told}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_relayed_and_ends_before_the_answer() {
    let mut client = LineClient::legacy(&manager()).await;
    let params = json!({ "name": "steps", "_meta": { "progressToken": "t" } });
    let mut told = vec![client.ask("tools/call", params).await];
    while told.last().unwrap()["id"].is_null() {
        told.push(client.next().await);
    }
    let progress = |more: Value| {
        let mut params = json!({ "progressToken": "t" });
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
    };
    let expected = [
        progress(json!({ "progress": 1.0, "total": 3.0 })),
        progress(json!({ "progress": 2.0, "total": 3.0, "message": "half" })),
        progress(json!({ "progress": 3.0, "total": 3.0 })),
        progress(json!({ "progress": 4.0 })),
    ];
    assert_eq!(told[..4], expected);
    assert_eq!(told[4]["result"]["content"][0]["text"], "done");
    // Without a token the client did not ask for progress.
    assert_eq!(client.call("steps", json!({})).await["isError"], false);
}

#[tokio::test(start_paused = true)]
async fn calls_run_side_by_side() {
    let mut client = LineClient::legacy(&manager()).await;
    for id in 10..20 {
        let params = json!({ "name": "sleep" });
        client
            .send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
            .await;
    }
    assert_eq!(
        client.call("number", json!({})).await["content"][0]["text"],
        "7"
    );
    let started = tokio::time::Instant::now();
    for _ in 10..20 {
        assert_eq!(client.next().await["result"]["content"][0]["text"], "slept");
    }
    assert!(started.elapsed() <= Duration::from_secs(21));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_stopped_and_not_answered() {
    static STARTED: AtomicBool = AtomicBool::new(false);
    static STOPPED: AtomicBool = AtomicBool::new(false);
    struct Running;
    impl Drop for Running {
        fn drop(&mut self) {
            STOPPED.store(true, Ordering::Relaxed);
        }
    }
    let manager = manager();
    manager.add(tool("hold", |_, _| {
        Box::pin(async {
            let _running = Running;
            STARTED.store(true, Ordering::Relaxed);
            std::future::pending().await
        })
    }));
    let mut client = LineClient::legacy(&manager).await;
    let params = json!({ "name": "hold" });
    client
        .send(json!({ "jsonrpc": "2.0", "id": "s", "method": "tools/call", "params": params }))
        .await;
    // A call that is cancelled before it begins never runs at all.
    while !STARTED.load(Ordering::Relaxed) {
        tokio::task::yield_now().await;
    }
    let params = json!({ "requestId": "s", "reason": "no longer wanted" });
    client
        .send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
        .await;
    // Shorter than any limit of the call itself.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(STOPPED.load(Ordering::Relaxed));
    assert_eq!(
        client.ask("ping", json!({})).await,
        json!({ "jsonrpc": "2.0", "id": 1, "result": {} })
    );
    let (rest, _) = client.close().await;
    assert_eq!(rest, [] as [Value; 0]);
}

#[tokio::test(start_paused = true)]
async fn too_many_calls_at_once_are_refused_and_the_rest_answered() {
    let mut client = LineClient::legacy(&manager()).await;
    for id in 0..1100 {
        let params = json!({ "name": "steps" });
        client
            .send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
            .await;
    }
    let mut refused = 0;
    for _ in 0..1100 {
        let answer = client.next().await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        if answer["result"]["isError"] == true {
            assert!(text.contains("1024"), "{text}");
            refused += 1;
        }
    }
    assert_eq!(refused, 76);
}

/// A server that never answers, so unknown names are never decided.
struct MuteServer;

impl ServerReadiness for MuteServer {
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn ready_for<'a>(&'a self, _tool: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn mc5_an_early_call_by_a_legal_name_is_woken_when_its_tool_is_there() {
    for (asked, answered_after) in [
        ("get_weather_90c99821", 2),
        ("get weather", 2),
        ("nothing", 30),
    ] {
        let manager = manager();
        let server = server(&manager);
        server.wait_for(MuteServer);
        let mut client = LineClient::new(server);
        client.initialize("2025-11-25").await;
        let started = tokio::time::Instant::now();
        let coming = async {
            for (after, name) in [(1, "other tool"), (1, "get weather")] {
                tokio::time::sleep(Duration::from_secs(after)).await;
                manager.add(tool(name, |_, context| {
                    let name = context.tool_name().to_owned();
                    Box::pin(async { Ok(ToolOutput::text(name)) })
                }));
            }
        };
        let (answer, ()) = tokio::join!(client.call(asked, json!({})), coming);
        assert_eq!(started.elapsed().as_secs(), answered_after, "{asked}");
        if asked != "nothing" {
            assert_eq!(answer["content"][0]["text"], "get weather", "{answer}");
        }
    }
}
