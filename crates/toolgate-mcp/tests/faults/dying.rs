//! A2, A5: a server that dies during a call, or over and over.

use std::time::Duration;

use serde_json::{Value, json};

use crate::fault_test::{FAKE, FaultTest, FaultTestBuilder, NEIGHBOR, within};

#[tokio::test]
async fn mc6_a_server_that_dies_fails_its_calls_within_a_second_and_comes_back() {
    for (how, status) in [
        (json!({ "status": 3 }), "exit status 3"),
        (json!({ "status": 0 }), "exit status 0"),
        (json!({ "signal": 9 }), "signal 9"),
        (json!({ "signal": 11 }), "signal 11"),
    ] {
        let test = FaultTest::start(&[]).await;
        let mut how = how;
        how["ms"] = json!(300);
        how["stderr"] = json!("boom\n");
        let sleeping = (0..50).map(|_| test.call("sleep", json!({ "ms": 60_000 })));
        // Guards against hanging, at ten times the promised second; `keeper.rs` and `tool/tests.rs`
        // prove the second itself.
        let (died, slept) = within(
            Duration::from_secs(10),
            futures::future::join(test.call("die", how), futures::future::join_all(sleeping)),
        )
        .await;
        for envelope in slept.into_iter().chain([died]) {
            let error = envelope["error"].as_str().unwrap_or_default();
            assert!(
                error.starts_with("MCP server 'fake' stopped during the call (")
                    && error.contains(status),
                "{status}: {envelope}"
            );
            assert_eq!(envelope["error_kind"], "unavailable");
            assert!(
                envelope["details"].as_str().unwrap().contains("boom"),
                "{envelope}"
            );
        }
        test.assert_works().await;
        test.finish().await;
    }
}

#[tokio::test]
async fn ex8_the_text_of_a_server_that_died_is_exact() {
    let test = FaultTest::start(&[]).await;
    let envelope = test.call("die", json!({ "status": 3 })).await;
    assert_eq!(
        envelope["error"],
        "MCP server 'fake' stopped during the call (exit status 3)"
    );
    test.finish().await;
}

#[tokio::test]
async fn mc6_only_what_is_read_only_or_idempotent_is_run_again_and_only_once() {
    for (tool, succeeds, runs) in [
        ("count", false, 1),
        ("count_read_only", true, 2),
        ("count_idempotent", true, 2),
    ] {
        let test = FaultTest::start(&["count=@/count"]).await;
        let envelope = test.call(tool, json!({ "die": true })).await;
        assert_eq!(envelope["success"], succeeds, "{tool}: {envelope}");
        let count = std::fs::metadata(test.folder.path().join("count"));
        assert_eq!(count.unwrap().len(), runs, "{tool}");
        test.assert_works().await;
        test.finish().await;
    }
}

#[tokio::test]
async fn crash_loops_are_throttled() {
    // Every start appends a byte to a file.
    let test = FaultTestBuilder::new()
        .server(FAKE, &["failing=0:@/starts", "after:tools/list=exit:0"])
        .server("gone", &["failing=1000:@/gone"])
        .server(NEIGHBOR, &[])
        .start_settled()
        .await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    for file in ["starts", "gone"] {
        let starts = std::fs::metadata(test.folder.path().join(file))
            .unwrap()
            .len();
        assert!(
            (1..=5).contains(&starts),
            "{file}: {starts} starts\n{}",
            test.log()
        );
    }
    let envelope: Value = test.call_within(2000, "echo", json!({ "text": "x" })).await;
    assert_eq!(envelope["success"], false, "{envelope}");
    test.finish().await;
}
