//! Servers that die, hang or send malformed results when their content, skills
//! or extensions are used.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_core::{Limits, Policy};
use toolgate_mcp::ProtocolEra;

use crate::client::TestClient;
use crate::gateway::{ERAS, Gateway, era_pairs};

/// The last one belongs to an extension. Nobody knows what it does, so it is never repeated.
const METHODS: [&str; 6] = [
    "resources/read",
    "prompts/get",
    "completion/complete",
    "skills/get",
    "resources/directory/read",
    UNKNOWN_METHOD,
];
const UNKNOWN_METHOD: &str = "thing/find";
const THING: &str = "com.example/thing";

/// A server that offers all faults as resources and as prompts, and a healthy neighbour.
async fn faulty(era: ProtocolEra) -> Gateway {
    let faults = [
        "fault:hang",
        "fault:die",
        "fault:die-once",
        "fault:big/20000",
        "fault:big/9437184",
        "fault:big/17825792",
    ];
    let prompts: Vec<Value> = faults.iter().map(|name| json!({ "name": name })).collect();
    start(era, &prompts).await
}

/// A server with these prompts, skills and an extension, and a healthy neighbour.
async fn start(era: ProtocolEra, prompts: &[Value]) -> Gateway {
    let content = json!({
        "resources": [{ "uri": "fault:x" }], "prompts": prompts, "anything": true,
        "extensions": {
            "io.modelcontextprotocol/skills": { "directoryRead": true }, THING: {},
        },
        "methods": { UNKNOWN_METHOD: {} },
    });
    let neighbour =
        json!({ "resources": [{ "uri": "healthy:1" }], "prompts": [{ "name": "healthy" }] });
    Gateway::start(era, &[("faulty", content), ("neighbour", neighbour)]).await
}

/// A client that declares the extension.
async fn connect(gateway: &Gateway, era: ProtocolEra) -> TestClient {
    let capabilities = json!({ "extensions": { THING: {} } });
    TestClient::with_capabilities(gateway.server.clone(), era, capabilities).await
}

/// The parameters that cause a fault.
fn params(method: &str, fault: &str) -> Value {
    match method {
        "prompts/get" => json!({ "name": fault }),
        "completion/complete" => json!({
            "ref": { "type": "ref/resource", "uri": fault },
            "argument": { "name": "a", "value": "" },
        }),
        _ => json!({ "uri": fault }),
    }
}

async fn assert_still_working(client: &mut TestClient) {
    let started = Instant::now();
    assert_eq!(client.read("healthy:1").await, "healthy:1 of neighbour");
    client
        .result("prompts/get", json!({ "name": "healthy" }))
        .await;
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_server_that_dies_fails_every_request_on_it_and_comes_back() {
    for (client_era, server_era) in era_pairs() {
        for method in METHODS {
            let gateway = faulty(server_era).await;
            let mut client = connect(&gateway, client_era).await;
            // What is safe to repeat is tried twice before it fails.
            let error = client
                .expect_error(method, params(method, "fault:die"))
                .await;
            let text = error["message"].as_str().unwrap();
            let stopped = "MCP server 'faulty' stopped during the call (exit status 3)";
            assert_eq!(text, stopped, "{method}");
            assert_eq!(error["data"]["kind"], "unavailable", "{error}");
            assert_still_working(&mut client).await;
            assert_eq!(
                gateway.received("faulty", method).await.len(),
                0,
                "a new process"
            );
            gateway.stop().await;
        }
    }
}

#[tokio::test]
async fn a_read_that_killed_its_server_once_is_tried_again() {
    for method in METHODS {
        let gateway = faulty(ProtocolEra::Legacy).await;
        let mut client = connect(&gateway, ProtocolEra::Modern).await;
        let response = client.ask(method, params(method, "fault:die-once")).await;
        let is_repeated = method != UNKNOWN_METHOD;
        let has_survived = response["result"].to_string().contains("survived");
        assert_eq!(has_survived, is_repeated, "{method}: {response}");
        let runs = std::fs::metadata(gateway.path("faulty.count"))
            .unwrap()
            .len();
        assert_eq!(runs, if is_repeated { 2 } else { 1 }, "{method}");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_request_that_hangs_ends_at_its_timeout_and_is_cancelled() {
    for (client_era, server_era) in era_pairs() {
        let gateway = faulty(server_era).await;
        let mut limits = Limits::default();
        limits.timeout = Duration::from_millis(300);
        gateway.executor.set_rules(limits, Policy::default());
        let mut client = connect(&gateway, client_era).await;
        for method in METHODS {
            let (_, hanging) = client.start(method, params(method, "fault:hang")).await;
            assert_still_working(&mut client).await;
            let error = hanging.await.unwrap()["error"].take();
            assert_eq!(error["data"]["kind"], "timeout", "{method}: {error}");
        }
        let cancelled = gateway.received("faulty", "notifications/cancelled").await;
        assert!(cancelled.len() >= METHODS.len(), "{cancelled:?}");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_client_can_cancel_a_read() {
    for (client_era, server_era) in era_pairs() {
        let gateway = faulty(server_era).await;
        let mut client = connect(&gateway, client_era).await;
        for method in METHODS {
            let before = gateway
                .received("faulty", "notifications/cancelled")
                .await
                .len();
            let (id, _) = client.start(method, params(method, "fault:hang")).await;
            while gateway.received("faulty", method).await.is_empty() {}
            let params = json!({ "requestId": id });
            client.notify("notifications/cancelled", params).await;
            let cancelled = async {
                while gateway
                    .received("faulty", "notifications/cancelled")
                    .await
                    .len()
                    == before
                {}
            };
            let cancelled = tokio::time::timeout(Duration::from_secs(20), cancelled).await;
            cancelled.expect("no cancellation was sent");
        }
        gateway.stop().await;
    }
}

#[tokio::test]
async fn oversized_contents_are_refused_and_the_server_keeps_running() {
    for era in ERAS {
        let gateway = faulty(ProtocolEra::Legacy).await;
        let mut client = connect(&gateway, era).await;
        let pid = gateway.call("faulty", "pid", json!({})).await;
        // Over the limit of a result, and over that of a message.
        for size in [9 << 20, 17 << 20] {
            let uri = format!("fault:big/{size}");
            for method in METHODS {
                let error = client.expect_error(method, params(method, &uri)).await;
                assert_eq!(error["data"]["kind"], "too_large", "{error}");
            }
        }
        let mut limits = Limits::default();
        limits.max_result = 10_000;
        gateway.executor.set_rules(limits, Policy::default());
        for method in METHODS {
            let error = client
                .expect_error(method, params(method, "fault:big/20000"))
                .await;
            assert_eq!(error["data"]["kind"], "too_large", "{method}: {error}");
        }
        assert_eq!(gateway.call("faulty", "pid", json!({})).await, pid);
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_malformed_result_fails_only_its_request() {
    // The client and the server share an extension, but none can define a kind like `tools/x`.
    let malformed = [
        ("resources/read", r#"{"contents":{}}"#),
        ("resources/read", r#"{"contents":["text"]}"#),
        ("resources/read", r#"{"content":[]}"#),
        ("resources/read", "[]"),
        ("resources/read", "null"),
        (
            "resources/read",
            r#"{"contents":[],"resultType":"tools/x"}"#,
        ),
        ("prompts/get", r#"{"messages":"none"}"#),
        ("prompts/get", r#"{"messages":{}}"#),
        ("prompts/get", r#"{"messages":[["user"]]}"#),
        ("prompts/get", "7"),
        ("completion/complete", r#"{"completion":[]}"#),
        ("completion/complete", r#"{"completion":{"values":"a"}}"#),
        ("skills/get", r#"{"skill":{}}"#),
        ("skills/get", r#"{"skill":"fault:x"}"#),
        (
            "skills/get",
            r#"{"skill":{"uri":7,"frontmatter":[],"resources":{}}}"#,
        ),
        ("skills/get", "{}"),
        ("resources/directory/read", r#"{"resources":"none"}"#),
        ("resources/directory/read", r#"{"resources":["text"]}"#),
        ("resources/directory/read", "false"),
        (UNKNOWN_METHOD, "7"),
        (UNKNOWN_METHOD, "[]"),
        (UNKNOWN_METHOD, "null"),
        (UNKNOWN_METHOD, r#"{"resultType":"tools/x"}"#),
    ];
    let raw =
        |result: &str| format!(r#"fault:raw/{{"jsonrpc":"2.0","id":$ID,"result":{result}}}\n"#);
    let prompts: Vec<Value> = malformed
        .iter()
        .map(|(_, result)| json!({ "name": raw(result) }))
        .collect();
    for (client_era, server_era) in era_pairs() {
        let gateway = start(server_era, &prompts).await;
        let mut client = connect(&gateway, client_era).await;
        for (method, result) in malformed {
            let error = client
                .expect_error(method, params(method, &raw(result)))
                .await;
            assert_eq!(error["code"], -32603, "{method} {result}: {error}");
            assert!(!error["message"].as_str().unwrap().is_empty());
        }
        assert_still_working(&mut client).await;
        gateway.stop().await;
    }
}

/// A response whose text says whether it is the right one.
fn response(method: &str, id: &str, text: &str) -> String {
    let content = format!(r#"{{"type":"text","text":"{text}"}}"#);
    let result = match method {
        "resources/read" => format!(r#"{{"contents":[{{"uri":"fault:x","text":"{text}"}}]}}"#),
        "prompts/get" => format!(r#"{{"messages":[{{"role":"user","content":{content}}}]}}"#),
        "completion/complete" => format!(r#"{{"completion":{{"values":["{text}"]}}}}"#),
        "skills/get" => format!(
            r#"{{"skill":{{"uri":"fault:x","frontmatter":{{"name":"n","description":"{text}"}},"resources":"dynamic"}}}}"#
        ),
        "resources/directory/read" => {
            format!(r#"{{"resources":[{{"uri":"fault:x","name":"{text}"}}]}}"#)
        }
        _ => format!(r#"{{"text":"{text}"}}"#),
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}\n"#)
}

#[tokio::test]
async fn unknown_response_ids_answer_no_request() {
    let wrong = ["999", "null", r#""$ID""#, "-1", "1.5", "$ID0"];
    let faults = METHODS.map(|method| {
        let confused =
            wrong.map(|id| response(method, id, "wrong") + &response(method, "$ID", "right"));
        // A second response to the same request is dropped.
        let twice = response(method, "$ID", "right") + &response(method, "$ID", "wrong");
        let all = confused.into_iter().chain([twice]);
        all.map(|answer| format!("fault:raw/{answer}"))
            .collect::<Vec<_>>()
    });
    let prompts = faults.iter().flatten();
    let prompts: Vec<Value> = prompts.map(|name| json!({ "name": name })).collect();
    for (client_era, server_era) in era_pairs() {
        let gateway = start(server_era, &prompts).await;
        let mut client = connect(&gateway, client_era).await;
        for (method, faults) in METHODS.iter().zip(&faults) {
            for fault in faults {
                let result = client
                    .result(method, params(method, fault))
                    .await
                    .to_string();
                let is_right = result.contains("right") && !result.contains("wrong");
                assert!(is_right, "{fault}: {result}");
            }
        }
        assert_still_working(&mut client).await;
        gateway.stop().await;
    }
}

#[tokio::test]
async fn too_many_reads_at_once_are_refused_and_the_rest_answered() {
    let gateway = faulty(ProtocolEra::Modern).await;
    let mut limits = Limits::default();
    limits.timeout = Duration::from_secs(5);
    gateway.executor.set_rules(limits, Policy::default());
    let mut client = gateway.client(ProtocolEra::Modern).await;
    let mut waiting = Vec::new();
    for _ in 0..1100 {
        let (_, response) = client
            .start("resources/read", json!({ "uri": "fault:hang" }))
            .await;
        waiting.push(response);
    }
    let mut kinds = std::collections::BTreeMap::new();
    for response in waiting {
        let error = response.await.unwrap()["error"].take();
        let kind = error["data"]["kind"].as_str().unwrap().to_owned();
        *kinds.entry(kind).or_insert(0) += 1;
    }
    assert!(kinds["overloaded"] >= 1100 - 1024, "{kinds:?}");
    assert_eq!(kinds["overloaded"] + kinds["timeout"], 1100, "{kinds:?}");
    assert_still_working(&mut client).await;
    gateway.stop().await;
}
