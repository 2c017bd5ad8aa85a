//! B3, B7: responses reach their own call and no other, whatever ids the server uses.

use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fault_test::{FAKE, FaultTest, FaultTestBuilder, NEIGHBOR, within};

fn reply(id: &str, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    ) + "\\n"
}

#[tokio::test]
async fn unknown_ids_reach_no_call() {
    let test = FaultTest::start(&[]).await;
    for strange in [
        "999999",
        "\\\"$ID\\\"",
        "null",
        "-1",
        "1.5",
        "1e400",
        "[]",
        "{}",
        "true",
        "18446744073709551616",
    ] {
        let strange = strange.replace("\\\"", "\"");
        let text = reply(&strange, "wrong") + &reply("$ID", "right");
        let envelope = test.call_within(5000, "raw", json!({ "text": text })).await;
        // A quoted number may be accepted as the id, as some servers mean it; then the second
        // response is surplus.
        let accepted = strange == "\"$ID\"" && envelope["result"] == "wrong";
        assert!(
            accepted || envelope["result"] == "right",
            "{strange}: {envelope}"
        );
        test.assert_works().await;
    }
    test.finish().await;
}

#[tokio::test]
async fn the_first_of_two_answers_counts() {
    let test = FaultTest::start(&[]).await;
    for _ in 0..3 {
        let text = reply("$ID", "first") + &reply("$ID", "second");
        assert_eq!(test.answer("raw", json!({ "text": text })).await, "first");
        test.assert_works().await;
    }
    test.finish().await;
}

#[tokio::test]
async fn ids_are_never_reused() {
    let test = FaultTest::start(&[]).await;
    for _ in 0..20 {
        test.call_within(5, "sleep", json!({ "ms": 20 })).await;
    }
    let messages = test.answer("received", json!({})).await;
    let mut ids: Vec<_> = messages
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|m| m["id"].as_u64())
        .collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
    test.finish().await;
}

#[tokio::test]
async fn ten_thousand_calls_get_their_own_answers() {
    let test = FaultTest::start(&[]).await;
    let calls = futures::stream::iter(0..10_000).map(|n| {
        let test = &test;
        async move {
            let server = if n % 2 == 0 { FAKE } else { NEIGHBOR };
            let envelope = test
                .call_on(server, "echo", json!({ "text": format!("call {n}") }))
                .await;
            assert_eq!(envelope["result"], format!("call {n}"));
        }
    });
    calls.buffer_unordered(64).collect::<()>().await;
    test.finish().await;
}

#[tokio::test]
async fn progress_extends_the_limit_but_not_the_hard_maximum() {
    let test = FaultTestBuilder::new()
        .server(FAKE, &[])
        .server(NEIGHBOR, &[])
        .limits(|limits| {
            limits.timeout = Duration::from_millis(500);
            limits.max_total = Duration::from_millis(2500);
        })
        .start_settled()
        .await;
    let steps = |steps: u64| json!({ "steps": steps, "every_ms": 100 });
    assert_eq!(test.answer("progress", steps(10)).await, "done");
    let started = Instant::now();
    let envelope = test.call("progress", steps(1000)).await;
    assert_eq!(envelope["error_kind"], "timeout", "{envelope}");
    assert!(
        started.elapsed() > Duration::from_millis(2400),
        "{:?}",
        started.elapsed()
    );
    assert!(started.elapsed() < Duration::from_secs(25));
    test.assert_works().await;
    test.finish().await;
}

#[tokio::test]
async fn a_flood_of_progress_delays_nothing() {
    let test = FaultTest::start(&[]).await;
    let (done, other) = within(
        Duration::from_secs(60),
        futures::future::join(
            test.call("progress", json!({ "steps": 100_000 })),
            test.call_on(NEIGHBOR, "echo", json!({ "text": "x" })),
        ),
    )
    .await;
    assert_eq!(
        (&done["result"], &other["result"]),
        (&json!("done"), &json!("x")),
        "{done}"
    );
    test.assert_works().await;
    test.finish().await;
}

#[tokio::test]
async fn progress_for_an_unknown_call_is_ignored() {
    let test = FaultTest::start(&[]).await;
    for params in [
        r#"{"progressToken":999999,"progress":1}"#,
        r#"{"progressToken":"x","progress":"much"}"#,
        r#"{"progress":1}"#,
        "[]",
        "null",
    ] {
        let text =
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#)
                + "\\n"
                + &reply("$ID", "done");
        let envelope: Value = test.call_within(5000, "raw", json!({ "text": text })).await;
        assert_eq!(envelope["result"], "done", "{params}: {envelope}");
    }
    test.finish().await;
}
