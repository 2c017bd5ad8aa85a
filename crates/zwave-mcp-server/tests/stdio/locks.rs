//! A lock under every fault: it moves at most once, and the answer is true.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use zwave::sim::DeviceFaults;

use crate::brokers::{Kind, with_each_broker};
use crate::fixture::{BrokerObserver, HouseFixture, listed_device, wait_until_healthy};

const LOCK: u16 = 9;
const COMMANDS: &str = "zwave/Hall/Front_Door/door_lock/endpoint_0/targetMode/set";

fn unlock() -> Value {
    json!({ "deviceName": "Front Door", "action": "unlock" })
}

fn faults(set: impl FnOnce(&mut DeviceFaults)) -> DeviceFaults {
    let mut faults = DeviceFaults::default();
    set(&mut faults);
    faults
}

async fn assert_nothing_is_sent_late(fixture: &HouseFixture, count: zwave::sim::CommandCount) {
    sleep(Duration::from_millis(1500)).await;
    assert_eq!(fixture.count(LOCK), count);
}

with_each_broker!(
    misbehaving_devices_have_their_outcomes,
    a_retained_command_moves_nothing,
    a_lock_moves_at_most_once_although_the_broker_is_killed,
    a_lock_moves_at_most_once_although_the_server_is_killed,
    an_unlock_is_refused_while_the_broker_is_away,
    an_unlock_is_refused_while_the_gateway_is_away,
);

async fn misbehaving_devices_have_their_outcomes(kind: Kind) {
    let late = Duration::from_secs(31);
    let unknown = [
        "It is not known whether Front Door",
        "It was sent once and won't be repeated.",
        "Last known state: locked",
    ];
    let done = ["Front Door in Hall is now unlocked."];
    // The fault, the answer, the commands received, and the movements.
    let cases = [
        ("nothing", DeviceFaults::default(), &done[..], 1, 1),
        ("no report", faults(|f| f.loses_reports = true), &done, 1, 1),
        (
            "the acknowledgement is lost",
            faults(|f| (f.loses_reports, f.loses_answers) = (true, true)),
            &unknown,
            1,
            1,
        ),
        (
            "the acknowledgement comes after 31 s",
            faults(|f| (f.publish_delay, f.loses_answers) = (late, true)),
            &unknown,
            1,
            1,
        ),
        (
            "delivered twice",
            faults(|f| f.receives_twice = true),
            &done,
            2,
            1,
        ),
        (
            "told twice",
            faults(|f| f.publishes_twice = true),
            &done,
            1,
            1,
        ),
        (
            "jams",
            faults(|f| f.jams = true),
            &["did not follow it", "locked"],
            1,
            0,
        ),
        (
            "dead",
            faults(|f| f.dead = true),
            &["does not answer", "Last known state: locked"],
            0,
            0,
        ),
    ];
    let each = cases.map(|(name, wrong, says, received, moved)| async move {
        let fixture = HouseFixture::demo(kind).await;
        let observer = BrokerObserver::of(&fixture).await;
        let mut client = fixture.server().await;
        fixture.house().set_faults(LOCK, wrong);
        let (failed, text, _) = client.call("control_lock", unlock()).await;
        assert_eq!(failed, says != done, "{name}: {text}");
        for part in says {
            assert!(text.contains(part), "{name}: {text}");
        }
        if wrong.publish_delay == late {
            // The late report updates the state, but nothing is sent again.
            let wait = async {
                while listed_device(&mut client, "Front Door").await["state"] != "unlocked" {
                    sleep(Duration::from_millis(200)).await;
                }
            };
            tokio::time::timeout(crate::fixture::GUARD, wait)
                .await
                .unwrap();
        }
        let count = fixture.count(LOCK);
        assert_eq!((count.received, count.moved), (received, moved), "{name}");
        assert_eq!(observer.on(COMMANDS).len(), 1, "{name}");
    });
    futures::future::join_all(each).await;
}

async fn a_retained_command_moves_nothing(kind: Kind) {
    let mut fixture = HouseFixture::demo(kind).await;
    fixture.house = None;
    let observer = BrokerObserver::of(&fixture).await;
    // The door is already locked, so the gateway's command moves nothing.
    observer.put(COMMANDS, r#"{"value":255}"#, true).await;
    fixture.start_house();
    let mut client = fixture.server().await;
    assert_eq!(
        listed_device(&mut client, "Front Door").await["state"],
        "locked"
    );
    let (failed, text, _) = client.call("control_lock", unlock()).await;
    assert!(!failed, "{text}");
    let count = fixture.count(LOCK);
    assert_eq!((count.received, count.moved), (2, 1));
    drop(client);
    // A new server receives the retained command too.
    let mut client = fixture.server().await;
    assert_eq!(
        listed_device(&mut client, "Front Door").await["state"],
        "unlocked"
    );
    assert_nothing_is_sent_late(&fixture, count).await;
}

async fn a_lock_moves_at_most_once_although_the_broker_is_killed(kind: Kind) {
    let moments = [
        None,
        Some(0),
        Some(1),
        Some(5),
        Some(30),
        Some(120),
        Some(700),
    ];
    let each = moments.map(|moment| async move {
        let mut fixture = HouseFixture::demo(kind).await;
        let mut client = fixture.server().await;
        let ((failed, text, _), ()) = tokio::join!(client.call("control_lock", unlock()), async {
            match moment {
                None => fixture.wait_for_command(LOCK).await,
                Some(moment) => sleep(Duration::from_millis(moment)).await,
            }
            fixture.broker.kill();
            fixture.broker.restart().await;
        });
        wait_until_healthy(&mut client).await;
        let count = fixture.count(LOCK);
        assert!(
            count.received <= 1 && count.moved <= 1,
            "{moment:?}: {count:?}"
        );
        let really = fixture.state("Front Door");
        // The outcome may be unknown, but any claim must be true.
        if !failed {
            assert!(
                text.contains("is now unlocked") && really == "unlocked",
                "{moment:?}: {text}"
            );
        } else if text.contains("Nothing was sent") {
            assert_eq!(count.received, 0, "{moment:?}: {text}");
        } else if text.contains("did not follow it: it reports locked") {
            // The device was read once again.
            assert_eq!(really, "locked", "{moment:?}: {text}");
        } else {
            for part in [
                "It is not known whether",
                "sent once and won't be repeated",
                "Last known state",
            ] {
                assert!(text.contains(part), "{moment:?}: {text}");
            }
        }
        assert_eq!(
            listed_device(&mut client, "Front Door").await["state"],
            really,
            "{moment:?}"
        );
        assert_nothing_is_sent_late(&fixture, count).await;
    });
    futures::future::join_all(each).await;
}

async fn a_lock_moves_at_most_once_although_the_server_is_killed(kind: Kind) {
    let fixture = HouseFixture::demo(kind).await;
    let mut client = fixture.server().await;
    tokio::select! {
        _ = client.call("control_lock", unlock()) => panic!("no lock proves anything so fast"),
        () = fixture.wait_for_command(LOCK) => {}
    }
    // Killed with SIGKILL.
    drop(client);
    let mut client = fixture.server().await;
    let count = fixture.count(LOCK);
    assert_eq!((count.received, count.moved), (1, 1));
    assert_nothing_is_sent_late(&fixture, count).await;
    assert_eq!(
        listed_device(&mut client, "Front Door").await["state"],
        "unlocked"
    );
}

async fn an_unlock_is_refused_while_the_broker_is_away(kind: Kind) {
    let mut fixture = HouseFixture::demo(kind).await;
    let mut client = fixture.server().await;
    fixture.broker.kill();
    let mut texts = Vec::new();
    for _ in 0..5 {
        let (failed, text, _) = client.call("control_lock", unlock()).await;
        assert!(failed, "{text}");
        texts.push(text);
    }
    let last = texts.last().unwrap();
    assert!(
        last.contains("MQTT broker") && last.contains("Nothing was sent, and nothing will be."),
        "{last}"
    );
    fixture.broker.restart().await;
    wait_until_healthy(&mut client).await;
    assert_nothing_is_sent_late(&fixture, zwave::sim::CommandCount::default()).await;
    assert_eq!(
        listed_device(&mut client, "Front Door").await["state"],
        "locked"
    );
}

async fn an_unlock_is_refused_while_the_gateway_is_away(kind: Kind) {
    let mut fixture = HouseFixture::demo(kind).await;
    let observer = BrokerObserver::of(&fixture).await;
    let mut client = fixture.server().await;
    fixture.house = None;
    // The message of a gateway's shutdown, and of the broker when the gateway vanishes.
    let will = fixture.options.will();
    let payload = std::str::from_utf8(&will.payload).unwrap();
    observer.put(&will.topic, payload, true).await;
    let gone = async {
        loop {
            let (_, _, fields) = client.call("check_zwave_health", json!({})).await;
            if fields["gatewayAlive"] == false {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::fixture::GUARD, gone)
        .await
        .unwrap();
    let (failed, text, _) = client.call("control_lock", unlock()).await;
    assert!(failed && text.contains("Start zwave-js-ui"), "{text}");
    assert!(
        text.contains("Nothing was sent, and nothing will be."),
        "{text}"
    );
    // The known state is still reported, but marked as stale.
    assert_eq!(
        listed_device(&mut client, "Front Door").await["stale"],
        true
    );
    fixture.start_house();
    wait_until_healthy(&mut client).await;
    assert_nothing_is_sent_late(&fixture, zwave::sim::CommandCount::default()).await;
    assert_eq!(
        listed_device(&mut client, "Front Door").await["state"],
        "locked"
    );
}
