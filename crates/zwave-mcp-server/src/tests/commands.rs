//! Commands: what is sent, and what is reported.

use serde_json::json;
use zwave::sim::DeviceFaults;

use super::*;

const LIGHT: &str = "zwave/Kitchen/Kitchen_Light/switch_binary/endpoint_0/targetValue/set";
const LAMP: &str =
    "zwave/Living_Room/Living_Room_Lamp/switch_multilevel/endpoint_0/targetValue/set";

#[tokio::test(start_paused = true)]
async fn a_command_is_sent_once_and_its_outcome_reported() {
    for (name, action, level, told, sent) in [
        (
            "Kitchen Light",
            "on",
            None,
            "Kitchen Light in Kitchen is now on.",
            format!("{LIGHT} {{\"value\":true}}"),
        ),
        (
            "the kitchen light",
            "on",
            Some(70),
            "Kitchen Light in Kitchen is now on.",
            format!("{LIGHT} {{\"value\":true}}"),
        ),
        (
            "Living Room Lamp",
            "off",
            None,
            "Living Room Lamp in Living Room is now off.",
            format!("{LAMP} {{\"value\":0}}"),
        ),
        (
            "living room lamp",
            "dim",
            Some(30),
            "Living Room Lamp in Living Room is now on at 30 %.",
            format!("{LAMP} {{\"value\":30}}"),
        ),
        (
            "living room lamp",
            "dim",
            Some(100),
            "Living Room Lamp in Living Room is now on at 100 %.",
            format!("{LAMP} {{\"value\":99}}"),
        ),
        (
            "living room lamp",
            "on",
            Some(45),
            "Living Room Lamp in Living Room is now on at 45 %.",
            format!("{LAMP} {{\"value\":45}}"),
        ),
    ] {
        let fixture = fixture().await;
        let mut arguments = json!({ "deviceName": name, "action": action });
        if let Some(level) = level {
            arguments["level"] = level.into();
        }
        let (text, fields) = fixture
            .call("control_zwave_device", arguments)
            .await
            .unwrap();
        assert_eq!(text, told);
        assert_eq!(fixture.commands(), [sent]);
        assert_eq!(fields["outcome"], "done");
        assert_eq!(
            fields["state"],
            fixture.state(fields["device"].as_str().unwrap())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn impossible_commands_are_refused_before_anything_is_sent() {
    let fixture = fixture().await;
    for (arguments, told) in [
        (
            json!({ "deviceName": "Kichen Light", "action": "on" }),
            "No device is called 'Kichen Light'. Did you mean Kitchen Light in Kitchen? list_zwave_devices shows all names.",
        ),
        (
            json!({ "deviceName": "light", "action": "on" }),
            "'light' could be any of several devices: ",
        ),
        (
            json!({ "deviceName": "Living Room", "action": "off" }),
            "'Living Room' could be any of several devices: ",
        ),
        (
            json!({ "deviceName": "Kitchen Light", "action": "dim", "level": 5 }),
            "'Kitchen Light' is a switch and can't be dimmed.",
        ),
        (
            json!({ "deviceName": "Climate Sensor", "action": "on" }),
            "'Climate Sensor' is a sensor and can't be turned on or off.",
        ),
        (
            json!({ "deviceName": "Front Door", "action": "off" }),
            "'Front Door' is a lock and can't be turned on or off.",
        ),
        (
            json!({ "deviceName": "Bedside Lamp", "action": "dim" }),
            "Invalid parameters: 'level' must be given for the action dim, from 0 to 100",
        ),
        (
            json!({ "deviceName": "Bedside Lamp", "action": "on", "level": 0 }),
            "Invalid parameters: 'level' must not be 0 for the action on: use off",
        ),
        (
            json!({ "deviceName": "Bedside Lamp", "action": "dim", "level": 101 }),
            "Invalid parameters: ",
        ),
        (
            json!({ "deviceName": "Bedside Lamp", "action": "explode" }),
            "Invalid parameters: ",
        ),
        (
            json!({ "deviceName": "", "action": "on" }),
            "Invalid parameters: ",
        ),
    ] {
        let error = fixture
            .error("control_zwave_device", arguments.clone())
            .await;
        assert!(error.starts_with(told), "{arguments}: {error}");
    }
    assert_eq!(fixture.commands(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_thermostat_is_set_by_name_by_room_or_as_the_only_one() {
    let set = "zwave/Living_Room/Thermostat/thermostat_setpoint/endpoint_0/setpoint/1/set";
    for (arguments, sent) in [
        (
            json!({ "deviceName": "Thermostat", "temperature": 19.5 }),
            format!("{set} {{\"value\":19.5}}"),
        ),
        (
            json!({ "deviceName": "living room", "temperature": 20 }),
            format!("{set} {{\"value\":20}}"),
        ),
        (
            json!({ "deviceName": "Thermostat", "temperature": 68, "unit": "fahrenheit" }),
            format!("{set} {{\"value\":20}}"),
        ),
    ] {
        let fixture = fixture().await;
        let text = fixture.text("set_thermostat", arguments).await;
        assert!(
            text.starts_with("Thermostat in Living Room is now heat, set to "),
            "{text}"
        );
        assert_eq!(fixture.commands(), [sent]);
    }
    let fixture = fixture().await;
    let several = fixture
        .error("set_thermostat", json!({ "temperature": 20 }))
        .await;
    assert!(
        several.contains("Radiator in Bathroom or Thermostat in Living Room"),
        "{several}"
    );
    let mut plan = HousePlan::demo();
    plan.nodes.retain(|node| node.name != "Radiator");
    let fixture = fixture_of(plan, false).await;
    fixture
        .text("set_thermostat", json!({ "temperature": 20 }))
        .await;
    assert_eq!(fixture.commands().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_mode_comes_before_its_temperature() {
    let fixture = fixture().await;
    let arguments = json!({ "deviceName": "Thermostat", "temperature": 24, "mode": "Cool" });
    let text = fixture.text("set_thermostat", arguments).await;
    assert_eq!(text, "Thermostat in Living Room is now cool, set to 24 °C.");
    let commands = fixture.commands();
    assert_eq!(commands.len(), 2);
    assert!(
        commands[0].contains("/thermostat_mode/") && commands[1].contains("/setpoint/"),
        "{commands:?}"
    );
    for (arguments, told) in [
        (
            json!({ "deviceName": "Thermostat" }),
            "Invalid parameters: 'temperature' or 'mode' must be given",
        ),
        (
            json!({ "deviceName": "Thermostat", "mode": "party", "temperature": 20 }),
            "'Thermostat' has no such mode.",
        ),
        (
            json!({ "deviceName": "Thermostat", "temperature": 140 }),
            "'Thermostat' can be set from ",
        ),
        (
            json!({ "deviceName": "Kitchen", "temperature": 20 }),
            "'Kitchen' could be any of several devices: ",
        ),
        (
            json!({ "deviceName": "Kitchen Light", "temperature": 20 }),
            "'Kitchen Light' is a switch and has no temperature to set.",
        ),
    ] {
        let error = fixture.error("set_thermostat", arguments.clone()).await;
        assert!(error.starts_with(told), "{arguments}: {error}");
    }
    assert_eq!(fixture.commands().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_command_to_a_sleeping_device_waits_until_it_wakes() {
    let fixture = fixture().await;
    let (text, fields) = fixture
        .call(
            "set_thermostat",
            json!({ "deviceName": "Radiator", "temperature": 18 }),
        )
        .await
        .unwrap();
    assert!(
        text.starts_with("Radiator in Bathroom sleeps. ") && text.contains("when the device wakes"),
        "{text}"
    );
    assert_eq!(fields["outcome"], "waiting");
    tokio::time::sleep(Duration::from_secs(400)).await;
    assert_eq!(fixture.state("Radiator"), "heat, set to 18 °C");
    assert_eq!(fixture.commands().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lock_moves_only_where_it_is_allowed_and_by_its_exact_name() {
    let off = fixture().await;
    let unlock = |name: &str| json!({ "deviceName": name, "action": "unlock" });
    assert!(
        off.error("control_lock", unlock("Front Door"))
            .await
            .contains("not found")
    );
    let fixture = fixture_with_locks().await;
    for name in ["Front", "the front door", "Hall", "lock", "node 9"] {
        let error = fixture.error("control_lock", unlock(name)).await;
        assert!(error.starts_with("No device is called"), "{error}");
    }
    let error = fixture.error("control_lock", unlock("Balcony Door")).await;
    assert!(error.contains("can't be locked or unlocked"), "{error}");
    assert_eq!(fixture.commands(), [""; 0]);
    let text = fixture.text("control_lock", unlock("front door")).await;
    assert_eq!(text, "Front Door in Hall is now unlocked.");
    assert_eq!(fixture.sim.commands(9).moved, 1);
    assert_eq!(fixture.commands().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_scene_is_started_by_its_name() {
    let fixture = fixture().await;
    let (text, fields) = fixture
        .call("activate_scene", json!({ "sceneName": "movie night" }))
        .await
        .unwrap();
    assert!(
        text.starts_with("The gateway started the scene 'Movie Night'."),
        "{text}"
    );
    assert_eq!(fields["outcome"], "started");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(fixture.state("Living Room Lamp"), "on at 15 %");
    assert_eq!(
        fixture
            .error("activate_scene", json!({ "sceneName": "Movie Nite" }))
            .await,
        "No scene is called 'Movie Nite'. Did you mean 'Movie Night'? The scenes are: Movie Night, Good Night."
    );
}

#[tokio::test(start_paused = true)]
async fn a_scene_that_moves_a_lock_needs_locks_to_be_allowed() {
    let mut plan = HousePlan::demo();
    let write = json!({ "node": 9, "commandClass": 98, "property": "targetMode", "value": 0 });
    plan.scenes[0]
        .writes
        .push(serde_json::from_value(write).unwrap());
    for locks in [false, true] {
        let fixture = fixture_of(plan.clone(), locks).await;
        let answer = fixture
            .call("activate_scene", json!({ "sceneName": "Movie Night" }))
            .await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(answer.is_ok(), locks, "{answer:?}");
        assert_eq!(
            fixture.state("Front Door"),
            if locks { "unlocked" } else { "locked" }
        );
        if let Err(error) = answer {
            assert!(error.contains("ZWAVE_ALLOW_LOCKS=1"), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_device_that_falls_back_fails_the_command() {
    let fixture = fixture().await;
    let mut faults = DeviceFaults::default();
    faults.jams = true;
    fixture.sim.set_faults(2, faults);
    let error = fixture
        .error(
            "control_zwave_device",
            json!({ "deviceName": "Kitchen Light", "action": "on" }),
        )
        .await;
    assert!(error.contains("did not follow it"), "{error}");
}
