//! The outcome of a command when things go wrong: it is sent at most once, and the report is true.

use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::time::{Instant, timeout};
use toolgate_home::{CommandOutcome, DeviceCommand, Home, HomeReadiness};
use toolgate_mqtt::{MqttState, PublishError};

use crate::gateway_double::{
    GATEWAY, GatewayDouble, access, device, open, recorded, settle, with_nodes,
};

const NAMED: &str = include_str!("../data/start-named-time-value.txt");
const SET: &str = "zwave/Kitchen/Switch_One/switch_binary/endpoint_0/targetValue/set";
const CURRENT: &str = "zwave/Kitchen/Switch_One/switch_binary/endpoint_0/currentValue";

fn lock(status: &str) -> Json {
    json!([{ "id": 7, "name": "Front Door", "loc": "Hall", "status": status, "values": {
        "98-0-currentMode": { "commandClass": 98, "endpoint": 0, "property": "currentMode", "propertyName": "currentMode" },
        "98-0-targetMode": { "commandClass": 98, "endpoint": 0, "property": "targetMode", "propertyName": "targetMode",
                             "writeable": true },
    }}])
}

const LOCK_SET: &str = "zwave/Hall/Front_Door/door_lock/endpoint_0/targetMode/set";
const LOCK_TARGET: &str = "zwave/Hall/Front_Door/door_lock/endpoint_0/targetMode";
const LOCK_CURRENT: &str = "zwave/Hall/Front_Door/door_lock/endpoint_0/currentMode";

#[tokio::test(start_paused = true)]
async fn a_lock_counts_as_locked_once_it_reports_that() {
    let (memory, house) = with_nodes(lock("Alive"), "").await;
    assert_eq!(
        device(&house, 7).state,
        "unknown",
        "never locked by default"
    );
    memory.on(
        LOCK_SET,
        &[
            (90, LOCK_TARGET, r#"{"time":1,"value":255}"#),
            (3_000, LOCK_CURRENT, r#"{"time":2,"value":255}"#),
        ],
    );
    let front = access(&house).resolve("front door", true).unwrap();
    let outcome = house.command(&front, DeviceCommand::Lock).await;
    assert_eq!(
        outcome,
        CommandOutcome::Done {
            state: "locked".to_owned()
        }
    );
    let expected = [(LOCK_SET.to_owned(), r#"{"value":255}"#.to_owned(), false)];
    assert_eq!(memory.commands(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_lock_moves_at_most_once_whatever_the_broker_confirms() {
    for (fails, sent) in [
        (
            PublishError::Unknown {
                reason: "No word from the broker.".to_owned(),
            },
            1,
        ),
        (
            PublishError::Refused {
                reason: "Too long.".to_owned(),
            },
            1,
        ),
    ] {
        let (memory, house) = with_nodes(lock("Alive"), "").await;
        memory.fail(Some(fails.clone()));
        let outcome = house
            .command(&device(&house, 7), DeviceCommand::Unlock)
            .await;
        match (&fails, &outcome) {
            (PublishError::Unknown { .. }, CommandOutcome::Unknown { reason, last }) => {
                assert_eq!(
                    (reason.as_str(), last.state.as_str()),
                    ("No word from the broker.", "unknown")
                );
            }
            (PublishError::Refused { .. }, CommandOutcome::Refused { .. }) => {}
            other => panic!("{other:?}"),
        }
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(memory.commands().len(), sent);
    }
}

#[tokio::test(start_paused = true)]
async fn a_report_proves_a_command_that_the_broker_did_not_confirm() {
    let (memory, house) = with_nodes(lock("Alive"), "").await;
    memory.fail(Some(PublishError::Unknown {
        reason: "No word.".to_owned(),
    }));
    memory.on(
        LOCK_SET,
        &[
            (90, LOCK_TARGET, r#"{"time":1,"value":0}"#),
            (2_000, LOCK_CURRENT, r#"{"time":2,"value":0}"#),
        ],
    );
    let outcome = house
        .command(&device(&house, 7), DeviceCommand::Unlock)
        .await;
    assert_eq!(
        outcome,
        CommandOutcome::Done {
            state: "unlocked".to_owned()
        }
    );
    assert_eq!(memory.commands().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_while_the_broker_is_away_or_afterwards() {
    let (memory, house) = recorded(NAMED).await;
    let reason = "There is no broker.".to_owned();
    memory.link(MqttState::Offline {
        reason: reason.clone(),
    });
    settle().await;
    assert!(house.devices().iter().all(|device| device.stale));
    let start = Instant::now();
    let outcome = house.command(&device(&house, 2), DeviceCommand::On).await;
    assert_eq!(outcome, CommandOutcome::Offline { reason });
    assert_eq!(start.elapsed(), Duration::ZERO);
    memory.link(MqttState::Online);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(memory.commands(), []);
    assert!(!house.health().stale);
    assert!(
        memory.asked("getNodes") >= 2,
        "who knows what happened meanwhile"
    );
}

#[tokio::test(start_paused = true)]
async fn retained_messages_prove_nothing() {
    let (memory, house) = recorded(NAMED).await;
    let switch = device(&house, 2);
    let command = house.command(&switch, DeviceCommand::On);
    let kept = async {
        for time in 0..20 {
            tokio::time::sleep(Duration::from_millis(400)).await;
            let payload = format!(
                r#"{{"time":{},"value":true}}"#,
                9_999_999_999_999_u64 + time
            );
            memory.deliver(CURRENT, payload, true).await;
        }
    };
    let (outcome, ()) = tokio::join!(command, kept);
    assert!(
        matches!(outcome, CommandOutcome::Unknown { .. }),
        "{outcome:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_sleeping_device_receives_a_command_when_it_wakes() {
    let (memory, house) = with_nodes(lock("Asleep"), "").await;
    let start = Instant::now();
    let outcome = house.command(&device(&house, 7), DeviceCommand::Lock).await;
    assert!(
        matches!(outcome, CommandOutcome::Asleep { .. }),
        "{outcome:?}"
    );
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(memory.commands().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_report_the_outcome_is_unknown() {
    let (memory, house) = recorded(NAMED).await;
    let start = Instant::now();
    let outcome = house.command(&device(&house, 2), DeviceCommand::On).await;
    let CommandOutcome::Unknown { reason, last } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(start.elapsed(), Duration::from_secs(10));
    assert!(
        reason.contains("did not confirm the command within 10 s"),
        "{reason}"
    );
    assert_eq!(last.state, "off");
    assert!(last.at.is_some());
    assert_eq!(memory.commands().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn commands_to_one_device_wait_for_each_other() {
    let (memory, house) = recorded(NAMED).await;
    memory.react(|topic, payload| {
        if topic != SET {
            return Vec::new();
        }
        let on = payload.contains("true");
        let value = |time: u64| format!(r#"{{"time":{time},"value":{on}}}"#);
        let target = SET.trim_end_matches("/set").to_owned();
        vec![
            (80, target, value(1)),
            (81, CURRENT.to_owned(), value(2)),
            (1_100, CURRENT.to_owned(), value(3)),
        ]
    });
    let switch = device(&house, 2);
    let start = Instant::now();
    let (on, off) = tokio::join!(
        house.command(&switch, DeviceCommand::On),
        house.command(&switch, DeviceCommand::Off)
    );
    assert_eq!(
        on,
        CommandOutcome::Done {
            state: "on".to_owned()
        }
    );
    assert_eq!(
        off,
        CommandOutcome::Done {
            state: "off".to_owned()
        }
    );
    assert_eq!(start.elapsed().as_millis(), 2_200);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_command_leaves_nothing_behind() {
    let (memory, house) = recorded(NAMED).await;
    let switch = device(&house, 2);
    let given_up = timeout(
        Duration::from_millis(100),
        house.command(&switch, DeviceCommand::On),
    )
    .await;
    assert!(given_up.is_err());
    // The next command is not blocked.
    let next = timeout(
        Duration::from_secs(11),
        house.command(&switch, DeviceCommand::Off),
    )
    .await;
    assert!(next.is_ok());
    assert_eq!(memory.commands().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn devices_that_share_a_topic_are_not_commanded() {
    let value = |property: &str| json!({ "commandClass": 37, "property": property, "propertyName": property });
    let node = |id: u16| {
        json!({ "id": id, "name": "Lamp", "loc": "Hall", "status": "Alive",
                "values": [value("currentValue"), value("targetValue")] })
    };
    let (memory, house) = with_nodes(json!([node(2), node(3)]), "").await;
    assert!(access(&house).resolve("lamp", false).is_err(), "ambiguous");
    let outcome = house.command(&device(&house, 2), DeviceCommand::On).await;
    let CommandOutcome::Refused { reason } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(reason.contains("shares its MQTT topic"), "{reason}");
    assert_eq!(memory.commands(), []);
}

#[tokio::test(start_paused = true)]
async fn health_says_what_is_missing() {
    let memory = GatewayDouble::new();
    memory.link(MqttState::Offline {
        reason: "There is no broker.".to_owned(),
    });
    let house = open(&memory);
    let not_ready = |reason: &str| HomeReadiness::NotReady {
        reason: reason.to_owned(),
    };
    let patience = Duration::from_millis(100);
    assert_eq!(
        house.ready(patience).await,
        not_ready("There is no broker.")
    );
    memory.link(MqttState::Online);
    settle().await;
    let HomeReadiness::NotReady { reason } = house.ready(patience).await else {
        panic!("ready without a gateway");
    };
    assert!(reason.contains("'zwave'"), "{reason}");
    memory
        .deliver(
            &format!("{GATEWAY}/status"),
            r#"{"value":true,"time":1}"#,
            true,
        )
        .await;
    memory.deliver("zwave/driver/status", "false", true).await;
    settle().await;
    let problem = house.health().problem.unwrap();
    assert!(problem.contains("radio"), "{problem}");
    memory.deliver("zwave/driver/status", "true", true).await;
    settle().await;
    let problem = house.health().problem.unwrap();
    assert!(
        problem.contains("has not listed its devices yet"),
        "{problem}"
    );
    // Once it answers, everything works without a restart.
    tokio::time::sleep(Duration::from_secs(100)).await;
    let asked = memory.asked("getNodes");
    assert!(
        (5..20).contains(&asked),
        "patiently, and not too often: {asked}"
    );
    memory.answer("getNodes", 10, json!([]));
    assert_eq!(
        house.ready(Duration::from_secs(60)).await,
        HomeReadiness::Ready
    );
}

#[tokio::test(start_paused = true)]
async fn the_last_clone_closes_the_house() {
    let (memory, house) = recorded(NAMED).await;
    let clone = house.clone();
    drop(house);
    assert_eq!(clone.devices().len(), 6);
    drop(clone);
    settle().await;
    let asked = memory.asked("getNodes");
    memory
        .deliver(
            "zwave/_EVENTS/ZWAVE_GATEWAY-Zwave_Test/driver/driver_ready",
            "{}",
            false,
        )
        .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(memory.asked("getNodes"), asked);
}
