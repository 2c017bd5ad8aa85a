//! How the gateway says it is.

use serde_json::json;
use toolgate_mcp::{Connection, Headers, ServerSettings, ServerState};

use crate::home::{Home, Plan, until};

#[tokio::test]
async fn status_stats_and_metrics_count_the_same_calls() {
    let home = Home::of(Plan {
        has_journal: true,
        ..Plan::default()
    })
    .await;
    for tool in ["echo", "echo", "fail", "nope"] {
        home.call(tool, &json!({})).await;
    }
    let status = home.get("/api/status").await.json();
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
    assert!(rights.values().all(|may| may == true), "{status}");
    assert_eq!(status["caller"], "local operator");
    let stats = home.get("/api/stats").await.json();
    assert_eq!(
        (&stats["tools"][0]["tool"], &stats["tools"][0]["calls"]),
        (&json!("echo"), &json!(2))
    );
    assert_eq!(stats["tools"][1]["errors"], json!({ "tool_error": 1 }));
    let one = home.get("/api/stats?tool=fail").await.json();
    assert_eq!(
        (
            one["tools"].as_array().unwrap().len(),
            &one["tools"][0]["tool"]
        ),
        (1, &json!("fail"))
    );
    let metrics = home.get("/metrics").await;
    let has = |words: [&str; 2]| {
        metrics
            .text
            .lines()
            .any(|line| words.iter().all(|word| line.contains(word)))
    };
    assert!(has(["_total{", "\"echo\""]), "{}", metrics.text);
}

#[tokio::test]
async fn what_is_not_well_is_told_in_words() {
    let home = Home::usual().await;
    assert_eq!(
        home.get("/healthz").await.json(),
        json!({ "status": "alive" })
    );
    assert_eq!(
        home.get("/readyz").await.json(),
        json!({ "status": "ready", "reasons": [] })
    );
    assert_eq!(
        home.get("/api/status").await.json()["journal"],
        json!({ "state": "off", "evicted": 0 })
    );
    let nowhere = Connection::Http {
        url: "http://127.0.0.1:1/mcp".to_owned(),
        headers: Headers::default(),
    };
    home.servers
        .apply(vec![ServerSettings::new("away", nowhere)]);
    home.servers.settled().await;
    let status = home.get("/api/status").await.json();
    assert_eq!(status["status"], "degraded");
    let reason = status["reasons"][0].as_str().unwrap();
    assert!(
        reason.starts_with("away: ") && !reason.contains('\n'),
        "{reason}"
    );
    let ready = home.get("/readyz").await;
    assert_eq!(
        (ready.status.as_u16(), &ready.json()["status"]),
        (200, &json!("degraded"))
    );
}

#[tokio::test]
async fn a_server_that_fails_at_first_keeps_nobody_away_from_the_other_tools() {
    let home = Home::usual().await;
    let nowhere = Connection::Http {
        url: "http://127.0.0.1:1/mcp".to_owned(),
        headers: Headers::default(),
    };
    home.servers
        .apply(vec![ServerSettings::new("away", nowhere)]);
    until(|| home.servers.status()[0].error.is_some()).await;
    let ready = home.get("/readyz").await;
    let server = home.servers.status().remove(0);
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
