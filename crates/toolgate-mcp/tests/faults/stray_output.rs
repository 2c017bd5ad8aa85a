//! B1, MC1: stray output on stdout.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::fault_test::{FAKE, FaultTest, FaultTestBuilder, NEIGHBOR};

#[tokio::test]
async fn mc1_stray_output_is_logged_with_server_and_content() {
    for (before, quoted) in [
        (
            "Server started on port 3000\\n",
            "Server started on port 3000",
        ),
        (
            "2026-01-01 [INFO] a request arrived\\n",
            "[INFO] a request arrived",
        ),
        (
            "{\"level\":\"info\",\"msg\":\"a json logger\"}\\n",
            "a json logger",
        ),
        ("[1,2,3]\\n", "[1,2,3]"),
        ("12345\\n", "12345"),
        ("null\\n", "null"),
        ("🚀 ready\\n", "ready"),
        ("bad \\xff\\xfe bytes\\n", "bytes"),
        ("{\"jsonrpc\":\"2.0\"}\\n", "jsonrpc"),
        ("{\"jsonrpc\":\"2.0\",\"id\":\\n", "jsonrpc"),
        ("red \\x1b[31malarm\\n", "alarm"),
    ] {
        let test = FaultTest::start(&[&format!("before={before}")]).await;
        for n in 0..3 {
            assert_eq!(
                test.answer("echo", json!({ "text": n.to_string() })).await,
                n
            );
        }
        let log = test.log();
        let error = log
            .lines()
            .find(|line| line.contains("ERROR") && line.contains(quoted))
            .unwrap_or_else(|| panic!("{before} is not logged:\n{log}"));
        assert!(error.contains("fake"), "{error}");
        assert!(!log.contains('\x1b'), "{log}");
        test.finish().await;
    }
}

#[tokio::test]
async fn mc1_a_message_among_other_text_is_rescued() {
    for modes in [
        &["before=\\n\\n"][..],
        &["before=INFO: "],
        &["before=half a line "],
        &["before=\\xef\\xbb\\xbf"],
        &["before=\\x1b[0m"],
        &["before= \\t"],
        &["end=\\r\\n"],
        &["end=\\n\\n\\n"],
        &["stdout=Welcome!\\nType help\\n"],
        &["stdout=half a banner"],
    ] {
        let test = FaultTest::start(modes).await;
        for n in 0..3 {
            assert_eq!(
                test.answer("echo", json!({ "text": n.to_string() })).await,
                n,
                "{modes:?}"
            );
        }
        test.finish().await;
    }
}

#[tokio::test]
async fn mc1_stray_output_gets_no_reply() {
    let test = FaultTest::start(&[
        "before=[1]\\nno message\\n{\"id\":3}\\n{\"jsonrpc\":\"2.0\",\"id\":9}\\n",
    ])
    .await;
    test.assert_works().await;
    let expected = [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
        "tools/call",
    ];
    assert_eq!(test.received_methods().await, expected);
    test.finish().await;
}

#[tokio::test]
async fn mc1_a_thousand_lines_a_second_delay_nothing_and_fill_no_log() {
    let test = FaultTest::start(&["noise=1000"]).await;
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(2) {
        test.assert_works().await;
    }
    let errors = test
        .log()
        .lines()
        .filter(|line| line.contains("still here") && line.contains("ERROR"))
        .count();
    assert!((1..=7).contains(&errors), "{errors}\n{}", test.log());
    test.finish().await;
}

#[tokio::test]
async fn messages_without_a_newline_fail_only_their_servers_start() {
    let test = FaultTestBuilder::new()
        .settings(FAKE, &["end="], |fake| {
            fake.start_timeout = Some(Duration::from_millis(300));
        })
        .retry(|retry| retry.base_delay = Duration::from_millis(50))
        .server(NEIGHBOR, &[])
        .start_settled()
        .await;
    assert!(test.manager.find("fake__echo").is_none());
    test.finish().await;
}

#[tokio::test]
async fn a_flood_of_useless_messages_does_not_fill_the_log() {
    const LINES: usize = 2000;
    const CALLS: usize = 25;
    let test = FaultTestBuilder::new()
        .server(FAKE, &[])
        .debug()
        .start_settled()
        .await;
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"ok"}]}}"#;
    for (line, message) in [
        (
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
            "response to an unknown request",
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}"#,
            "sampling request declined",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/odd","params":{}}"#,
            "notification ignored",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#,
            "progress for an unknown call",
        ),
    ] {
        let text = format!("{line}\\n").repeat(LINES) + answer + "\\n";
        for _ in 0..CALLS {
            assert_eq!(test.answer("raw", json!({ "text": text })).await, "ok");
        }
        let log = test.log();
        let logged = log.lines().filter(|line| line.contains(message)).count();
        assert!((1..=5).contains(&logged), "{message}: {logged}");
    }
    // Besides these, the log grows only by the calls themselves, with 200,000 messages or with
    // none.
    let records = test.log().lines().count();
    assert!(records < 10 * 4 * CALLS, "{records}");
    test.finish().await;
}
