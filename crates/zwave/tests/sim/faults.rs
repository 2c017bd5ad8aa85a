//! The messages that follow a command when something goes wrong.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use toolgate_home::DeviceStatus;
use toolgate_mqtt::Mqtt;
use zwave::sim::{ApiFault, CommandCount, DeviceFaults, HousePlan, SimulatedHouse};
use zwave::{NodeId, ValueId};

use crate::{LIGHT, LOCK, SimulationFixture, faults, recorded_options, told};

const LOCK_NODE: u16 = 9;

#[tokio::test(start_paused = true)]
async fn a_lock_that_receives_a_command_twice_moves_once() {
    let stage = SimulationFixture::demo().await;
    let twice = faults(|faults| faults.receives_twice = true);
    stage.house.set_faults(LOCK_NODE, twice);
    let target = format!("{LOCK}/targetMode");
    stage.write(&target, "0", &[3_000]).await;
    stage.write(&target, "0", &[3_000]).await;
    assert_eq!(stage.house.commands(LOCK_NODE).moved, 1);
    assert!(stage.house.commands(LOCK_NODE).received > 1);
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_a_lock_has_its_outcome() {
    let target = told(&format!("{LOCK}/targetMode"), 0);
    let (open, shut) = (
        told(&format!("{LOCK}/currentMode"), 0),
        told(&format!("{LOCK}/currentMode"), 255),
    );
    let bolt = |state: &str| told(&format!("{LOCK}/boltStatus"), state);
    let echo = vec![target, open.clone()];
    let verified = vec![open, bolt("unlocked")];
    let twice = |lines: &[(String, Json)]| {
        let lines = lines.iter().flat_map(|line| [line.clone(), line.clone()]);
        lines.collect::<Vec<_>>()
    };
    let late = Duration::from_secs(31);
    // What is published within 0.2, 10 and 40 seconds, and how often the bolt moved.
    let none = Vec::new();
    for (name, wrong, told, moved) in [
        (
            "nothing",
            DeviceFaults::default(),
            [echo.clone(), verified.clone(), none.clone()],
            1,
        ),
        (
            "jams",
            faults(|f| f.jams = true),
            [echo.clone(), vec![shut, bolt("locked")], none.clone()],
            0,
        ),
        (
            "loses reports",
            faults(|f| f.loses_reports = true),
            [none.clone(), none.clone(), none.clone()],
            1,
        ),
        (
            "tells late",
            faults(|f| f.publish_delay = late),
            [
                none.clone(),
                none.clone(),
                [echo.clone(), verified.clone()].concat(),
            ],
            1,
        ),
        (
            "verified late",
            faults(|f| f.read_back_delay = Some(late)),
            [echo.clone(), none.clone(), verified.clone()],
            1,
        ),
        (
            "tells twice",
            faults(|f| f.publishes_twice = true),
            [twice(&echo), twice(&verified), none.clone()],
            1,
        ),
        (
            "dead",
            faults(|f| f.dead = true),
            [
                none.clone(),
                vec![crate::told("Hall/Front_Door/status", false)],
                none.clone(),
            ],
            0,
        ),
    ] {
        let stage = SimulationFixture::demo().await;
        stage.house.set_faults(LOCK_NODE, wrong);
        let seen = stage
            .write(&format!("{LOCK}/targetMode"), "0", &[200, 9_800, 30_000])
            .await;
        assert_eq!(seen, told, "{name}");
        assert_eq!(stage.house.commands(LOCK_NODE).moved, moved, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_device_comes_back_when_it_answers() {
    let stage = SimulationFixture::demo().await;
    let garage = 14;
    let status = |stage: &SimulationFixture| {
        let all = stage.house.snapshot();
        all.iter()
            .find(|device| device.id == garage)
            .unwrap()
            .status
    };
    assert_eq!(status(&stage), DeviceStatus::Dead);
    let ping = stage.ask("pingNode", json!([garage]), 5_000).await.unwrap();
    assert_eq!(ping["result"], json!(false));
    stage
        .house
        .set_faults(NodeId::try_from(garage).unwrap(), DeviceFaults::default());
    let ping = stage.ask("pingNode", json!([garage]), 5_000).await.unwrap();
    assert_eq!(ping["result"], json!(true));
    assert_eq!(status(&stage), DeviceStatus::Alive);
}

#[tokio::test(start_paused = true)]
async fn a_sleeping_device_receives_the_newest_command_when_it_wakes() {
    let stage = SimulationFixture::demo().await;
    let topic = "Bathroom/Radiator/thermostat_setpoint/endpoint_0/setpoint/1";
    assert_eq!(stage.write(topic, "19", &[10_000]).await, [[]]);
    assert_eq!(stage.write(topic, "20", &[10_000]).await, [[]]);
    stage.wait(300_000).await;
    let seen = stage.told();
    let status = "Bathroom/Radiator/status";
    assert_eq!(
        seen,
        [
            told(status, true),
            told(topic, 20),
            told(topic, 20),
            told(status, true)
        ]
    );
    assert_eq!(
        stage.house.commands(13),
        CommandCount {
            received: 1,
            moved: 1
        }
    );
}

#[tokio::test(start_paused = true)]
async fn a_newer_command_replaces_one_that_waits_for_the_radio() {
    let stage = SimulationFixture::demo().await;
    stage
        .write(
            "Garage/Garage_Light/switch_binary/endpoint_0/targetValue",
            "true",
            &[],
        )
        .await;
    for payload in ["true", "false", "on"] {
        stage
            .say(&format!("zwave/{LIGHT}/targetValue/set"), payload)
            .await;
    }
    stage.wait(10_000).await;
    assert_eq!(
        stage.house.commands(2),
        CommandCount {
            received: 1,
            moved: 1
        }
    );
}

#[tokio::test(start_paused = true)]
async fn a_retained_command_is_carried_out_by_the_next_gateway() {
    let stage = SimulationFixture::demo().await;
    let topic = format!("zwave/{LIGHT}/targetValue/set");
    let done = stage.wire.publish(&topic, "true".into(), true).await;
    assert_eq!(done, Ok(()));
    let mqtt = Arc::new(stage.wire.client());
    let next = SimulatedHouse::start(mqtt, HousePlan::demo(), recorded_options());
    stage.wait(2_000).await;
    assert_eq!(next.commands(2).moved, 1);
}

#[tokio::test(start_paused = true)]
async fn everything_is_announced_again_to_a_broker_that_lost_it() {
    let stage = SimulationFixture::demo().await;
    let before = stage.wire.kept();
    stage.wire.set_online(false);
    stage.wait(1_000).await;
    let light = ValueId::new(37, 0, "currentValue");
    assert!(stage.house.set_value(2, &light, json!(true)));
    stage.wait(1_000).await;
    stage.wire.set_online(true);
    stage.wait(1_000).await;
    let after = stage.wire.kept();
    assert!(before.keys().eq(after.keys()));
    let topic = format!("zwave/{LIGHT}/currentValue");
    let value = serde_json::from_slice::<Json>(&after[&topic]).unwrap();
    assert_eq!(
        value["value"],
        json!(true),
        "what happened in between is told"
    );
}

#[tokio::test(start_paused = true)]
async fn impossible_requests_are_refused() {
    let stage = SimulationFixture::demo().await;
    let light =
        json!({ "nodeId": 2, "commandClass": 37, "endpoint": 0, "property": "currentValue" });
    let dead =
        json!({ "nodeId": 14, "commandClass": 37, "endpoint": 0, "property": "currentValue" });
    let gone =
        json!({ "nodeId": 99, "commandClass": 37, "endpoint": 0, "property": "currentValue" });
    let works = |answer: Option<Json>| answer.map(|answer| answer["success"] == json!(true));
    assert_eq!(
        works(stage.ask("pollValue", json!([light]), 100).await),
        Some(true)
    );
    assert_eq!(
        works(stage.ask("pollValue", json!([gone]), 100).await),
        Some(false)
    );
    assert_eq!(
        works(stage.ask("pollValue", json!([dead]), 3_000).await),
        None,
        "not yet"
    );
    stage.wait(2_000).await;
    let lost = faults(|faults| faults.loses_answers = true);
    stage.house.set_faults(2, lost);
    assert_eq!(
        works(stage.ask("pollValue", json!([light]), 2_000).await),
        Some(false)
    );
    stage.house.set_api_fault(ApiFault::Refuses);
    assert_eq!(
        works(stage.ask("getNodes", json!([]), 100).await),
        Some(false)
    );
    stage.house.set_api_fault(ApiFault::Silent);
    assert_eq!(works(stage.ask("getNodes", json!([]), 60_000).await), None);
    stage.house.set_api_fault(ApiFault::None);
    assert_eq!(
        works(stage.ask("getNodes", json!([]), 100).await),
        Some(true)
    );
}
