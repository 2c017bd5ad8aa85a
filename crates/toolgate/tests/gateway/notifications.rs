//! `approvals.notify`: what waits is published over MQTT.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_mqtt::{
    Broker, BrokerSettings, Mqtt, MqttClient, MqttClientSettings, TopicSubscription,
};

use crate::support::{ServeProcess, fake_server, request};

/// A hang guard.
const PATIENCE: Duration = Duration::from_secs(60);

async fn next(messages: &mut TopicSubscription) -> Value {
    let message = tokio::time::timeout(PATIENCE, messages.next()).await;
    let message = message.unwrap().unwrap();
    assert_eq!(message.topic, "home/toolgate");
    assert!(!message.retained);
    serde_json::from_slice(&message.payload).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_published_over_mqtt_with_a_link_that_grants_nothing() {
    let broker = Broker::start(BrokerSettings::default()).await.unwrap();
    let listener = MqttClient::open(MqttClientSettings::new(&broker.url()).unwrap());
    let mut messages = listener.subscribe("home/#");
    let folder = tempfile::tempdir().unwrap();
    let config = json!({
        "mcpServers": { "house": fake_server(&[]) },
        "policy": { "ask": ["pid"] },
        "mqtt": { "url": broker.url() },
        "approvals": { "timeout": "5s", "notify": { "mqtt": "home/toolgate" } },
    });
    let gateway = ServeProcess::start(folder.path(), &config);
    gateway.ready();
    let call = |path: &'static str| {
        let address = gateway.address.clone();
        tokio::task::spawn_blocking(move || request(&address, "POST", path, "{}").unwrap().1)
    };

    let waiting = call("/api/tools/pid/call");
    let approval = next(&mut messages).await;
    let facts = ["event", "tool", "server"].map(|key| approval[key].as_str().unwrap());
    assert_eq!(facts, ["approval", "pid", "house"]);
    let port = gateway.address.rsplit(':').next().unwrap();
    let link = format!("http://localhost:{port}/#/calls");
    assert_eq!(approval["link"], link);
    let path = format!("/api/approvals/{}", approval["id"].as_str().unwrap());
    let approve = r#"{ "approve": true }"#;
    assert_eq!(
        request(&gateway.address, "POST", &path, approve).unwrap().0,
        403
    );
    let denied = waiting.await.unwrap();
    let expected = "Tool 'pid' needs approval, and nobody answered in time";
    assert_eq!(denied["error"], expected);

    // Nobody answers this one either, so it counts as dismissed.
    let asking = call("/api/tools/elicit/call");
    let question = next(&mut messages).await;
    assert_eq!(
        (&question["event"], &question["question"]),
        (&json!("question"), &json!("Who?"))
    );
    let dismissed = asking.await.unwrap();
    let told = dismissed["result"].as_str().unwrap();
    assert!(told.contains(r#""action":"cancel""#), "{told}");
}
