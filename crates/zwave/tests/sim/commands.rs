//! The messages that follow a command.

use serde_json::json;
use zwave::sim::{CommandCount, HousePlan, SimulationOptions, TopicForm};

use crate::{LIGHT, LOCK, SimulationFixture, recorded_options, told};

const LAMP: &str = "Living_Room/Living_Room_Lamp/switch_multilevel/endpoint_0";

#[tokio::test(start_paused = true)]
async fn a_switch_is_shown_at_once_and_verified_a_second_later() {
    let stage = SimulationFixture::demo().await;
    let target = format!("{LIGHT}/targetValue");
    let seen = stage
        .write(&target, "true", &[79, 2, 1_080, 20, 60_000])
        .await;
    let current = told(&format!("{LIGHT}/currentValue"), true);
    assert_eq!(
        seen,
        [
            vec![],
            vec![told(&target, true), current.clone()],
            vec![],
            vec![current],
            vec![]
        ]
    );
    assert_eq!(
        stage.house.commands(2),
        CommandCount {
            received: 1,
            moved: 1
        }
    );
    assert_eq!(stage.house.snapshot()[0].state, "on");
}

#[tokio::test(start_paused = true)]
async fn an_invalid_level_is_published_only_as_the_target() {
    let stage = SimulationFixture::demo().await;
    let target = format!("{LAMP}/targetValue");
    let seen = stage.write(&target, r#"{"value":150}"#, &[100]).await;
    assert_eq!(seen, [[told(&target, 150)]]);
    assert_eq!(
        stage.house.commands(4),
        CommandCount {
            received: 1,
            moved: 0
        }
    );
}

#[tokio::test(start_paused = true)]
async fn the_target_of_a_dimmer_keeps_its_old_time() {
    let stage = SimulationFixture::demo().await;
    stage.wait(5_000).await;
    stage.lines();
    stage
        .say(&format!("zwave/{LAMP}/targetValue/set"), "25")
        .await;
    stage.wait(100).await;
    let lines = stage.lines();
    let time = |property: &str| {
        let topic = format!("zwave/{LAMP}/{property}");
        let line = lines.iter().find(|line| line.topic == topic).unwrap();
        line.json()["time"].as_u64().unwrap()
    };
    assert!(time("currentValue") - time("targetValue") > 5_000);
}

#[tokio::test(start_paused = true)]
async fn on_returns_to_the_last_level_which_is_known_when_read_back() {
    let stage = SimulationFixture::demo().await;
    let target = format!("{LAMP}/targetValue");
    stage.write(&target, "0", &[6_000]).await;
    let seen = stage.write(&target, "255", &[100, 6_000]).await;
    assert_eq!(seen[0], [told(&target, 255)]);
    assert!(seen[1].contains(&told(&format!("{LAMP}/currentValue"), 60)));
}

#[tokio::test(start_paused = true)]
async fn invalid_values_are_ignored() {
    let stage = SimulationFixture::demo().await;
    let setpoint = "Living_Room/Thermostat/thermostat_setpoint/endpoint_0/setpoint/1";
    for (topic, payload) in [
        (format!("{LIGHT}/targetValue"), "maybe"),
        (format!("{LIGHT}/targetValue"), ""),
        (format!("{LIGHT}/targetValue"), "{"),
        (
            format!("{LIGHT}/targetValue"),
            r#"{"value":{"value":true}}"#,
        ),
        (format!("{LIGHT}/currentValue"), "true"),
        (format!("{LOCK}/targetMode"), "7"),
        (setpoint.to_owned(), "99"),
        (setpoint.to_owned(), "\"warm\""),
        (
            "Living_Room/Thermostat/thermostat_mode/endpoint_0/mode".to_owned(),
            "9",
        ),
        (
            "Attic/Ghost/switch_binary/endpoint_0/targetValue".to_owned(),
            "true",
        ),
    ] {
        let seen = stage.write(&topic, payload, &[10_000]).await;
        assert_eq!(seen, [[]], "{topic} {payload}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_name_is_known_once_something_was_published_there() {
    let stage = SimulationFixture::demo().await;
    let renamed = stage.ask("setNodeName", json!([2, "Ceiling"]), 1).await;
    assert_eq!(renamed.unwrap()["result"], json!(true));
    let new = "Kitchen/Ceiling/switch_binary/endpoint_0/targetValue";
    assert_eq!(stage.write(new, "true", &[5_000]).await, [[]]);
    let value =
        json!({ "nodeId": 2, "commandClass": 37, "endpoint": 0, "property": "targetValue" });
    let written = stage.ask("writeValue", json!([value, true]), 100).await;
    assert_eq!(written.unwrap()["result"], json!({ "status": 254 }));
    let seen = stage.write(new, "false", &[100]).await;
    assert_eq!(seen[0][0], told(new, false));
    let kept = stage.wire.kept();
    let old = format!("zwave/{LIGHT}/targetValue");
    assert!(kept.contains_key(&old), "the old one stays with the broker");
}

#[tokio::test(start_paused = true)]
async fn broadcasts_are_understood_only_in_the_form_of_the_topics() {
    for (topics, suffix, moved) in [
        (TopicForm::ValueId, "37/0/targetValue", 1),
        (TopicForm::Named, "37/0/targetValue", 0),
        (TopicForm::Named, "switch_binary/endpoint_0/targetValue", 1),
    ] {
        let options = SimulationOptions {
            topics,
            ..recorded_options()
        };
        let stage = SimulationFixture::new(HousePlan::demo(), options).await;
        let topic = format!("_CLIENTS/ZWAVE_GATEWAY-Zwave_Test/broadcast/{suffix}");
        let seen = stage.write(&topic, r#"{"value":true}"#, &[2_000]).await;
        assert_eq!(seen[0][0], told(&topic, true), "it is always repeated");
        for light in [2, 12] {
            assert_eq!(stage.house.commands(light).moved, moved, "{suffix}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_scene_sets_its_values() {
    let stage = SimulationFixture::demo().await;
    let scenes = stage.ask("_getScenes", json!([]), 1).await.unwrap();
    assert_eq!(scenes["result"][0]["label"], json!("Movie Night"));
    assert_eq!(scenes["result"][1]["values"][5]["propertyKey"], json!("1"));
    let started = stage
        .ask("_activateScene", json!([1]), 1_000)
        .await
        .unwrap();
    assert_eq!(started["result"], json!(true));
    assert_eq!(stage.house.snapshot()[2].state, "on at 15 %");
    let unknown = stage.ask("_activateScene", json!([7]), 1).await.unwrap();
    assert_eq!(unknown["success"], json!(false));
}

#[tokio::test(start_paused = true)]
async fn observers_receive_changes() {
    let stage = SimulationFixture::demo().await;
    let mut changes = stage.house.changes();
    stage
        .write(&format!("{LIGHT}/targetValue"), "true", &[2_000])
        .await;
    let change = changes.try_recv().unwrap();
    assert_eq!(
        (change.device.name.as_str(), change.device.state.as_str()),
        ("Kitchen Light", "on")
    );
    assert_eq!(
        (change.before, change.after),
        (Some(json!(false)), json!(true))
    );
    assert!(
        changes.try_recv().is_err(),
        "once, however often it is told"
    );
}
