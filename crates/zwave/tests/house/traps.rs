//! Twelve surprising behaviors of the real program.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use toolgate_home::{CommandOutcome, DeviceCommand, DeviceStatus, Home};

use crate::gateway_double::{GATEWAY, access, device, nodes, recorded, settle};

const NAMED: &str = include_str!("../data/start-named-time-value.txt");
const RAW: &str = include_str!("../data/start-numbered-raw.txt");

const SWITCH: &str = "zwave/Kitchen/Switch_One/switch_binary/endpoint_0";
const SET: &str = "zwave/Kitchen/Switch_One/switch_binary/endpoint_0/targetValue/set";
const TARGET: &str = "zwave/Kitchen/Switch_One/switch_binary/endpoint_0/targetValue";
const CURRENT: &str = "zwave/Kitchen/Switch_One/switch_binary/endpoint_0/currentValue";
const DIM: &str = "zwave/Dimmer_Two/switch_multilevel/endpoint_0/targetValue/set";
const DIM_TARGET: &str = "zwave/Dimmer_Two/switch_multilevel/endpoint_0/targetValue";
const DIM_CURRENT: &str = "zwave/Dimmer_Two/switch_multilevel/endpoint_0/currentValue";

fn value(time: u64, value: &str) -> String {
    format!(r#"{{"time":{time},"value":{value},"nodeName":"Switch One","nodeLocation":"Kitchen"}}"#)
}

fn level(time: u64, value: &str) -> String {
    format!(r#"{{"time":{time},"value":{value},"nodeName":"Dimmer Two","nodeLocation":""}}"#)
}

fn done(state: &str) -> CommandOutcome {
    CommandOutcome::Done {
        state: state.to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn trap_1_commands_are_always_json() {
    let (memory, house) = recorded(NAMED).await;
    house.command(&device(&house, 2), DeviceCommand::On).await;
    house
        .command(&device(&house, 3), DeviceCommand::Dim(100))
        .await;
    let expected = [
        (SET.to_owned(), r#"{"value":true}"#.to_owned(), false),
        (DIM.to_owned(), r#"{"value":99}"#.to_owned(), false),
    ];
    assert_eq!(memory.commands(), expected);
}

#[tokio::test(start_paused = true)]
async fn trap_2_the_expected_value_proves_nothing() {
    let (memory, house) = recorded(NAMED).await;
    let later = [
        (80, TARGET, value(10, "true")),
        (81, CURRENT, value(11, "true")),
        (1_170, CURRENT, value(12, "true")),
    ];
    memory.on(SET, &later);
    let start = Instant::now();
    assert_eq!(
        house.command(&device(&house, 2), DeviceCommand::On).await,
        done("on")
    );
    assert_eq!(start.elapsed().as_millis(), 1_170);
    assert_eq!(
        memory.asked("pollValue"),
        0,
        "the gateway read it by itself"
    );
}

#[tokio::test(start_paused = true)]
async fn trap_2_a_switch_that_falls_back_fails_the_command() {
    let (memory, house) = recorded(NAMED).await;
    let later = [
        (80, TARGET, value(10, "true")),
        (81, CURRENT, value(11, "true")),
        (1_100, CURRENT, value(12, "false")),
    ];
    memory.on(SET, &later);
    let outcome = house.command(&device(&house, 2), DeviceCommand::On).await;
    let reason =
        "'Switch One' received the command but did not follow it: it reports off.".to_owned();
    assert_eq!(outcome, CommandOutcome::Refused { reason });
    assert_eq!(memory.commands().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn trap_2_a_dimmer_is_read_before_the_gateway_does_it() {
    let (memory, house) = recorded(NAMED).await;
    let later = [
        (80, DIM_TARGET, level(10, "25")),
        (81, DIM_CURRENT, level(11, "25")),
    ];
    memory.on(DIM, &later);
    memory.answer("pollValue", 100, json!(25));
    let start = Instant::now();
    assert_eq!(
        house
            .command(&device(&house, 3), DeviceCommand::Dim(25))
            .await,
        done("on at 25 %")
    );
    assert_eq!(start.elapsed().as_millis(), 2_181);
    assert_eq!(memory.asked("pollValue"), 1);
}

#[tokio::test(start_paused = true)]
async fn trap_3_a_level_beyond_the_device_is_never_sent() {
    let (memory, house) = recorded(NAMED).await;
    let outcome = house
        .command(&device(&house, 3), DeviceCommand::Dim(150))
        .await;
    assert!(
        matches!(outcome, CommandOutcome::Refused { .. }),
        "{outcome:?}"
    );
    assert_eq!(memory.commands(), []);
    // A target value alone proves nothing.
    memory.on(DIM, &[(80, DIM_TARGET, level(10, "60"))]);
    let outcome = house
        .command(&device(&house, 3), DeviceCommand::Dim(60))
        .await;
    let CommandOutcome::Unknown { last, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(last.state, "off");
}

#[tokio::test(start_paused = true)]
async fn trap_4_a_successful_request_proves_no_command() {
    let (memory, house) = recorded(NAMED).await;
    memory.answer("pollValue", 100, json!({ "status": 2 }));
    let outcome = house.command(&device(&house, 2), DeviceCommand::On).await;
    assert!(
        matches!(outcome, CommandOutcome::Unknown { .. }),
        "{outcome:?}"
    );
    assert!(
        !memory
            .questions()
            .iter()
            .any(|function| function == "writeValue")
    );
}

#[tokio::test(start_paused = true)]
async fn trap_5_the_status_tells_that_a_node_died() {
    let (memory, house) = recorded(RAW).await;
    memory.on(
        "zwave/6/37/0/targetValue/set",
        &[(4_000, "zwave/6/status", "false")],
    );
    let start = Instant::now();
    let outcome = house.command(&device(&house, 6), DeviceCommand::Off).await;
    let CommandOutcome::Dead { last } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(
        (last.state.as_str(), start.elapsed().as_millis()),
        ("on", 4_000)
    );
    assert_eq!(device(&house, 6).status, DeviceStatus::Dead);
    // Now the device is known to be dead, so nothing is sent.
    let outcome = house.command(&device(&house, 6), DeviceCommand::Off).await;
    assert!(
        matches!(outcome, CommandOutcome::Dead { .. }),
        "{outcome:?}"
    );
    assert_eq!(memory.commands().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn trap_6_a_dropped_write_is_detected() {
    let (memory, house) = recorded(NAMED).await;
    memory.answer("pollValue", 100, json!(false));
    let outcome = house.command(&device(&house, 2), DeviceCommand::On).await;
    assert!(
        matches!(outcome, CommandOutcome::Refused { .. }),
        "{outcome:?}"
    );
    assert_eq!(memory.commands().len(), 1, "and not sent again");
}

#[tokio::test(start_paused = true)]
async fn trap_7_after_a_rename_the_gateway_listens_on_the_old_topic() {
    let (memory, house) = recorded(NAMED).await;
    let mut renamed = nodes();
    let mut all = renamed.as_array_mut().unwrap().iter_mut();
    all.find(|node| node["id"] == 2).unwrap()["name"] = json!("Counter");
    memory.forget();
    memory.answer("getNodes", 40, renamed);
    // A status on the new topic, before any value is published there.
    let status = r#"{"value":true,"status":"Alive","nodeId":2}"#;
    memory
        .deliver("zwave/Kitchen/Counter/status", status, false)
        .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(device(&house, 2).name, "Counter");
    house.command(&device(&house, 2), DeviceCommand::On).await;
    let moved = "zwave/Kitchen/Counter/switch_binary/endpoint_0/targetValue";
    memory.deliver(moved, value(99, "false"), false).await;
    settle().await;
    house.command(&device(&house, 2), DeviceCommand::On).await;
    let topics = memory.commands().into_iter().map(|(topic, _, _)| topic);
    assert_eq!(
        topics.collect::<Vec<_>>(),
        [SET.to_owned(), format!("{moved}/set")]
    );
}

#[tokio::test(start_paused = true)]
async fn trap_7_retained_messages_under_an_old_name_do_not_count() {
    let (memory, house) = recorded(NAMED).await;
    let before = device(&house, 2);
    memory
        .deliver(
            "zwave/Old/Name/status",
            r#"{"value":false,"status":"Dead","nodeId":2}"#,
            true,
        )
        .await;
    memory
        .deliver(
            "zwave/Old/Name/switch_binary/endpoint_0/currentValue",
            value(1, "true"),
            true,
        )
        .await;
    settle().await;
    assert_eq!(device(&house, 2), before);
}

#[tokio::test(start_paused = true)]
async fn trap_8_controller_and_broadcast_are_not_devices() {
    let (_, house) = recorded(NAMED).await;
    let nodes = house.devices().into_iter().map(|device| device.id);
    let nodes = nodes.collect::<std::collections::BTreeSet<_>>();
    assert_eq!(nodes.into_iter().collect::<Vec<_>>(), [2, 3, 4, 5, 6, 8]);
    assert!(access(&house).resolve("Broadcast", false).is_err());
    assert!(access(&house).resolve("node 1", false).is_err());
}

#[tokio::test(start_paused = true)]
async fn trap_9_a_value_that_was_never_set_is_unknown() {
    let (memory, house) = recorded(NAMED).await;
    memory
        .deliver(
            CURRENT,
            r#"{"time":5,"nodeName":"Switch One","nodeLocation":"Kitchen"}"#,
            false,
        )
        .await;
    settle().await;
    assert_eq!(device(&house, 2).state, "unknown");
    let (memory, house) = recorded(RAW).await;
    memory
        .deliver("zwave/Kitchen/2/37/0/currentValue", "", false)
        .await;
    settle().await;
    assert_eq!(device(&house, 2).state, "unknown");
}

#[tokio::test(start_paused = true)]
async fn trap_10_values_beside_a_dead_gateway_are_stale() {
    let (memory, house) = recorded(NAMED).await;
    assert!(!house.health().stale);
    // Its last will has no time.
    memory
        .deliver(&format!("{GATEWAY}/status"), r#"{"value":false}"#, false)
        .await;
    settle().await;
    let health = house.health();
    assert!(health.stale && !health.gateway_alive);
    assert_eq!(health.gateway.as_deref(), Some("ZWAVE_GATEWAY-Zwave_Test"));
    assert!(house.devices().iter().all(|device| device.stale));
    let outcome = house.command(&device(&house, 2), DeviceCommand::On).await;
    let CommandOutcome::Offline { reason } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        reason.contains("ZWAVE_GATEWAY-Zwave_Test is offline"),
        "{reason}"
    );
    assert_eq!(memory.commands(), []);
    // After its return it is asked for the current nodes.
    let asked = memory.asked("getNodes");
    memory
        .deliver(
            &format!("{GATEWAY}/status"),
            r#"{"value":true,"time":7}"#,
            false,
        )
        .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!house.health().stale);
    assert_eq!(memory.asked("getNodes"), asked + 1);
}

#[tokio::test(start_paused = true)]
async fn trap_11_replies_to_others_are_ignored() {
    let (memory, house) = recorded(NAMED).await;
    let reply = r#"{"success":false,"message":"Cannot read properties of undefined (reading 'commandClass')","args":[],"origin":"not json {"}"#;
    for payload in [
        reply,
        "",
        "null",
        "[]",
        "not json {",
        r#"{"success":true,"result":[],"origin":{"args":[]}}"#,
    ] {
        memory
            .deliver(
                &format!("{GATEWAY}/api/getNodes"),
                payload.to_owned(),
                false,
            )
            .await;
    }
    settle().await;
    assert_eq!(house.devices().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn trap_12_broadcasts_are_neither_sent_nor_read_as_a_node() {
    let (memory, house) = recorded(NAMED).await;
    for topic in [
        "broadcast/37/0/targetValue",
        "multicast",
        "broadcast/switch_binary/endpoint_0/targetValue",
    ] {
        memory
            .deliver(&format!("{GATEWAY}/{topic}"), r#"{"value":true}"#, false)
            .await;
    }
    memory
        .deliver(
            "zwave/Broadcast/switch_binary/endpoint_0/targetValue",
            r#"{"time":1,"nodeName":"Broadcast"}"#,
            true,
        )
        .await;
    settle().await;
    assert_eq!(house.devices().len(), 6);
    house.command(&device(&house, 2), DeviceCommand::Off).await;
    let topics = memory.commands().into_iter().map(|(topic, _, _)| topic);
    assert_eq!(
        topics.collect::<Vec<_>>(),
        [format!("{SWITCH}/targetValue/set")]
    );
}
