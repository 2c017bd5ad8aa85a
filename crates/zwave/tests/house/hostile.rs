//! No message can break the state, fill the memory, or redirect a command.

use std::time::Duration;

use serde_json::{Value as Json, json};
use toolgate_home::{CommandOutcome, DeviceCommand, Home};

use crate::gateway_double::{GATEWAY, access, device, recorded, settle, with_nodes};

const NAMED: &str = include_str!("../data/start-named-time-value.txt");
const CURRENT: &str = "zwave/Kitchen/Switch_One/switch_binary/endpoint_0/currentValue";

#[tokio::test(start_paused = true)]
async fn a_garbage_payload_makes_the_state_unknown() {
    let (memory, house) = recorded(NAMED).await;
    for garbage in [
        "not json {",
        "NaN",
        r#"{"time":1,"value":"on"}"#,
        r#"{"value":1e999}"#,
        "\u{0}",
        r#"{"time":2,"value":[true]}"#,
    ] {
        memory
            .deliver(CURRENT, r#"{"time":1,"value":true}"#, false)
            .await;
        settle().await;
        assert_eq!(device(&house, 2).state, "on");
        memory.deliver(CURRENT, garbage.to_owned(), false).await;
        settle().await;
        assert_eq!(device(&house, 2).state, "unknown", "{garbage}");
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_on_any_topic_changes_no_device() {
    let (memory, house) = recorded(NAMED).await;
    let before = house.devices();
    let deep = "[".repeat(100_000);
    let topics = [
        "_CLIENTS/x/status",
        "_EVENTS/x/node/node_dead",
        "_EVENTS/x/node/node_removed",
        "driver/x",
        "",
        "/",
        "a/status",
        "Kitchen/Switch_One/status",
        "Kitchen/Switch_One/nodeinfo",
        "Kitchen/Switch_One/lastActive",
        "_CLIENTS/x/api/getNodes",
        "x/37/0/y",
        "nodeID_99/37/0/currentValue",
        "nodeID_99999999/37/0/currentValue",
    ];
    for topic in topics {
        for payload in [
            "",
            "null",
            "{",
            "[]",
            "{}",
            r#"{"data":[]}"#,
            r#"{"data":[{"id":-1}]}"#,
            r#"{"nodeId":99999}"#,
            &deep,
        ] {
            memory
                .deliver(&format!("zwave/{topic}"), payload.to_owned(), false)
                .await;
        }
    }
    settle().await;
    let states = |devices: Vec<toolgate_home::HomeDevice>| {
        devices
            .into_iter()
            .map(|one| (one.id, one.name, one.status, one.state))
            .collect::<Vec<_>>()
    };
    assert_eq!(states(house.devices()), states(before));
}

fn switch(id: u16, name: &str, location: &str) -> Json {
    let value = |property: &str| json!({ "commandClass": 37, "property": property, "propertyName": property, "value": false });
    json!({ "id": id, "name": name, "loc": location, "status": "Alive",
            "values": { "a": value("currentValue"), "b": value("targetValue") } })
}

#[tokio::test(start_paused = true)]
async fn no_device_name_leads_to_a_foreign_topic() {
    let long = "x".repeat(70_000);
    for (name, location, topic) in [
        ("a+b#c\0d", "", Some("zwave/abcd")),
        ("../../x", "", Some("zwave///x")),
        ("Lamp", "#/+", Some("zwave///Lamp")),
        (&long, "", Some(format!("zwave/{}", &long[..256]).as_str())),
        ("_CLIENTS/ZWAVE_GATEWAY-x/api/hardReset", "", None),
        ("Lamp", "_CLIENTS/ZWAVE_GATEWAY-x", None),
        ("_EVENTS", "", None),
    ] {
        let (memory, house) = with_nodes(json!([switch(2, name, location)]), "").await;
        house.command(&device(&house, 2), DeviceCommand::On).await;
        let sent = memory.commands().into_iter().map(|(topic, _, _)| topic);
        let expected =
            topic.map(|topic| format!("{topic}/switch_binary/endpoint_0/targetValue/set"));
        assert_eq!(sent.collect::<Vec<_>>(), Vec::from_iter(expected));
        let asked = memory.questions();
        let harmless = |function: &String| ["getNodes", "pollValue"].contains(&function.as_str());
        assert!(asked.iter().all(harmless), "{asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_values_is_processed() {
    let (memory, house) = recorded(NAMED).await;
    for number in 0..50_000_u64 {
        let payload = format!(r#"{{"time":{number},"value":{}}}"#, number % 100);
        memory
            .deliver(
                "zwave/Env_Sensor/sensor_multilevel/endpoint_0/Humidity",
                payload,
                false,
            )
            .await;
    }
    settle().await;
    let humidity = device(&house, 4)
        .readings
        .into_iter()
        .find(|one| one.label == "Humidity");
    assert_eq!(humidity.unwrap().value, Some(json!(99)));
}

#[tokio::test(start_paused = true)]
async fn unknown_topics_do_not_accumulate() {
    let (memory, house) = recorded(NAMED).await;
    for number in 0..5_000 {
        memory
            .deliver(
                &format!("zwave/Stranger_{number}/37/0/currentValue"),
                "true",
                false,
            )
            .await;
        memory
            .deliver(&format!("zwave/Dimmer_Two/112/0/{number}"), "1", false)
            .await;
        memory
            .deliver(
                &format!("zwave/Stranger/status_{number}/status"),
                format!(r#"{{"nodeId":{}}}"#, 300 + number),
                true,
            )
            .await;
    }
    settle().await;
    assert_eq!(house.devices().len(), 6);
    assert_eq!(device(&house, 3).state, "off");
}

#[tokio::test(start_paused = true)]
async fn a_message_cannot_turn_a_lamp_into_a_lock() {
    let (memory, house) = recorded(NAMED).await;
    let kind = device(&house, 2).kind;
    for topic in ["door_lock/endpoint_0/currentMode", "98/0/currentMode"] {
        let topic = format!("zwave/Kitchen/Switch_One/{topic}");
        memory
            .deliver(&topic, r#"{"time":1,"value":255}"#, false)
            .await;
    }
    settle().await;
    assert_eq!(device(&house, 2).kind, kind);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(
        memory.asked("getNodes") <= 4,
        "and the gateway is not asked for ever"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_named_like_the_number_of_another_is_not_confused_with_it() {
    let nodes = json!([switch(3, "5", ""), switch(5, "", "")]);
    let (memory, house) = with_nodes(nodes, "").await;
    let topic = "zwave/5/switch_binary/endpoint_0/currentValue";
    memory.deliver(topic, "true", false).await;
    settle().await;
    let states = || [device(&house, 3).state, device(&house, 5).state];
    assert_eq!(states(), ["off", "off"], "it could be both");
    memory
        .deliver("zwave/5/status", r#"{"value":true,"nodeId":3}"#, false)
        .await;
    memory.deliver(topic, "true", false).await;
    settle().await;
    assert_eq!(states(), ["on", "off"]);
}

#[tokio::test(start_paused = true)]
async fn many_devices_are_listed_quickly() {
    let nodes = (2..=1_001)
        .filter(|id| *id != 255)
        .map(|id| switch(id, &format!("Lamp {id}"), "Hall"));
    let (_, house) = with_nodes(nodes.collect(), "").await;
    let start = std::time::SystemTime::now();
    assert_eq!(house.devices().len(), 999);
    // Ten times the target, for busy machines.
    assert!(start.elapsed().unwrap() < Duration::from_millis(500));
    assert_eq!(access(&house).resolve("lamp 700", false).unwrap().id, 700);
}

#[tokio::test(start_paused = true)]
async fn an_oversized_reply_is_ignored() {
    let (memory, house) = recorded(NAMED).await;
    memory
        .deliver(
            &format!("{GATEWAY}/api/getNodes"),
            vec![b' '; 17 * 1024 * 1024],
            false,
        )
        .await;
    settle().await;
    assert_eq!(house.devices().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_command_to_a_removed_node_is_refused() {
    let (memory, house) = recorded(NAMED).await;
    let gone = device(&house, 6);
    memory
        .deliver(
            "zwave/_EVENTS/ZWAVE_GATEWAY-Zwave_Test/node/node_removed",
            r#"{"data":[{"id":6}]}"#,
            false,
        )
        .await;
    settle().await;
    let outcome = house.command(&gone, DeviceCommand::On).await;
    assert!(
        matches!(outcome, CommandOutcome::Refused { .. }),
        "{outcome:?}"
    );
    assert_eq!(memory.commands(), []);
}
