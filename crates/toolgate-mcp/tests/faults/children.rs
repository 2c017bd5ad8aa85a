//! A1, A3, A8: a server that floods its output, hangs, or closes its pipes.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_core::ToolCall;

use crate::fault_test::{FAKE, FaultTest, FaultTestBuilder, NEIGHBOR, signal, within};

/// Lines, endless text, and progress bars.
const TEXTS: [&str; 3] = ["a line\\n", "no end ", "10 %\\r"];

#[tokio::test]
async fn mc2_a_flood_on_stderr_delays_no_call() {
    let test = FaultTest::start(&["flood-stderr=1000000:before the handshake\\n"]).await;
    for text in TEXTS {
        let block = text.repeat(8192 / text.len());
        for bytes in [256 << 10, 100_000_000_u64] {
            // If stderr weren't read, the server would block on a full pipe and its call would time
            // out.
            let call = ToolCall::new(
                "fake__write_stderr",
                json!({ "bytes": bytes, "text": block }),
            );
            let flood = test.execute(call.timeout(Duration::from_secs(300)));
            let others = async {
                for _ in 0..20 {
                    test.assert_works().await;
                }
            };
            let (written, ()) = tokio::join!(flood, others);
            assert_eq!(written["result"], "written", "{text}: {bytes}: {written}");
        }
    }
    test.assert_works().await;
    test.finish().await;
}

#[tokio::test]
async fn mc2_the_tail_of_stderr_is_in_the_details_and_it_is_bounded() {
    let test = FaultTest::start(&[]).await;
    let lines = "yesterday\n".repeat(10_000) + "the disk is on fire\n";
    let envelope = test
        .call("die", json!({ "status": 3, "stderr": lines }))
        .await;
    let details = envelope["details"].as_str().unwrap();
    assert!(details.contains("the disk is on fire"), "{envelope}");
    assert!(details.len() < 70_000, "{}", details.len());
    assert!(
        !envelope["error"].as_str().unwrap().contains("fire"),
        "{envelope}"
    );
    test.finish().await;
}

#[tokio::test]
async fn ex6_hung_child_times_out() {
    let test = FaultTest::start(&[]).await;
    let pid = test.answer("pid", json!({})).await;
    signal("STOP", &pid);
    let envelope = test
        .call_within(500, "echo", json!({ "text": "late" }))
        .await;
    assert_eq!(envelope["error"], "Tool 'fake__echo' timed out after 0.5 s");
    assert_eq!(envelope["error_kind"], "timeout");
    signal("CONT", &pid);
    for n in 0..20 {
        let text = format!("text {n}");
        assert_eq!(
            test.answer("echo", json!({ "text": text })).await,
            json!(text)
        );
    }
    assert_eq!(
        test.answer("pid", json!({})).await,
        pid,
        "it was not restarted"
    );
    test.finish().await;
}

#[tokio::test]
async fn ex6_a_call_that_timed_out_is_cancelled_on_the_server() {
    let test = FaultTestBuilder::new()
        .debug()
        .server(FAKE, &[])
        .server(NEIGHBOR, &[])
        .start_settled()
        .await;
    let envelope = test.call_within(300, "sleep", json!({ "ms": 800 })).await;
    assert_eq!(envelope["error_kind"], "timeout", "{envelope}");
    // The cancellation is sent concurrently with the next call.
    let mut ids = (json!(null), json!(null));
    for _ in 0..100 {
        let messages = test.answer("received", json!({})).await;
        let find =
            |is: fn(&Value) -> bool| messages.as_array().unwrap().iter().find(|m| is(m)).cloned();
        let call = find(|m| m["params"]["name"] == "sleep").unwrap();
        if let Some(cancelled) = find(|m| m["method"] == "notifications/cancelled") {
            ids = (cancelled["params"]["requestId"].clone(), call["id"].clone());
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(ids.0.is_u64() && ids.0 == ids.1, "{ids:?}");
    // The response still arrives, and is dropped.
    test.wait_until("the late answer is logged", |test| {
        test.log().contains("late response dropped")
    })
    .await;
    test.assert_works().await;
    test.finish().await;
}

#[tokio::test]
async fn a_child_that_closes_its_stdout_or_stdin_is_restarted_and_no_call_hangs() {
    for action in ["close-stdout", "close-stdin"] {
        let test = FaultTest::start(&["deaf", &format!("after:tools/list={action}")]).await;
        let envelope = within(
            Duration::from_secs(50),
            test.call_within(5000, "echo", json!({ "text": "x" })),
        );
        let envelope = envelope.await;
        assert_eq!(envelope["success"], false, "{action}: {envelope}");
        test.finish().await;
    }
}

#[tokio::test]
async fn a_child_that_does_not_read_fails_its_calls_at_their_limit() {
    let test = FaultTest::start(&["after:tools/list=stop-reading"]).await;
    let long = "x".repeat(1_000_000);
    let (first, second) = within(Duration::from_secs(20), async {
        tokio::join!(
            test.call_within(1000, "echo", json!({ "text": long })),
            test.call_within(1000, "echo", json!({ "text": "short" })),
        )
    })
    .await;
    for envelope in [first, second] {
        assert_eq!(envelope["success"], false, "{envelope}");
        assert_eq!(envelope["error_kind"], "timeout", "{envelope}");
    }
    test.finish().await;
}
