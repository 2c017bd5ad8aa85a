//! The state that the gateway reports.

use serde_json::json;
use toolgate_mcp::{SecretHeaders, ServerConnection, ServerSettings, ServerState};

use crate::test_gateway::{ApiTestGateway, TestGatewayOptions, until};

#[tokio::test]
async fn status_stats_and_metrics_count_the_same_calls() {
    let gateway = ApiTestGateway::start_with(TestGatewayOptions {
        has_journal: true,
        ..TestGatewayOptions::default()
    })
    .await;
    for tool in ["echo", "echo", "fail", "nope"] {
        gateway.call(tool, &json!({})).await;
    }
    let status = gateway.get("/api/status").await.json();
    assert_eq!(
        (&status["status"], &status["reasons"]),
        (&json!("ok"), &json!([]))
    );
    assert_eq!(
        (&status["calls_total"], &status["error_rate"]),
        (&json!(4), &json!(0.5))
    );
    assert_eq!(
        (&status["journal"], &status["in_flight"]),
        (&json!({ "state": "ok", "evicted": 0 }), &json!(0))
    );
    assert_eq!(
        (&status["model"], &status["token_needed"]),
        (&json!(null), &json!(false))
    );
    let rights = status["rights"].as_object().unwrap();
    for (right, may) in rights {
        // Nobody has it who wasn't given it.
        assert_eq!(may, right != "approve_in_client", "{status}");
    }
    assert_eq!(status["caller"], "local operator");
    let stats = gateway.get("/api/stats").await.json();
    assert_eq!(
        (&stats["tools"][0]["tool"], &stats["tools"][0]["calls"]),
        (&json!("echo"), &json!(2))
    );
    assert_eq!(stats["tools"][1]["errors"], json!({ "tool_error": 1 }));
    let one = gateway.get("/api/stats?tool=fail").await.json();
    assert_eq!(
        (
            one["tools"].as_array().unwrap().len(),
            &one["tools"][0]["tool"]
        ),
        (1, &json!("fail"))
    );
    let metrics = gateway.get("/metrics").await;
    let has = |words: [&str; 2]| {
        metrics
            .text
            .lines()
            .any(|line| words.iter().all(|word| line.contains(word)))
    };
    assert!(has(["_total{", "\"echo\""]), "{}", metrics.text);
}

#[tokio::test]
async fn problems_are_reported_in_words() {
    let gateway = ApiTestGateway::start().await;
    assert_eq!(
        gateway.get("/healthz").await.json(),
        json!({ "status": "alive" })
    );
    assert_eq!(
        gateway.get("/readyz").await.json(),
        json!({ "status": "ready", "reasons": [] })
    );
    assert_eq!(
        gateway.get("/api/status").await.json()["journal"],
        json!({ "state": "off", "evicted": 0 })
    );
    let nowhere = ServerConnection::Http {
        url: "http://127.0.0.1:1/mcp".to_owned(),
        headers: SecretHeaders::default(),
    };
    gateway
        .servers
        .apply(vec![ServerSettings::new("away", nowhere)]);
    gateway.servers.start_all().await;
    let status = gateway.get("/api/status").await.json();
    assert_eq!(status["status"], "degraded");
    let reason = status["reasons"][0].as_str().unwrap();
    assert!(
        reason.starts_with("away: ") && !reason.contains('\n'),
        "{reason}"
    );
    let ready = gateway.get("/readyz").await;
    assert_eq!(
        (ready.status.as_u16(), &ready.json()["status"]),
        (200, &json!("degraded"))
    );
}

#[tokio::test]
async fn a_failed_server_does_not_block_other_tools() {
    let gateway = ApiTestGateway::start().await;
    let nowhere = ServerConnection::Http {
        url: "http://127.0.0.1:1/mcp".to_owned(),
        headers: SecretHeaders::default(),
    };
    gateway
        .servers
        .apply(vec![ServerSettings::new("away", nowhere)]);
    until(|| gateway.servers.status()[0].error.is_some()).await;
    let ready = gateway.get("/readyz").await;
    let server = gateway.servers.status().remove(0);
    assert_eq!(
        (server.state, server.attempts),
        (ServerState::Starting, 1),
        "more attempts are to come"
    );
    assert_eq!(ready.status, 200, "{}", ready.text);
    let ready = ready.json();
    assert_eq!(ready["status"], "degraded");
    let reason = ready["reasons"][0].as_str().unwrap();
    assert!(reason.starts_with("away: "), "{reason}");
}
