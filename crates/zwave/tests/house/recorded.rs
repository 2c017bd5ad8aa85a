//! Recorded traffic of the real program in all its settings.

use std::time::Duration;

use serde_json::json;
use toolgate_home::{CommandOutcome, DeviceCommand, DeviceKind, DeviceStatus, Home, ReadingSource};

use crate::gateway_double::{
    GATEWAY, GatewayDouble, device, nodes, open, recorded, settle, with_nodes,
};

const NAMED: &str = include_str!("../data/start-named-time-value.txt");
const COMMANDS: &str = include_str!("../data/commands-named-time-value.txt");
const WHOLE: &str = include_str!("../data/start-numbered-whole.txt");
const RAW: &str = include_str!("../data/start-numbered-raw.txt");
const REPORTS: &str = include_str!("../data/reports-and-death-raw.txt");
const RETAINED: &str = include_str!("../data/retained-named-time-value.txt");

#[tokio::test(start_paused = true)]
async fn the_house_is_known_from_the_list_of_nodes() {
    let (_, house) = recorded("").await;
    let told = house.devices().into_iter().map(|device| {
        assert_eq!((device.status, device.stale), (DeviceStatus::Alive, false));
        (
            device.id,
            device.name,
            device.location,
            device.kind,
            device.state,
        )
    });
    let expected = [
        (3, "Dimmer Two", "", DeviceKind::Dimmer, "off"),
        (4, "Env Sensor", "", DeviceKind::Sensor, "21.6 °C"),
        (2, "Switch One", "Kitchen", DeviceKind::Switch, "off"),
        (5, "nodeID_5", "", DeviceKind::Sensor, "closed"),
        (6, "nodeID_6", "", DeviceKind::Switch, "on"),
        (
            8,
            "nodeID_8",
            "",
            DeviceKind::Thermostat,
            "off, set to 20 °C",
        ),
    ]
    .map(|(node, name, location, kind, state)| {
        (
            node,
            name.to_owned(),
            location.to_owned(),
            kind,
            state.to_owned(),
        )
    });
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn readings_have_label_unit_and_words() {
    let (_, house) = recorded(NAMED).await;
    let words = |node| {
        let readings = device(&house, node).readings.into_iter();
        let words = readings.map(|one| format!("{}: {} ({:?})", one.label, one.words, one.source));
        words.collect::<Vec<_>>()
    };
    assert_eq!(
        words(4),
        [
            "Air temperature: 21.6 °C (Report)",
            "Humidity: 45 % (Report)",
            "Illuminance: 120 Lux (Report)",
        ]
    );
    assert_eq!(
        words(5),
        [
            "Door/Window: closed (Report)",
            "Motion: not detected (Report)",
            "Motion sensor status: idle (Report)",
        ]
    );
    assert_eq!(
        words(6),
        [
            "Electric Consumption: 12.34 kWh (Report)",
            "Electric Consumption: 56.7 W (Report)",
        ]
    );
}

// The start of every setting, live, and where its commands must go.
#[tokio::test(start_paused = true)]
async fn commands_go_to_the_topic_that_the_gateway_uses() {
    for (lines, topics) in [
        (
            NAMED,
            [
                "zwave/Kitchen/Switch_One/switch_binary/endpoint_0/targetValue/set",
                "zwave/Dimmer_Two/switch_multilevel/endpoint_0/targetValue/set",
                "zwave/nodeID_6/switch_binary/endpoint_0/targetValue/set",
                "zwave/nodeID_8/thermostat_mode/endpoint_0/mode/set",
                "zwave/nodeID_8/thermostat_setpoint/endpoint_0/setpoint/1/set",
            ],
        ),
        (
            WHOLE,
            [
                "zwave/Kitchen/Switch_One/37/0/targetValue/set",
                "zwave/Dimmer_Two/38/0/targetValue/set",
                "zwave/nodeID_6/37/0/targetValue/set",
                "zwave/nodeID_8/64/0/mode/set",
                "zwave/nodeID_8/67/0/setpoint/1/set",
            ],
        ),
        (
            RAW,
            [
                "zwave/Kitchen/2/37/0/targetValue/set",
                "zwave/3/38/0/targetValue/set",
                "zwave/6/37/0/targetValue/set",
                "zwave/8/64/0/mode/set",
                "zwave/8/67/0/setpoint/1/set",
            ],
        ),
    ] {
        // With the topics of every value seen, and with those of one node only, so that the rest
        // must be inferred.
        let one = lines.lines().filter(|line| line.contains("Kitchen/"));
        for lines in [lines.to_owned(), one.collect::<Vec<_>>().join("\n")] {
            let (memory, house) = recorded(&lines).await;
            for (node, command) in [
                (2, DeviceCommand::On),
                (3, DeviceCommand::Dim(50)),
                (6, DeviceCommand::Off),
                (8, DeviceCommand::Mode("heat".to_owned())),
                (8, DeviceCommand::Setpoint(21.0, None)),
            ] {
                house.command(&device(&house, node), command).await;
            }
            let sent = memory.commands();
            let sent = sent.iter().map(|(topic, _, _)| topic.as_str());
            assert_eq!(sent.collect::<Vec<_>>(), topics);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_recorded_form_describes_the_same_house() {
    let mut houses = Vec::new();
    for lines in [NAMED, WHOLE, RAW] {
        let (_, house) = recorded(lines).await;
        let devices = house.devices().into_iter();
        houses.push(devices.map(|one| (one.id, one.state)).collect::<Vec<_>>());
    }
    assert_eq!(houses[0], houses[1]);
    assert_eq!(houses[0], houses[2]);
}

#[tokio::test(start_paused = true)]
async fn reports_keep_the_house_current() {
    let (memory, house) = recorded(RAW).await;
    memory.replay(REPORTS).await;
    settle().await;
    assert_eq!(device(&house, 4).state, "30.5 °C");
    assert_eq!(device(&house, 2).state, "off");
    assert_eq!(device(&house, 3).state, "on at 25 %");
    assert_eq!(device(&house, 6).status, DeviceStatus::Dead);
    assert_eq!(house.health().dead, 1);
}

#[tokio::test(start_paused = true)]
async fn recorded_commands_have_their_recorded_outcomes() {
    let (memory, house) = recorded(NAMED).await;
    memory.replay(COMMANDS).await;
    settle().await;
    assert_eq!(device(&house, 2).state, "on");
    assert_eq!(device(&house, 3).state, "on at 50 %", "150 moved nothing");
    assert_eq!(device(&house, 4).state, "21.8 °C");
}

#[tokio::test(start_paused = true)]
async fn without_the_gateway_devices_are_stale() {
    let memory = GatewayDouble::new();
    let house = open(&memory);
    memory.replay(RETAINED).await;
    memory
        .deliver(&format!("{GATEWAY}/status"), r#"{"value":false}"#, true)
        .await;
    settle().await;
    let devices = house.devices();
    let names = devices
        .iter()
        .map(|one| (one.id, one.name.as_str(), one.state.as_str()));
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            (3, "Dimmer Two", "off"),
            (4, "Env Sensor", "21.6"),
            (2, "Switch One", "off"),
            (5, "nodeID_5", "closed"),
            (6, "nodeID_6", "on"),
            (8, "nodeID_8", "set to 20"),
        ]
    );
    assert!(devices.iter().all(|one| one.stale));
    let reading = &device(&house, 4).readings[0];
    assert_eq!(reading.source, ReadingSource::Retained);
    assert!(reading.at.is_some());
    assert_eq!(device(&house, 2).location, "Kitchen");
    let outcome = house.command(&device(&house, 2), DeviceCommand::On).await;
    assert!(
        matches!(outcome, CommandOutcome::Offline { .. }),
        "{outcome:?}"
    );
    assert_eq!(memory.commands(), []);
}

#[tokio::test(start_paused = true)]
async fn nodes_are_requested_again_when_they_change() {
    let (memory, house) = with_nodes(nodes(), NAMED).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let asked = memory.asked("getNodes");
    for event in ["node_added", "node_ready", "node_interview_completed"] {
        let topic = format!("zwave/_EVENTS/ZWAVE_GATEWAY-Zwave_Test/node/{event}");
        memory
            .deliver(&topic, r#"{"data":[{"id":9}]}"#, false)
            .await;
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(memory.asked("getNodes"), asked + 1, "once for all of them");
    // Removed at once, without waiting for the list.
    let topic = "zwave/_EVENTS/ZWAVE_GATEWAY-Zwave_Test/node/node_removed";
    memory.deliver(topic, r#"{"data":[{"id":6}]}"#, false).await;
    settle().await;
    assert!(house.device(6).is_none());
    // Nothing else triggers a request, because values and statistics arrive all the time.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let asked = memory.asked("getNodes");
    memory
        .replay(
            NAMED
                .lines()
                .filter(|line| line.contains("endpoint_0"))
                .collect::<Vec<_>>()
                .join("\n")
                .as_str(),
        )
        .await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(memory.asked("getNodes"), asked);
}

#[tokio::test(start_paused = true)]
async fn scenes_are_listed_and_started() {
    let (memory, house) = recorded(NAMED).await;
    memory.answer(
        "_getScenes",
        20,
        json!([{ "sceneid": 3, "label": "Dinner", "values": [] }]),
    );
    memory.answer("_activateScene", 20, json!(true));
    let scenes = house.scenes().await.unwrap();
    assert_eq!((scenes[0].id, scenes[0].label.as_str()), (3, "Dinner"));
    let outcome = house.activate_scene(&scenes[0]).await;
    assert_eq!(
        outcome,
        CommandOutcome::Done {
            state: "started".to_owned()
        }
    );
    assert_eq!(memory.asked("_activateScene"), 1);
}
