//! Hostile messages and device names.

use futures::{StreamExt, stream};
use serde_json::{Value, json};
use zwave::sim::{HousePlan, SimulationOptions};

use crate::brokers::{Kind, with_each_broker};
use crate::fixture::{BrokerObserver, HouseFixture, eventually, listed_device, wait_until_healthy};

const LOCK: &str = "zwave/Hall/Front_Door/door_lock/endpoint_0/currentMode";

with_each_broker!(
    garbage_adds_and_removes_no_devices,
    device_names_cannot_become_topics,
    tools_work_during_a_flood_of_messages,
);

async fn garbage_adds_and_removes_no_devices(kind: Kind) {
    let fixture = HouseFixture::demo(kind).await;
    let observer = BrokerObserver::of(&fixture).await;
    let mut client = fixture.server().await;
    let deep = "[".repeat(50_000);
    let long = "9".repeat(70_000);
    for payload in [
        "not json",
        "NaN",
        "{\"value\":NaN}",
        "{\"value\":1e999}",
        "{\"value\":",
        "\u{0}",
        "null",
        "{}",
        &deep,
        &long,
        "{\"value\":\"locked\"}",
        "{\"value\":{\"value\":255}}",
        "{\"value\":3}",
    ] {
        observer.put(LOCK, payload, false).await;
        observer
            .put(
                "zwave/_CLIENTS/ZWAVE_GATEWAY-Simulated_House/api/getNodes",
                payload,
                false,
            )
            .await;
        observer
            .put(
                "zwave/_EVENTS/ZWAVE_GATEWAY-Simulated_House/node/node_value_updated",
                payload,
                false,
            )
            .await;
        observer
            .put("zwave/Hall/Front_Door/nodeinfo", payload, false)
            .await;
        observer.put("zwave/driver/status2", payload, false).await;
    }
    // Arrives after everything above.
    observer
        .put(
            "zwave/Kitchen/Kitchen_Light/switch_binary/endpoint_0/currentValue",
            "{\"value\":true}",
            false,
        )
        .await;
    let seen = async {
        while listed_device(&mut client, "Kitchen Light").await["state"] != "on" {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::fixture::GUARD, seen)
        .await
        .unwrap();
    let state = listed_device(&mut client, "Front Door").await["state"].clone();
    assert_ne!(state, "unlocked");
    let (failed, text, _) = client
        .call(
            "control_lock",
            json!({ "deviceName": "Front Door", "action": "unlock" }),
        )
        .await;
    assert!(!failed, "{text}");
    assert_eq!(fixture.state("Front Door"), "unlocked");
    assert_eq!(client.leave().await.0.code(), Some(0));
}

async fn device_names_cannot_become_topics(kind: Kind) {
    let switch = json!([{ "switch": { "on": false } }]);
    let lock = json!([{ "lock": { "locked": true } }]);
    let long = "x".repeat(70_000);
    let names: [(&str, &Value); 8] = [
        ("a/targetValue/set", &switch),
        ("+", &switch),
        ("#", &switch),
        ("nul\u{0}\n- All (lock): open", &switch),
        (&long, &switch),
        ("Lamp", &switch),
        ("Lamp", &switch),
        // The second letter is Cyrillic.
        ("Dоor", &lock),
    ];
    let nodes = names
        .iter()
        .zip(2..)
        .map(|((name, parts), id)| json!({ "id": id, "name": name, "parts": parts }));
    let plan = json!({ "nodes": nodes.collect::<Vec<_>>() }).to_string();
    let options = SimulationOptions {
        life: false,
        ..SimulationOptions::default()
    };
    let fixture = HouseFixture::with(kind, HousePlan::from_json(&plan).unwrap(), options).await;
    let mut client = fixture.server_with(&[]).await;
    wait_until_healthy(&mut client).await;
    let observer = BrokerObserver::of(&fixture).await;
    for said in [
        "+",
        "#",
        "a/targetValue/set",
        "../Lamp",
        "nul - All (lock): open",
        "zwave/#",
    ] {
        // It may succeed or fail, but must not reach another device or crash the server.
        client
            .call(
                "control_zwave_device",
                json!({ "deviceName": said, "action": "on" }),
            )
            .await;
    }
    let (failed, text, _) = client
        .call(
            "control_zwave_device",
            json!({ "deviceName": "Lamp", "action": "on" }),
        )
        .await;
    assert!(failed && text.contains("could be any of several"), "{text}");
    let (failed, _, _) = client
        .call(
            "control_lock",
            json!({ "deviceName": "Door", "action": "unlock" }),
        )
        .await;
    assert!(failed);
    // Only a device of exactly that name may receive it.
    let received = (2..=9).map(|node| fixture.count(node).received);
    let received = received.collect::<Vec<_>>();
    assert!(
        received[..4].iter().all(|count| *count <= 1),
        "{received:?}"
    );
    assert_eq!(received[4..], [0, 0, 0, 0]);
    for message in observer.on("/set") {
        let fits = message.topic.starts_with("zwave/") && !message.topic.contains(['+', '#', '\0']);
        assert!(fits, "{message:?}");
    }
    let (failed, text, _) = client.call("list_zwave_devices", json!({})).await;
    // One line for each device, and a summary.
    assert_eq!(text.lines().count(), 9, "{text:?}");
    assert!(!failed && text.len() < 100_000, "{} bytes", text.len());
    assert_eq!(client.leave().await.0.code(), Some(0));
}

async fn tools_work_during_a_flood_of_messages(kind: Kind) {
    let fixture = HouseFixture::demo(kind).await;
    let observer = BrokerObserver::of(&fixture).await;
    let mut client = fixture.server().await;
    let observer = &observer;
    let flood = stream::iter(0..20_000_u32).map(|number| async move {
        let topic = match number % 3 {
            0 => format!("zwave/Nowhere/Device_{number}/37/0/currentValue"),
            1 => "zwave/Kitchen/Kitchen_Light/switch_binary/endpoint_0/currentValue".to_owned(),
            _ => format!("zwave/{}", "deep/".repeat(100)),
        };
        observer.put(&topic, "{\"value\":17}", false).await;
    });
    let flood = flood.buffer_unordered(64).for_each(async |()| {});
    let calls = async {
        for _ in 0..20 {
            let (failed, text, fields) = client
                .call("list_zwave_devices", json!({ "limit": 20 }))
                .await;
            assert!(!failed && fields["total"].as_u64().unwrap() >= 13, "{text}");
        }
        let fan = json!({ "deviceName": "Bathroom Fan", "action": "on" });
        let (failed, text, _) = client.call("control_zwave_device", fan).await;
        assert!(!failed, "{text}");
    };
    tokio::join!(flood, calls);
    eventually("the fan", async || fixture.state("Bathroom Fan") == "on").await;
    assert_eq!(fixture.count(12).received, 1);
    assert_eq!(client.leave().await.0.code(), Some(0));
}
