//! Tools: listed, shown, called, checked.

use http::Method;
use serde_json::{Value, json};
use toolgate_core::{CallContext, FunctionTool, Limits, ToolError};

use crate::client::{send, whole};
use crate::test_gateway::{ApiTestGateway, TestGatewayOptions, until};

#[tokio::test]
async fn tools_are_listed_with_their_annotations_and_policy() {
    let gateway = ApiTestGateway::start().await;
    let list = gateway.get("/api/tools").await.json();
    let names: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[..4], ["echo", "a/b", "..", "up:to.date"]);
    let echo = gateway.get("/api/tools/echo").await.json();
    assert_eq!(echo, list[0]);
    assert_eq!(
        echo["annotations"],
        json!({ "read_only": true, "idempotent": true, "destructive": false, "open_world": null })
    );
    assert_eq!(
        (&echo["needs_approval"], &echo["timeout_ms"]),
        (&json!(false), &json!(30_000))
    );
    assert_eq!(
        gateway.get("/api/tools/lock").await.json()["needs_approval"],
        true
    );
    // What the command line shows of a tool is here too.
    let tool = gateway.executor.find("echo").unwrap();
    for (key, value) in json!(tool.definition()).as_object().unwrap() {
        assert_eq!(&echo[key], value, "{key}");
    }
}

#[tokio::test]
async fn tool_names_in_paths_are_decoded() {
    let gateway = ApiTestGateway::start().await;
    for (path, expected) in [
        ("a%2Fb", Some("a/b")),
        ("a%2fb", Some("a/b")),
        ("%2E%2E", Some("..")),
        ("..", Some("..")),
        ("up:to.date", Some("up:to.date")),
        ("up%3Ato%2Edate", Some("up:to.date")),
        ("e%63ho", Some("echo")),
        ("e%2563ho", None),
        ("%C3%A9cho", None),
        ("echo%00", None),
        ("%25", None),
        ("echo%0d%0aevil", None),
        ("..%2f..%2fetc%2fpasswd", None),
    ] {
        let shown = gateway.get(&format!("/api/tools/{path}")).await;
        let called = gateway.call(path, &json!({})).await;
        match expected {
            Some(name) => {
                assert_eq!(
                    (shown.status.as_u16(), &shown.json()["name"]),
                    (200, &json!(name)),
                    "{path}"
                );
                assert_eq!(
                    (called.status.as_u16(), &called.json()["tool_name"]),
                    (200, &json!(name)),
                    "{path}"
                );
            }
            None => {
                assert_eq!(shown.status, 404, "{path}");
                assert!(!shown.problem().contains(['\r', '\n', '\0']), "{path}");
                assert_eq!(
                    (called.status.as_u16(), &called.json()["error_kind"]),
                    (404, &json!("not_found")),
                    "{path}"
                );
            }
        }
    }
    for path in [
        "/api/tools/%ff",
        "/api/tools/%ff/call",
        "/api/tools/%ff/check",
    ] {
        let method = if path.ends_with("ff") {
            Method::GET
        } else {
            Method::POST
        };
        let refused = gateway.ask(method, path, "{}").await;
        assert_eq!(refused.status, 400, "{path}");
        match path.ends_with("/call") {
            true => assert_eq!(refused.json()["error_kind"], "invalid_arguments"),
            false => drop(refused.problem()),
        }
    }
    assert_eq!(gateway.get("/api/tools/").await.status, 404);
    assert_eq!(
        gateway.get("/api/tools/ecko").await.problem(),
        "Tool 'ecko' not found. Did you mean 'echo'?"
    );
}

#[tokio::test]
async fn tm2_a_tool_of_any_name_is_called_by_its_encoded_path() {
    let gateway = ApiTestGateway::start().await;
    for (name, path) in [
        ("get weather", "get%20weather"),
        ("größe", "gr%C3%B6%C3%9Fe"),
        ("日本", "%E6%97%A5%E6%9C%AC"),
        ("a+b", "a+b"),
        ("50%?#", "50%25%3F%23"),
        ("<b>\"bold\"</b>", "%3Cb%3E%22bold%22%3C%2Fb%3E"),
    ] {
        let answer = FunctionTool::new(name, "Odd", async |_: Value, context: CallContext| {
            Ok::<_, ToolError>(context.tool_name().to_owned())
        });
        gateway.executor.manager().add(answer.unwrap());
        let shown = gateway.get(&format!("/api/tools/{path}")).await.json();
        assert_eq!(shown["name"], name);
        let called = gateway.call(path, &json!({})).await.json();
        assert_eq!(
            (&called["result"], &called["tool_name"]),
            (&json!(name), &json!(name))
        );
    }
    // A label of the metrics holds any of them.
    let metrics = gateway.get("/metrics").await.text;
    for label in [r#"tool="get weather""#, r#"tool="<b>\"bold\"</b>""#] {
        assert!(metrics.contains(label), "{metrics}");
    }
}

#[tokio::test]
async fn every_call_is_answered_with_an_envelope() {
    let gateway = ApiTestGateway::start().await;
    let well = gateway.call("echo", &json!({ "a": 1 })).await;
    assert_eq!(well.json()["result"], json!({ "echo": { "a": 1 } }));
    for (tool, body, status, kind) in [
        ("fail", "{}", 200, "tool_error"),
        ("panic", "{}", 200, "panicked"),
        ("dim", "{}", 200, "invalid_arguments"),
        ("dim", r#"{"level":"5"}"#, 200, "invalid_arguments"),
        ("lock", "{}", 200, "denied"),
        ("nope", "{}", 404, "not_found"),
        ("nope", "{", 404, "not_found"),
        ("echo", "", 400, "invalid_arguments"),
        ("echo", "{", 400, "invalid_arguments"),
        ("echo", "[]", 400, "invalid_arguments"),
        ("echo", "5", 400, "invalid_arguments"),
        ("echo", r#"{"a":1,"a":2}"#, 400, "invalid_arguments"),
        ("echo", "{}{}", 400, "invalid_arguments"),
        ("echo/call?timeout=soon&x=", "{}", 400, "invalid_arguments"),
        ("wait/call?timeout=20ms&x=", "{}", 200, "timeout"),
    ] {
        let path = match tool.contains('?') {
            true => format!("/api/tools/{tool}"),
            false => format!("/api/tools/{tool}/call"),
        };
        let reply = gateway.ask(Method::POST, &path, body).await;
        let envelope = reply.json();
        assert_eq!(
            (reply.status.as_u16(), &envelope["error_kind"]),
            (status, &json!(kind)),
            "{tool} {body}"
        );
        assert_eq!(envelope["success"], false);
        assert_eq!(envelope["call_id"].as_str().unwrap().len(), 32);
    }
}

#[tokio::test]
async fn a_call_with_a_bad_timeout_is_recorded() {
    let gateway = ApiTestGateway::start().await;
    let path = "/api/tools/echo/call?timeout=soon";
    let refused = gateway.post(path, &json!({ "a": 1 })).await.json();
    let id = refused["call_id"].as_str().unwrap();
    let call = gateway.get(&format!("/api/calls/{id}")).await.json();
    assert_eq!(call["asked"], json!({ "a": 1 }));
    let path = format!("/api/calls/{id}/replay");
    let again = gateway.post(&path, &json!({})).await.json();
    assert_eq!(again["result"], json!({ "echo": { "a": 1 } }));
}

#[tokio::test]
async fn oversized_and_surplus_calls_are_refused_with_the_reason() {
    let mut limits = Limits::default();
    limits.max_arguments = 1000;
    limits.concurrency = 1;
    let plan = TestGatewayOptions {
        limits,
        ..TestGatewayOptions::default()
    };
    let gateway = ApiTestGateway::start_with(plan).await;
    for bytes in [1000, 10_000, 1_000_000] {
        let reply = gateway
            .call("echo", &json!({ "a": "x".repeat(bytes) }))
            .await;
        assert_eq!(
            (reply.status.as_u16(), &reply.json()["error_kind"]),
            (413, &json!("too_large")),
            "{bytes}"
        );
    }
    assert_eq!(
        gateway
            .ask(Method::POST, "/api/tools/echo/check", &"x".repeat(10_000))
            .await
            .status,
        413
    );
    let (address, headers) = (gateway.address, [("content-type", "application/json")]);
    let busy = tokio::spawn(async move {
        drop(
            send(
                address,
                &Method::POST,
                "/api/tools/wait/call",
                &headers,
                "{}",
            )
            .await,
        );
    });
    until(|| gateway.waiting.load(std::sync::atomic::Ordering::SeqCst) == 1).await;
    let full = gateway
        .ask(Method::POST, "/api/tools/echo/call?timeout=20ms", "{}")
        .await;
    assert_eq!(
        (full.status.as_u16(), full.header("retry-after")),
        (503, "1")
    );
    assert_eq!(full.json()["error_kind"], "overloaded");
    busy.abort();
}

#[tokio::test]
async fn a_call_is_cancelled_when_its_caller_disconnects() {
    let gateway = ApiTestGateway::start().await;
    let (address, headers) = (gateway.address, [("content-type", "application/json")]);
    let gone = send(
        address,
        &Method::POST,
        "/api/tools/wait/call",
        &headers,
        "{}",
    );
    let waiting = || gateway.waiting.load(std::sync::atomic::Ordering::SeqCst);
    let begun = async { until(|| waiting() == 1).await };
    tokio::select! {
        _ = gone => panic!("it never answers"),
        () = begun => {}
    }
    until(|| waiting() == 0).await;
    let calls = gateway.get("/api/calls").await.json();
    assert_eq!(calls[0]["outcome"], "cancelled");
}

#[tokio::test]
async fn pn7_a_key_given_twice_in_a_body_is_an_error() {
    let gateway = ApiTestGateway::start().await;
    let body = r#"{"text":"a","text":"b"}"#;
    let called = gateway
        .ask(Method::POST, "/api/tools/echo/call", body)
        .await;
    let envelope = called.json();
    assert_eq!(envelope["error_kind"], "invalid_arguments", "{envelope}");
    assert_eq!(envelope["error"], "Invalid parameters: 'text' given twice");
}

#[tokio::test]
async fn a_body_of_another_content_type_is_refused() {
    let gateway = ApiTestGateway::start().await;
    for (kind, origin, status) in [
        (None, None, 200),
        (Some("application/json; charset=utf-8"), None, 200),
        // As `curl -d` sends it.
        (Some("application/x-www-form-urlencoded"), None, 200),
        (Some("application/x-www-form-urlencoded"), Some("own"), 415),
        (Some("text/plain"), None, 415),
        (Some("text/plain"), Some("own"), 415),
        (Some("multipart/form-data; boundary=x"), None, 415),
    ] {
        let own = format!("http://{}", gateway.address);
        let mut headers = Vec::new();
        headers.extend(kind.map(|kind| ("content-type", kind)));
        headers.extend(origin.map(|_| ("origin", own.as_str())));
        for path in ["/api/tools/echo/call", "/api/tools/echo/check"] {
            let reply = send(gateway.address, &Method::POST, path, &headers, "{}").await;
            assert_eq!(reply.status(), status, "{path} {kind:?} {origin:?}");
            if status == 415 {
                let reply = whole(reply).await;
                let text = match path.ends_with("/call") {
                    true => {
                        let envelope = reply.json();
                        assert_eq!(envelope["tool_name"], "echo", "{envelope}");
                        envelope["error"].to_string()
                    }
                    false => reply.problem().to_owned(),
                };
                assert!(text.contains("application/json"), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn a_check_shows_the_call_and_runs_nothing() {
    let gateway = ApiTestGateway::start().await;
    let check = async |tool: &str, body: &str| {
        let reply = gateway
            .ask(Method::POST, &format!("/api/tools/{tool}/check"), body)
            .await;
        assert_eq!(reply.status, 200);
        reply.json()
    };
    assert_eq!(
        check("dim", r#"{"level": 7, "other": 1}"#).await,
        json!({ "valid": true, "executed": { "level": 7 }, "renamed": [], "dropped": ["other"], "needs_approval": false })
    );
    assert_eq!(check("lock", "{}").await["needs_approval"], true);
    assert_eq!(
        check("dim", r#"{"level": 101}"#).await,
        json!({
            "valid": false,
            "error": "Invalid parameters: 'level' must be at most 100",
            "violations": [{ "parameter": "level", "message": "must be at most 100" }],
        })
    );
    assert_eq!(
        check("dim", "{}").await["violations"],
        json!([{ "parameter": "level", "message": "is missing" }])
    );
    assert_eq!(
        check("dim", "[").await["violations"][0]["parameter"],
        "arguments"
    );
    check("count", "{}").await;
    assert_eq!(gateway.counted.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert_eq!(
        gateway
            .post("/api/tools/nope/check", &json!({}))
            .await
            .status,
        404
    );
    assert_eq!(gateway.get("/api/calls").await.json(), json!([]));
}

#[tokio::test]
async fn a_call_joins_its_callers_trace() {
    let gateway = ApiTestGateway::start().await;
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    let headers = [
        ("traceparent", parent.as_str()),
        ("content-type", "application/json"),
    ];
    let reply = whole(
        send(
            gateway.address,
            &Method::POST,
            "/api/tools/echo/call",
            &headers,
            "{}",
        )
        .await,
    )
    .await;
    let id = reply.json()["call_id"].as_str().unwrap().to_owned();
    let call = gateway.get(&format!("/api/calls/{id}")).await.json();
    assert_eq!(
        (&call["trace_id"], &call["parent_span_id"]),
        (&json!(trace), &json!("b7ad6b7169203331"))
    );
}
