//! A complete session with every request that the server supports.

use futures::future::join_all;
use serde_json::{Value, json};
use zwave::sim::{HousePlan, PayloadForm, SimulationOptions, TopicForm};

use crate::fixture::{BrokerObserver, HouseFixture, kinds, wait_until_healthy};

/// Every tool, and whether it must fail.
fn calls() -> Vec<(&'static str, Value, bool)> {
    let light = |action: &str| json!({ "deviceName": "the kitchen light", "action": action });
    vec![
        ("list_zwave_devices", json!({}), false),
        (
            "list_zwave_devices",
            json!({ "location": "Kitchen", "limit": 1 }),
            false,
        ),
        ("control_zwave_device", light("on"), false),
        ("control_zwave_device", light("off"), false),
        (
            "control_zwave_device",
            json!({ "deviceName": "Kitchn Light", "action": "on" }),
            true,
        ),
        (
            "control_zwave_device",
            json!({ "deviceName": "Garage Light", "action": "on" }),
            true,
        ),
        (
            "get_device_sensor_data",
            json!({ "deviceName": "Bedroom" }),
            false,
        ),
        (
            "set_thermostat",
            json!({ "deviceName": "Living Room", "temperature": 20.5 }),
            false,
        ),
        (
            "control_lock",
            json!({ "deviceName": "Front Door", "action": "unlock" }),
            false,
        ),
        (
            "activate_scene",
            json!({ "sceneName": "Movie Night" }),
            false,
        ),
        ("check_zwave_health", json!({}), false),
        (
            "check_zwave_health",
            json!({ "wrong": "\u{7}\n\u{2028}" }),
            false,
        ),
        (
            "control_zwave_device",
            json!({ "deviceName": "\n{\"jsonrpc\":\"2.0\"}\n", "action": "on" }),
            true,
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn ms1_every_line_of_a_whole_session_is_json_rpc() {
    let each = kinds().into_iter().map(|kind| async move {
        let fixture = HouseFixture::demo(kind).await;
        let observer = BrokerObserver::of(&fixture).await;
        let mut client = fixture.server().await;
        client.ask("tools/list", json!({})).await;
        for (tool, arguments, fails) in calls() {
            let (failed, text, _) = client.call(tool, arguments.clone()).await;
            assert_eq!(failed, fails, "{tool} {arguments}: {text}");
        }
        // Messages from other clients must not reach stdout either.
        for payload in ["{\"jsonrpc\":\"2.0\"}\n", "\u{0}\u{1b}[2J", "{\"value\":"] {
            let topic = "zwave/Kitchen/Kitchen_Light/switch_binary/endpoint_0/currentValue";
            observer.put(topic, payload, false).await;
        }
        client.call("list_zwave_devices", json!({})).await;
        client.ask("no/such/method", json!({})).await;
        // Checks the remaining lines.
        let (status, log) = client.leave().await;
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(log.contains("DEBUG"), "the run was not a loud one: {log}");
    });
    join_all(each).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ms2_it_works_over_real_brokers_with_every_form_of_topic_and_payload() {
    let on = "{\"value\":true}";
    let forms = [
        (TopicForm::Named, PayloadForm::TimeValue, true),
        (TopicForm::Named, PayloadForm::Raw, true),
        (TopicForm::ValueId, PayloadForm::ValueId, true),
        (TopicForm::ValueId, PayloadForm::TimeValue, false),
        (TopicForm::ValueId, PayloadForm::Raw, true),
    ];
    let each = kinds().into_iter().map(|kind| async move {
        for (topics, payloads, node_names) in forms {
            let options = SimulationOptions {
                prefix: "home/z wave".to_owned(),
                topics,
                payloads,
                node_names,
                life: false,
                ..SimulationOptions::default()
            };
            let topic = match (topics, node_names) {
                (TopicForm::Named, _) => {
                    "home/z wave/Kitchen/Kitchen_Light/switch_binary/endpoint_0/targetValue/set"
                }
                (_, true) => "home/z wave/Kitchen/Kitchen_Light/37/0/targetValue/set",
                (_, false) => "home/z wave/Kitchen/2/37/0/targetValue/set",
            };
            let case = format!("{kind:?} {topics:?} {payloads:?} {node_names}");
            let fixture = HouseFixture::with(kind, HousePlan::demo(), options).await;
            let observer = BrokerObserver::of(&fixture).await;
            turns_on(&fixture, &case).await;
            let sent = observer.on("/set");
            assert_eq!(
                sent.iter()
                    .filter(|m| !m.topic.contains("/_CLIENTS/"))
                    .count(),
                1,
                "{case}: {sent:?}"
            );
            let sent = observer.on(topic);
            assert_eq!(sent.len(), 1, "{case}");
            assert_eq!(sent[0].payload, on, "{case}");
        }
    });
    join_all(each).await;
}

async fn turns_on(fixture: &HouseFixture, case: &str) {
    let mut client = fixture
        .server_with(&[("MQTT_TOPIC_PREFIX", "home/z wave")])
        .await;
    wait_until_healthy(&mut client).await;
    let light = json!({ "deviceName": "Kitchen Light", "action": "on" });
    let (failed, text, fields) = client.call("control_zwave_device", light).await;
    assert!(!failed, "{case}: {text}");
    assert_eq!(
        (&fields["outcome"], &fields["state"]),
        (&json!("done"), &json!("on"))
    );
    assert_eq!(fixture.state("Kitchen Light"), "on", "{case}");
    let bedroom = json!({ "deviceName": "Climate Sensor" });
    let (_, text, _) = client.call("get_device_sensor_data", bedroom).await;
    assert!(text.contains("19.4 °C"), "{case}: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_the_server_sends_is_retained() {
    let each = kinds().into_iter().map(|kind| async move {
        let fixture = HouseFixture::demo(kind).await;
        let mut client = fixture.server().await;
        for (tool, arguments, _) in calls() {
            client.call(tool, arguments).await;
        }
        let observer = BrokerObserver::of(&fixture).await;
        assert!(
            !observer.on("/currentValue").is_empty(),
            "retained values come first"
        );
        assert_eq!(observer.on("/set"), [], "{kind:?}");
    });
    join_all(each).await;
}
