//! B2, B5, D6: responses that are too large, malformed, or of every kind.

use std::time::Duration;

use serde_json::json;

use crate::fault_test::{FaultTest, within};

#[tokio::test]
async fn an_oversized_answer_fails_only_its_call() {
    let test = FaultTest::start(&[]).await;
    let pid = test.answer("pid", json!({})).await;
    let envelope = within(
        Duration::from_secs(20),
        test.call("big", json!({ "bytes": 17 << 20 })),
    )
    .await;
    assert_eq!(envelope["error_kind"], "too_large", "{envelope}");
    let envelope = within(
        Duration::from_secs(20),
        test.call("long_line", json!({ "bytes": 64 << 20 })),
    )
    .await;
    assert_eq!(envelope["success"], false, "{envelope}");
    assert_eq!(envelope["error_kind"], "too_large", "{envelope}");
    // Stray text fails no call, however long it is.
    let junk = test
        .call_within(
            3000,
            "long_line",
            json!({ "bytes": 64 << 20, "junk": true }),
        )
        .await;
    assert_eq!(junk["error_kind"], "timeout", "{junk}");
    test.assert_works().await;
    assert_eq!(
        test.answer("pid", json!({})).await,
        pid,
        "it was not restarted"
    );
    test.finish().await;
}

#[tokio::test]
async fn a_malformed_answer_fails_only_its_call() {
    let test = FaultTest::start(&[]).await;
    let text = |inner: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"content":[{{"type":"text","text":"{inner}"}}]}}}}"#
        )
    };
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{}{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let digits = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"content":[],"n":{}}}}}"#,
        "9".repeat(1_000_000)
    );
    for malformed in [
        text("\\xff"),
        text("\\\\ud800"),
        deep,
        digits,
        r#"{"jsonrpc":"2.0","id":$ID}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]},"error":{"code":1,"message":"both"}}"#
            .to_owned(),
        r#"{"jsonrpc":"2.0","id":$ID,"result":1e999}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":$ID,"error":"a string"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":$ID,"Result":{}}"#.to_owned(),
    ] {
        let raw = test.call_within(3000, "raw", json!({ "text": format!("{malformed}\\n") }));
        let (envelope, other) = within(
            Duration::from_secs(30),
            futures::future::join(raw, test.call("echo", json!({ "text": "other" }))),
        )
        .await;
        let start: String = malformed.chars().take(100).collect();
        assert_eq!(envelope["success"], false, "{start}: {envelope}");
        assert!(
            envelope["error"]
                .as_str()
                .is_some_and(|error| !error.is_empty()),
            "{start}: {envelope}"
        );
        assert_eq!(other["result"], "other", "{start}");
    }
    test.assert_works().await;
    test.finish().await;
}

#[tokio::test]
async fn unusual_answers_are_understood() {
    let test = FaultTest::start(&[]).await;
    for (raw, result) in [
        (
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"a\\u0000b"}]}}"#,
            json!("a\u{0}b"),
        ),
        (
            r#"{"id":$ID,"result":{"content":[{"text":"order","type":"text"}],"new":[1]},"jsonrpc":"2.0","more":{}}"#,
            json!("order"),
        ),
        (
            r#"  {"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"space"}]}}  "#,
            json!("space"),
        ),
    ] {
        let envelope = test
            .call_within(5000, "raw", json!({ "text": format!("{raw}\\n") }))
            .await;
        assert_eq!(envelope["result"], result, "{raw}: {envelope}");
    }
    test.finish().await;
}

#[tokio::test]
async fn ex5_results_prefer_structured_content_end_to_end() {
    let test = FaultTest::start(&[]).await;
    assert_eq!(
        test.answer("structured", json!({ "value": { "n": 1 } }))
            .await,
        json!({ "n": 1 })
    );
    assert_eq!(test.answer("echo", json!({ "text": "one" })).await, "one");
    let blocks = test.answer("blocks", json!({})).await;
    let kinds: Vec<_> = blocks
        .as_array()
        .unwrap()
        .iter()
        .map(|block| &block["type"])
        .collect();
    assert_eq!(
        kinds[..5],
        ["text", "image", "audio", "resource_link", "resource"],
        "{blocks}"
    );
    assert_eq!(blocks[1]["data"], "aW1hZ2U=");
    assert_eq!(blocks[4]["resource"]["text"], "inside");
    test.finish().await;
}

#[tokio::test]
async fn pn8_the_servers_own_rejection_is_returned_unchanged() {
    let test = FaultTest::start(&[]).await;
    for text in [
        "Device 'Lamp' not found",
        "  two\nlines ",
        "Invalid parameters: 'x' is odd",
    ] {
        for tool in ["fail", "refuse"] {
            let envelope = test.call(tool, json!({ "text": text })).await;
            assert_eq!(envelope["error"], text, "{tool}: {envelope}");
            assert_eq!(envelope["success"], false);
        }
    }
    let envelope = test.call("fail", json!({ "text": "" })).await;
    assert_eq!(envelope["success"], false);
    assert!(
        !envelope["error"].as_str().unwrap().is_empty(),
        "{envelope}"
    );
    test.finish().await;
}

#[tokio::test]
async fn a_result_that_breaks_its_own_schema_is_reported() {
    let test = FaultTest::start(&[]).await;
    let envelope = test
        .call("structured", json!({ "value": { "n": "one" } }))
        .await;
    let reported = format!("{envelope}\n{}", test.log());
    assert!(
        reported.contains("outputSchema") || reported.contains("output schema"),
        "{reported}"
    );
    test.finish().await;
}

#[tokio::test]
async fn ten_thousand_blocks_are_one_result() {
    let test = FaultTest::start(&[]).await;
    let block = r#"{"type":"text","text":"b"},"#.repeat(10_000);
    let raw = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"content":[{}]}}}}"#,
        block.trim_end_matches(',')
    );
    let envelope = test
        .call_within(20_000, "raw", json!({ "text": format!("{raw}\\n") }))
        .await;
    assert_eq!(envelope["result"].as_array().map(Vec::len), Some(10_000));
    test.finish().await;
}
