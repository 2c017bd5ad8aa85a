//! Tests the access list of `docs/zwave.md` as printed.

use std::process::Command;

use serde_json::json;
use zwave::sim::{HousePlan, SimulationOptions};

use crate::brokers::{RunningBroker, mosquitto_is_there, readable};
use crate::fixture::{BrokerObserver, HouseFixture, listed_device, wait_until_healthy};
use toolgate_mqtt::Mqtt;

const DOCUMENT: &str = include_str!("../../../../docs/zwave.md");
const WORD: &str = "sesame-1";

fn list() -> &'static str {
    let (_, after) = DOCUMENT.split_once("```acl\n").unwrap();
    after.split_once("```").unwrap().0
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_access_list_permits_lights_but_not_locks() {
    if !mosquitto_is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("acl"), list()).unwrap();
    for (flags, user) in [(&["-b", "-c"][..], "gateway"), (&["-b"], "assistant")] {
        let mut made = Command::new("mosquitto_passwd");
        made.args(flags).arg(file("passwords")).args([user, WORD]);
        assert!(made.status().unwrap().success());
    }
    for path in [folder.path().to_owned(), file("acl"), file("passwords")] {
        readable(&path);
    }
    let lines = ["acl", "passwords"].map(|name| file(name).display().to_string());
    let lines = format!("acl_file {}\npassword_file {}", lines[0], lines[1]);
    let mut fixture = HouseFixture {
        broker: RunningBroker::mosquitto(&lines).await,
        house: None,
        plan: HousePlan::demo(),
        options: SimulationOptions {
            life: false,
            ..SimulationOptions::default()
        },
        gateway: Some(("gateway", WORD)),
    };
    fixture.start_house();

    let user = [("MQTT_USERNAME", "assistant"), ("MQTT_PASSWORD", WORD)];
    let mut client = fixture.server_with(&user).await;
    wait_until_healthy(&mut client).await;
    for (tool, arguments) in [
        (
            "control_zwave_device",
            json!({ "deviceName": "Kitchen Light", "action": "on" }),
        ),
        (
            "control_zwave_device",
            json!({ "deviceName": "Bedside Lamp", "action": "dim", "level": 30 }),
        ),
        (
            "set_thermostat",
            json!({ "deviceName": "Thermostat", "temperature": 19, "mode": "heat" }),
        ),
    ] {
        let (failed, text, _) = client.call(tool, arguments).await;
        assert!(!failed, "{text}");
    }
    assert_eq!(fixture.state("Kitchen Light"), "on");
    let unlock = json!({ "deviceName": "Front Door", "action": "unlock" });
    let (failed, text, _) = client.call("control_lock", unlock).await;
    assert!(failed, "{text}");
    assert_eq!(fixture.count(9).received, 0);
    let scene = json!({ "sceneName": "Movie Night" });
    let (failed, text, _) = client.call("activate_scene", scene).await;
    assert!(failed, "{text}");

    // An anonymous client can neither impersonate the lock nor command it.
    let stranger = BrokerObserver::connected(&fixture).await;
    for topic in ["targetMode/set", "currentMode"] {
        let topic = format!("zwave/Hall/Front_Door/door_lock/endpoint_0/{topic}");
        let put = stranger.publish(&topic, "0".into(), true).await;
        assert!(put.is_err(), "{topic}");
    }
    assert_eq!(fixture.count(9).received, 0);
    assert_eq!(
        listed_device(&mut client, "Front Door").await["state"],
        "locked"
    );
}
