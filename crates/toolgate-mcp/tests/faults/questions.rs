//! Requests of a server get a response, even if no client can answer them.

use serde_json::json;

use crate::fault_test::FaultTest;

#[tokio::test]
async fn a_servers_questions_are_declined_when_no_client_can_answer() {
    let test = FaultTest::start(&[]).await;
    let elicited = test.answer("elicit", json!({})).await;
    let declined =
        ["decline", "cancel"].contains(&elicited["result"]["action"].as_str().unwrap_or_default());
    assert!(
        declined || elicited["error"]["message"].is_string(),
        "{elicited}"
    );
    let sampled = test.answer("sample", json!({})).await;
    assert!(
        sampled["error"]["message"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        "{sampled}"
    );
    let roots = test.answer("roots", json!({})).await;
    assert!(
        roots["result"]["roots"].is_array() || roots["error"]["message"].is_string(),
        "{roots}"
    );
    test.finish().await;
}

#[tokio::test]
async fn modern_questions_are_answered_by_the_retry() {
    let test = FaultTest::start(&["modern"]).await;
    let envelope = test.call_within(5000, "elicit", json!({})).await;
    let text = envelope.to_string();
    assert!(
        text.contains("decline") || envelope["success"] == false,
        "{envelope}"
    );
    if envelope["success"] == true {
        assert!(
            envelope["result"]["state"] == "s" || text.contains("state"),
            "{envelope}"
        );
    }
    test.assert_works().await;
    test.finish().await;
}

#[tokio::test]
async fn malformed_requests_affect_no_call() {
    let test = FaultTest::start(&[]).await;
    let malformed = [
        r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":{"x":1},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"dance/now","params":[1]}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":"?"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unheard_of"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"x"}}"#,
    ];
    let answer =
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"end"}]}}"#;
    for message in malformed {
        let envelope = test
            .call_within(
                5000,
                "raw",
                json!({ "text": format!("{message}\\n{answer}\\n") }),
            )
            .await;
        assert_eq!(envelope["result"], "end", "{message}: {envelope}");
    }
    test.assert_works().await;
    test.finish().await;
}
