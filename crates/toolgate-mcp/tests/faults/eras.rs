//! A7: the protocol era of a server is detected and remembered.

use serde_json::json;
use toolgate_mcp::{EraSetting, ProtocolEra, ServerStatus};

use crate::fault_test::{FAKE, FaultTest, FaultTestBuilder, NEIGHBOR};

fn status(test: &FaultTest) -> ServerStatus {
    let mut status = test.servers.status().into_iter();
    status.find(|server| server.name == FAKE).unwrap()
}

fn era(test: &FaultTest) -> Option<ProtocolEra> {
    status(test).era
}

#[tokio::test]
async fn every_server_is_spoken_to_in_its_own_era() {
    for (modes, expected, revision) in [
        (&[][..], ProtocolEra::Legacy, "2025-11-25"),
        (&["strict"], ProtocolEra::Legacy, "2025-11-25"),
        (&["version=2025-06-18"], ProtocolEra::Legacy, "2025-06-18"),
        (&["version=2025-03-26"], ProtocolEra::Legacy, "2025-03-26"),
        (&["version=2024-11-05"], ProtocolEra::Legacy, "2024-11-05"),
        (&["dual"], ProtocolEra::Legacy, "2025-11-25"),
        (&["modern"], ProtocolEra::Modern, "2026-07-28"),
    ] {
        let test = FaultTest::start(modes).await;
        test.assert_works().await;
        assert_eq!(era(&test), Some(expected), "{modes:?}");
        let protocol = status(&test).protocol;
        assert_eq!(protocol.as_deref(), Some(revision), "{modes:?}");
        test.call("echo", json!({ "text": "x" })).await;
        assert_eq!(test.last_sent().as_deref(), Some(revision), "{modes:?}");
        test.call("echo", json!({ "text": 5 })).await;
        assert_eq!(test.last_sent(), None, "it was refused before");
        test.finish().await;
    }
}

#[tokio::test]
async fn a_configured_era_is_used() {
    for (choice, modes, expected) in [
        (EraSetting::Modern, &["dual"][..], Some(ProtocolEra::Modern)),
        (EraSetting::Legacy, &["dual"], Some(ProtocolEra::Legacy)),
        (EraSetting::Legacy, &["modern"], None),
        (EraSetting::Modern, &[], None),
    ] {
        let test = FaultTestBuilder::new()
            .settings(FAKE, modes, |fake| fake.era = choice)
            .retry(|retry| retry.attempts = 1)
            .server(NEIGHBOR, &[])
            .start_settled()
            .await;
        assert_eq!(era(&test), expected, "{choice:?} {modes:?}");
        assert_eq!(
            test.manager.find("fake__echo").is_some(),
            expected.is_some()
        );
        test.finish().await;
    }
}

#[tokio::test]
async fn a_reconnected_modern_server_gets_the_modern_handshake_first() {
    let test = FaultTest::start(&["modern"]).await;
    assert_eq!(
        test.received_methods().await[..2],
        ["initialize", "server/discover"]
    );
    test.call("die", json!({})).await;
    test.assert_works().await;
    assert_eq!(test.received_methods().await[0], "server/discover");
    test.finish().await;
}

#[tokio::test]
async fn an_unknown_revision_is_logged_and_treated_as_the_newest() {
    let test = FaultTest::start(&["version=1999-01-01"]).await;
    let log = test.log();
    let warned = |line: &str| line.contains("WARN") && line.contains("1999-01-01");
    assert!(log.lines().any(warned), "{log}");
    test.assert_works().await;
    test.finish().await;
}
