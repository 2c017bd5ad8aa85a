//! The broker is down, dies, or hangs.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::brokers::{Kind, mosquitto_is_there, with_each_broker};
use crate::client::StdioClient;
use crate::fixture::{GUARD, HouseFixture, listed_device, wait_until_healthy};

const LIGHT: u16 = 2;

fn turn(action: &str) -> Value {
    json!({ "deviceName": "Kitchen Light", "action": action })
}

with_each_broker!(
    a_broker_that_starts_late_is_found,
    a_command_arrives_once_although_the_broker_is_killed,
    a_gateway_that_starts_late_is_found,
);

async fn a_broker_that_starts_late_is_found(kind: Kind) {
    let mut fixture = HouseFixture::demo(kind).await;
    fixture.broker.kill();
    let mut client = fixture.server_with(&[]).await;
    for (tool, arguments) in [
        ("list_zwave_devices", json!({})),
        ("control_zwave_device", turn("on")),
        ("get_device_sensor_data", json!({ "deviceName": "Bedroom" })),
    ] {
        let (failed, text, _) = client.call(tool, arguments).await;
        assert!(failed && text.contains("MQTT broker"), "{tool}: {text}");
    }
    fixture.broker.restart().await;
    wait_until_healthy(&mut client).await;
    let (failed, text, _) = client.call("control_zwave_device", turn("on")).await;
    assert!(!failed, "{text}");
    // The command that was refused before did not arrive late.
    assert_eq!(fixture.count(LIGHT).received, 1);
}

async fn a_command_arrives_once_although_the_broker_is_killed(kind: Kind) {
    let mut fixture = HouseFixture::demo(kind).await;
    let mut client = fixture.server().await;
    for round in 0..3 {
        let action = ["on", "off"][round % 2];
        let before = fixture.count(LIGHT).received;
        let ((_, text, _), ()) =
            tokio::join!(client.call("control_zwave_device", turn(action)), async {
                while fixture.count(LIGHT).received == before {
                    sleep(Duration::from_millis(1)).await;
                }
                fixture.broker.kill();
                fixture.broker.restart().await;
            });
        wait_until_healthy(&mut client).await;
        assert_eq!(fixture.count(LIGHT).received, before + 1, "{text}");
        // It arrived, whatever the answer said, and is known by now.
        assert_eq!(fixture.state("Kitchen Light"), action);
        assert_eq!(
            listed_device(&mut client, "Kitchen Light").await["state"],
            action,
            "{text}"
        );
    }
    let (failed, text, _) = client.call("control_zwave_device", turn("off")).await;
    assert!(!failed, "{text}");
}

async fn a_gateway_that_starts_late_is_found(kind: Kind) {
    let mut fixture = HouseFixture::empty(kind).await;
    let mut client = fixture.server_with(&[]).await;
    let (failed, text, _) = client.call("list_zwave_devices", json!({})).await;
    assert!(
        failed && text.contains("No Z-Wave gateway is known"),
        "{text}"
    );
    assert!(text.contains("Is zwave-js-ui running"), "{text}");
    fixture.start_house();
    wait_until_healthy(&mut client).await;
    assert_eq!(
        listed_device(&mut client, "Kitchen Light").await["state"],
        "off"
    );
}

async fn until_connected(client: &mut StdioClient, connected: bool) {
    let wait = async {
        loop {
            let (_, _, fields) = client.call("check_zwave_health", json!({})).await;
            if fields["brokerConnected"] == connected {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(GUARD * 3, wait).await.expect("it never found out");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_broker_is_detected_and_survived() {
    if !mosquitto_is_there() {
        return;
    }
    let fixture = HouseFixture::demo(Kind::Mosquitto).await;
    let mut client = fixture.server().await;
    fixture.broker.freeze(true);
    let unlock = json!({ "deviceName": "Front Door", "action": "unlock" });
    let (failed, text, _) = client.call("control_lock", unlock.clone()).await;
    assert!(failed && text.contains("It is not known whether"), "{text}");
    assert!(text.contains("Last known state: locked"), "{text}");
    until_connected(&mut client, false).await;
    let (failed, text, _) = client.call("control_lock", unlock).await;
    assert!(
        failed && text.contains("Nothing was sent, and nothing will be."),
        "{text}"
    );
    fixture.broker.freeze(false);
    wait_until_healthy(&mut client).await;
    // The first command may still have been in the broker's socket.
    sleep(Duration::from_millis(1500)).await;
    let count = fixture.count(9);
    assert!(count.received <= 1 && count.moved <= 1, "{count:?}");
    let (failed, text, _) = client.call("control_zwave_device", turn("on")).await;
    assert!(!failed, "{text}");
}
