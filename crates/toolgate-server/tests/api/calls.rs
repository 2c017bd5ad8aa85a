//! Recorded calls, which have the same shape and rules in memory and in the journal.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use toolgate_server::{ConfigWriteError, ConfigWriter};

use crate::client::{send, whole};
use crate::test_gateway::{ApiTestGateway, SECRET, TestGatewayOptions};

async fn both() -> [ApiTestGateway; 2] {
    let journalled = TestGatewayOptions {
        has_journal: true,
        ..TestGatewayOptions::default()
    };
    [
        ApiTestGateway::start().await,
        ApiTestGateway::start_with(journalled).await,
    ]
}

async fn called(gateway: &ApiTestGateway, tool: &str, arguments: &Value) -> String {
    let envelope = gateway.call(tool, arguments).await.json();
    envelope["call_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn calls_are_listed_newest_first_and_found_by_what_they_are() {
    for gateway in both().await {
        let first = called(&gateway, "echo", &json!({ "text": "Hello" })).await;
        let second = called(&gateway, "fail", &json!({})).await;
        let third = called(&gateway, "nope", &json!({ "a": 1 })).await;
        for (query, expected) in [
            ("", vec![&third, &second, &first]),
            ("?tool=echo", vec![&first]),
            ("?outcome=failed", vec![&third, &second]),
            ("?outcome=success", vec![&first]),
            ("?outcome=not_found", vec![&third]),
            ("?search=HELLO", vec![&first]),
            ("?search=broke", vec![&second]),
            ("?search=%25", vec![]),
            ("?origin=http&limit=2", vec![&third, &second]),
            ("?origin=cli", vec![]),
            ("?server=house", vec![]),
            ("?caller=kitchen", vec![]),
            ("?caller=test", vec![&third, &second, &first]),
            ("?caller=toolgate%20test&tool=echo", vec![&first]),
            ("?caller=serve", vec![]),
            ("?caller=", vec![&third, &second, &first]),
            ("?since=2000-01-01T00:00:00Z", vec![&third, &second, &first]),
            ("?until=2000-01-01T00:00:00Z", vec![]),
            (&format!("?before={third}"), vec![&second, &first]),
        ] {
            let list = gateway.get(&format!("/api/calls{query}")).await.json();
            let ids: Vec<&str> = list
                .as_array()
                .unwrap()
                .iter()
                .map(|call| call["id"].as_str().unwrap())
                .collect();
            assert_eq!(ids, expected, "{query}");
        }
        for query in [
            "limit=0",
            "limit=1001",
            "limit=-1",
            "limit=x",
            "since=yesterday",
            "until=1",
            "before=x",
            "outcome=foo",
        ] {
            let refused = gateway.get(&format!("/api/calls?{query}")).await;
            assert_eq!(refused.status, 400, "{query}");
            refused.problem();
        }
        let unknown = gateway.get("/api/calls?outcome=foo").await.problem();
        assert!(unknown.contains("success, failed, running"), "{unknown}");
    }
}

#[tokio::test]
async fn a_call_is_shown_with_its_steps_and_without_secrets() {
    for gateway in both().await {
        let id = called(&gateway, "tell", &json!({ "token": "abcdef", "q": SECRET })).await;
        let reply = gateway.get(&format!("/api/calls/{id}")).await;
        assert!(
            !reply.text.contains(SECRET)
                && !reply.text.contains("hunter2")
                && !reply.text.contains("abcdef"),
            "{}",
            reply.text
        );
        let call = reply.json();
        assert_eq!(
            call["result"],
            json!({ "password": "[REDACTED]", "note": "[REDACTED] is it" })
        );
        assert_eq!(
            call["asked"],
            json!({ "token": "[REDACTED]", "q": "[REDACTED]" })
        );
        assert_eq!(call["executed"], call["asked"]);
        assert!(call["timings"]["invoke_ms"].is_number() && call["duration_ms"].is_number());
        assert_eq!(call["tool_definition"]["name"], "tell");
        assert_eq!(
            (&call["outcome"], &call["success"]),
            (&json!("success"), &json!(true))
        );
        let failed = called(&gateway, "fail", &json!({})).await;
        let failed = gateway.get(&format!("/api/calls/{failed}")).await.json();
        assert_eq!(failed["error"], "it broke on [REDACTED]");
        let long = called(&gateway, "long", &json!({})).await;
        let long = gateway.get(&format!("/api/calls/{long}")).await.json();
        assert_eq!(long["result_cut"], true);
        assert!(long["result_bytes"].as_u64().unwrap() >= 300 << 10);
        for id in ["0123456789abcdef0123456789abcdef", "x", "%2e%2e", "é"] {
            let id = id.replace('é', "%C3%A9");
            assert_eq!(
                gateway.get(&format!("/api/calls/{id}")).await.status,
                404,
                "{id}"
            );
        }
    }
}

#[tokio::test]
async fn memory_and_journal_show_a_call_alike() {
    let mut told = Vec::new();
    for gateway in both().await {
        let id = called(&gateway, "dim", &json!({ "level": 5, "other": SECRET })).await;
        let mut call = gateway.get(&format!("/api/calls/{id}")).await.json();
        for changing in [
            "id",
            "started_at",
            "duration_ms",
            "timings",
            "trace_id",
            // Only the journal knows the process.
            "run",
        ] {
            call.as_object_mut().unwrap().remove(changing);
        }
        told.push(call);
    }
    assert_eq!(told[0], told[1]);
    assert_eq!(told[0]["dropped"], json!(["other"]));
}

#[tokio::test]
async fn a_call_with_effects_is_not_replayed_by_mistake() {
    for gateway in both().await {
        let id = called(&gateway, "count", &json!({ "n": 1 })).await;
        let path = format!("/api/calls/{id}/replay");
        for body in [json!({}), json!({ "confirm": false })] {
            let refused = gateway.post(&path, &body).await;
            assert_eq!(refused.status, 409);
            assert!(refused.problem().contains("confirm"));
        }
        assert_eq!(gateway.counted.load(Ordering::SeqCst), 1);
        let again = gateway.post(&path, &json!({ "confirm": true })).await;
        assert_eq!(
            (again.status.as_u16(), &again.json()["result"]),
            (200, &json!({ "times": 2 }))
        );
        assert_ne!(again.json()["call_id"], id);
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let parent = format!("00-{trace}-b7ad6b7169203331-01");
        let key = format!("Bearer {}", gateway.new_command_key());
        let headers = [("traceparent", parent.as_str()), ("authorization", &key)];
        let body = r#"{"confirm":true}"#;
        let post = http::Method::POST;
        let traced = whole(send(gateway.address, &post, &path, &headers, body).await).await;
        let again = traced.json()["call_id"].take();
        let again = format!("/api/calls/{}", again.as_str().unwrap());
        assert_eq!(gateway.get(&again).await.json()["trace_id"], trace);
        // A read-only call needs no confirmation.
        let id = called(&gateway, "echo", &json!({ "n": 1 })).await;
        let again = gateway
            .post(&format!("/api/calls/{id}/replay"), &json!({}))
            .await;
        assert_eq!(again.json()["result"], json!({ "echo": { "n": 1 } }));
        for (body, status) in [
            ("", 400),
            ("[]", 400),
            (r#"{"confirm":1}"#, 422),
            (r#"{"yes":true}"#, 422),
        ] {
            assert_eq!(
                gateway.ask(http::Method::POST, &path, body).await.status,
                status,
                "{body}"
            );
        }
        let nobody = "/api/calls/0123456789abcdef0123456789abcdef/replay";
        assert_eq!(
            gateway
                .post(nobody, &json!({ "confirm": true }))
                .await
                .status,
            404
        );
    }
}

#[tokio::test]
async fn a_changed_record_is_replayed_only_if_confirmed() {
    let [_, gateway] = both().await;
    let id = called(&gateway, "echo", &json!({ "n": 1 })).await;
    let path = format!("/api/calls/{id}/replay");
    assert_eq!(gateway.post(&path, &json!({})).await.status, 200);
    let database = rusqlite::Connection::open(&gateway.journal).unwrap();
    let forge = r#"UPDATE calls SET asked = '{"n":666}' WHERE id = ?"#;
    assert_eq!(database.execute(forge, [&id]).unwrap(), 1);
    let refused = gateway.post(&path, &json!({})).await;
    assert_eq!(refused.status, 422);
    let problem = refused.problem();
    assert!(problem.contains("its row was changed since"), "{problem}");
    let meant = gateway.post(&path, &json!({ "unverified": true })).await;
    assert_eq!(meant.json()["result"], json!({ "echo": { "n": 666 } }));
}

#[tokio::test]
async fn truncated_arguments_are_not_replayed() {
    let [memory, journal] = both().await;
    for gateway in [&memory, &journal] {
        let broken = gateway
            .ask(http::Method::POST, "/api/tools/echo/call", "{")
            .await
            .json();
        let id = broken["call_id"].as_str().unwrap();
        assert_eq!(
            gateway
                .post(&format!("/api/calls/{id}/replay"), &json!({}))
                .await
                .status,
            422
        );
    }
    // Memory has the secret still, the file has not.
    for (gateway, status) in [(&memory, 200), (&journal, 422)] {
        let id = called(gateway, "echo", &json!({ "password": "hunter2" })).await;
        let again = gateway
            .post(&format!("/api/calls/{id}/replay"), &json!({}))
            .await;
        assert_eq!(again.status, status);
    }
}

#[tokio::test]
async fn a_call_becomes_a_mock_that_answers_the_same() {
    for gateway in both().await {
        let id = called(&gateway, "count", &json!({})).await;
        let path = format!("/api/calls/{id}/mock");
        let saved = gateway.post(&path, &json!({ "name": "count_mock" })).await;
        assert_eq!(saved.status, 201);
        let saved = saved.json();
        assert_eq!(
            saved["definition"]["implementation"],
            json!({ "type": "mock", "mock_response": { "times": 1 } })
        );
        assert_eq!(saved["definition"]["description"], "Does count");
        for _ in 0..2 {
            assert_eq!(
                gateway.call("count_mock", &json!({})).await.json()["result"],
                json!({ "times": 1 })
            );
        }
        assert_eq!(
            gateway.get("/api/tools/count_mock").await.json()["source"],
            "mock"
        );
        let failed = called(&gateway, "fail", &json!({})).await;
        let long = called(&gateway, "long", &json!({})).await;
        for (id, name, status) in [
            (&id, "count_mock", 409),
            (&id, "echo", 409),
            (&id, "", 422),
            (&id, "a\nb", 422),
            (&failed, "other", 422),
            (&long, "other", 422),
        ] {
            let refused = gateway
                .post(&format!("/api/calls/{id}/mock"), &json!({ "name": name }))
                .await;
            assert_eq!(refused.status, status, "{name}");
            refused.problem();
        }
    }
}

#[tokio::test]
async fn while_the_journal_fails_the_newest_calls_are_still_shown() {
    let gateway = ApiTestGateway::start_with(TestGatewayOptions {
        has_blocked_journal: true,
        ..TestGatewayOptions::default()
    });
    let gateway = gateway.await;
    let first = called(&gateway, "echo", &json!({ "n": 1 })).await;
    let status = gateway.get("/api/status").await.json();
    assert_eq!(status["status"], "degraded", "{status}");
    let ids = async |expected: &[&String]| {
        let list = gateway.get("/api/calls").await.json();
        let calls = list.as_array().unwrap().iter();
        let ids: Vec<&str> = calls.map(|call| call["id"].as_str().unwrap()).collect();
        assert_eq!(ids, expected);
        for id in expected {
            let call = gateway.get(&format!("/api/calls/{id}")).await.json();
            assert_eq!(call["outcome"], "success");
        }
    };
    ids(&[&first]).await;
    std::fs::remove_dir(&gateway.journal).unwrap();
    while gateway.get("/api/status").await.json()["status"] == "degraded" {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let second = called(&gateway, "echo", &json!({ "n": 2 })).await;
    ids(&[&second, &first]).await;
}

#[tokio::test]
async fn a_mock_of_an_answer_without_its_secret_says_so() {
    for gateway in both().await {
        for (tool, is_noted) in [("tell", true), ("echo", false)] {
            let id = called(&gateway, tool, &json!({})).await;
            let name = format!("{tool}_mock");
            let path = format!("/api/calls/{id}/mock");
            let saved = gateway.post(&path, &json!({ "name": name })).await.json();
            let note = saved["note"].as_str().unwrap_or_default();
            assert_eq!(note.contains("contained a secret"), is_noted, "{saved}");
        }
    }
}

#[tokio::test]
async fn actions_on_a_call_need_its_full_id() {
    for gateway in both().await {
        let id = called(&gateway, "count", &json!({})).await;
        for beginning in [&id[..1], &id[..31]] {
            for (verb, body) in [
                ("replay", json!({ "confirm": true })),
                ("mock", json!({ "name": "m" })),
            ] {
                let path = format!("/api/calls/{beginning}/{verb}");
                assert_eq!(gateway.post(&path, &body).await.status, 404, "{path}");
            }
        }
        assert_eq!(gateway.counted.load(Ordering::SeqCst), 1);
    }
}

/// Fails to save anything, in several ways.
struct BrokenConfigWriter(fn() -> Result<String, ConfigWriteError>);

impl ConfigWriter for BrokenConfigWriter {
    fn add_tool(&self, _: &Value) -> Result<String, ConfigWriteError> {
        self.0()
    }

    fn add_server(&self, _: &str, _: &str) -> Result<String, ConfigWriteError> {
        self.0()
    }
}

#[tokio::test]
async fn j5_a_failing_mock_store_does_not_harm_the_gateway() {
    for (keep, status) in [
        ((|| Ok("in a file".to_owned())) as fn() -> _, 201),
        (
            || Err(ConfigWriteError::Refused("it is read-only".to_owned())),
            422,
        ),
        // It is in the file, but not in use yet.
        (
            || Err(ConfigWriteError::NameTaken("there is one".to_owned())),
            409,
        ),
        (|| panic!("a bug"), 500),
    ] {
        let plan = TestGatewayOptions {
            workshop: Some(Arc::new(BrokenConfigWriter(keep))),
            ..TestGatewayOptions::default()
        };
        let gateway = ApiTestGateway::start_with(plan).await;
        let id = called(&gateway, "echo", &json!({})).await;
        let path = format!("/api/calls/{id}/mock");
        let reply = gateway.post(&path, &json!({ "name": "m" })).await;
        assert_eq!(reply.status, status);
        assert!(!reply.text.contains("a bug"), "{}", reply.text);
        assert_eq!(gateway.get("/healthz").await.status, 200);
    }
}

#[tokio::test]
async fn memory_keeps_the_last_thousand_calls_and_knows_which_run() {
    let gateway = ApiTestGateway::start().await;
    for number in 0..1100 {
        let call = toolgate_core::ToolCall::new("echo", json!({ "n": number }));
        gateway.executor.execute(call).await;
    }
    let list = gateway.get("/api/calls?limit=1000").await.json();
    let list = list.as_array().unwrap();
    assert_eq!(list.len(), 1000);
    assert_eq!(
        (&list[0]["arguments"]["n"], &list[999]["arguments"]["n"]),
        (&json!(1099), &json!(100))
    );
    assert_eq!(list[0]["origin"], "library");
    let executor = gateway.executor.clone();
    let running = tokio::spawn(async move {
        executor
            .execute(toolgate_core::ToolCall::new("wait", json!({})))
            .await
    });
    crate::test_gateway::until(|| gateway.waiting.load(Ordering::SeqCst) == 1).await;
    let list = gateway.get("/api/calls?outcome=running").await.json();
    assert_eq!(
        (
            &list[0]["tool"],
            &list[0]["success"],
            &list[0]["duration_ms"]
        ),
        (&json!("wait"), &json!(null), &json!(null))
    );
    running.abort();
}
