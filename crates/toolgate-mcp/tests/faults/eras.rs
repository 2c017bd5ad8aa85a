//! A7: which protocol a server speaks is found out, and remembered.

use serde_json::json;
use toolgate_mcp::{Era, EraChoice, ServerStatus};

use crate::house::{FAKE, House, NEIGHBOUR, Plan};

fn status(house: &House) -> ServerStatus {
    let mut status = house.servers.status().into_iter();
    status.find(|server| server.name == FAKE).unwrap()
}

fn era(house: &House) -> Option<Era> {
    status(house).era
}

#[tokio::test]
async fn every_kind_of_server_is_spoken_to_in_its_own_way() {
    for (modes, expected, revision) in [
        (&[][..], Era::Legacy, "2025-11-25"),
        (&["strict"], Era::Legacy, "2025-11-25"),
        (&["version=2025-06-18"], Era::Legacy, "2025-06-18"),
        (&["version=2025-03-26"], Era::Legacy, "2025-03-26"),
        (&["version=2024-11-05"], Era::Legacy, "2024-11-05"),
        (&["dual"], Era::Legacy, "2025-11-25"),
        (&["modern"], Era::Modern, "2026-07-28"),
    ] {
        let house = House::with(modes).await;
        house.works().await;
        assert_eq!(era(&house), Some(expected), "{modes:?}");
        let protocol = status(&house).protocol;
        assert_eq!(protocol.as_deref(), Some(revision), "{modes:?}");
        house.call("echo", json!({ "text": "x" })).await;
        assert_eq!(house.last_sent().as_deref(), Some(revision), "{modes:?}");
        house.call("echo", json!({ "text": 5 })).await;
        assert_eq!(house.last_sent(), None, "it was refused before");
        house.end().await;
    }
}

#[tokio::test]
async fn the_era_of_the_configuration_is_kept() {
    for (choice, modes, expected) in [
        (EraChoice::Modern, &["dual"][..], Some(Era::Modern)),
        (EraChoice::Legacy, &["dual"], Some(Era::Legacy)),
        (EraChoice::Legacy, &["modern"], None),
        (EraChoice::Modern, &[], None),
    ] {
        let house = Plan::new()
            .settings(FAKE, modes, |fake| fake.era = choice)
            .retry(|retry| retry.attempts = 1)
            .server(NEIGHBOUR, &[])
            .settled()
            .await;
        assert_eq!(era(&house), expected, "{choice:?} {modes:?}");
        assert_eq!(
            house.manager.find("fake__echo").is_some(),
            expected.is_some()
        );
        house.end().await;
    }
}

#[tokio::test]
async fn a_modern_server_is_asked_in_the_modern_way_at_once_when_it_is_back() {
    let house = House::with(&["modern"]).await;
    assert_eq!(house.heard().await[..2], ["initialize", "server/discover"]);
    house.call("die", json!({})).await;
    house.works().await;
    assert_eq!(house.heard().await[0], "server/discover");
    house.end().await;
}

#[tokio::test]
async fn a_version_nobody_knows_is_warned_of_by_its_name_and_spoken_as_the_newest_known() {
    let house = House::with(&["version=1999-01-01"]).await;
    let log = house.log();
    let warned = |line: &str| line.contains("WARN") && line.contains("1999-01-01");
    assert!(log.lines().any(warned), "{log}");
    house.works().await;
    house.end().await;
}
