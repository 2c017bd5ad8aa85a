//! Publish, subscribe, retained messages, last wills, passwords.

use std::time::Duration;

use toolgate_mqtt::{
    LastWill, Mqtt, MqttClient, MqttClientId, MqttMessage, MqttState, MqttVersion, PublishError,
    TopicSubscription,
};

use crate::{
    brokers::{Kind, RunningBroker, with_each_broker},
    connected, in_time, offline, online, settings,
};

with_each_broker!(
    messages_arrive_as_they_were_sent,
    overlapping_filters_do_not_double_a_message,
    retained_messages_come_first_and_are_marked,
    the_last_will_is_published_only_without_a_disconnect,
    a_wrong_password_is_reported_and_nothing_else_is_tried,
    both_versions_are_spoken,
    two_clients_with_one_id_are_reported_as_a_conflict,
    the_connection_ends_with_the_last_clone,
);

async fn next(messages: &mut TopicSubscription) -> MqttMessage {
    in_time("a message", messages.next())
        .await
        .expect("it goes on")
}

async fn messages_arrive_as_they_were_sent(kind: Kind) {
    let broker = RunningBroker::start(kind).await;
    let client = connected(&broker.url()).await;
    let mut all = client.subscribe("zwave/#");
    let mut some = client.subscribe("+/Küche/on");
    let mut none = client.subscribe("other/+");
    let large = "x".repeat(1024 * 1024);
    for (topic, payload) in [
        ("zwave/Küche/on", "{\"value\":true}"),
        ("zwave/empty", ""),
        ("zwave/large", &large),
    ] {
        client
            .publish(topic, payload.to_owned().into(), false)
            .await
            .unwrap();
        let message = next(&mut all).await;
        assert_eq!(message.topic, topic);
        assert!(message.payload == payload.as_bytes() && !message.retained);
    }
    assert_eq!(next(&mut some).await.topic, "zwave/Küche/on");
    client
        .publish("other/last", "".into(), false)
        .await
        .unwrap();
    assert_eq!(next(&mut none).await.topic, "other/last");
    let refused = client.publish("zwave/+", "x".into(), false).await;
    assert!(
        matches!(refused, Err(PublishError::Refused { .. })),
        "{refused:?}"
    );
}

async fn overlapping_filters_do_not_double_a_message(kind: Kind) {
    let broker = RunningBroker::start(kind).await;
    let client = connected(&broker.url()).await;
    let mut readers: Vec<_> = ["#", "a/#", "a/b"]
        .map(|filter| client.subscribe(filter))
        .into();
    for payload in ["1", "2", "3"] {
        client.publish("a/b", payload.into(), false).await.unwrap();
    }
    for reader in &mut readers {
        for payload in ["1", "2", "3"] {
            assert_eq!(next(reader).await.payload, payload);
        }
    }
}

async fn retained_messages_come_first_and_are_marked(kind: Kind) {
    let broker = RunningBroker::start(kind).await;
    let writer = connected(&broker.url()).await;
    writer.publish("kept", "old".into(), true).await.unwrap();
    let reader = connected(&broker.url()).await;
    let mut messages = reader.subscribe("kept");
    let kept = next(&mut messages).await;
    assert!(kept.payload == "old" && kept.retained);
    // For existing subscribers the same message is not marked as retained.
    writer.publish("kept", "new".into(), true).await.unwrap();
    let live = next(&mut messages).await;
    assert!(live.payload == "new" && !live.retained);
}

async fn the_last_will_is_published_only_without_a_disconnect(kind: Kind) {
    let broker = RunningBroker::start(kind).await;
    let watcher = connected(&broker.url()).await;
    let mut wills = watcher.subscribe("will/+");
    let with_will = |topic: &str| {
        let mut settings = settings(&broker.url());
        settings.will = Some(LastWill {
            topic: topic.to_owned(),
            payload: "gone".into(),
            retain: true,
        });
        settings
    };
    let polite = MqttClient::open(with_will("will/polite"));
    online(&polite).await;
    drop(polite);
    // Drops the runtime, so that no goodbye is sent.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let settings = with_will("will/sudden");
    let sudden = runtime
        .spawn(async move { MqttClient::open(settings) })
        .await
        .unwrap();
    online(&sudden).await;
    runtime.shutdown_background();
    let will = next(&mut wills).await;
    assert_eq!(
        (will.topic.as_str(), &will.payload[..]),
        ("will/sudden", &b"gone"[..])
    );
    let late = connected(&broker.url()).await;
    let mut kept = late.subscribe("will/+");
    assert_eq!(next(&mut kept).await.topic, "will/sudden");
    late.publish("will/end", "".into(), false).await.unwrap();
    assert_eq!(next(&mut kept).await.topic, "will/end");
}

async fn a_wrong_password_is_reported_and_nothing_else_is_tried(kind: Kind) {
    let broker = RunningBroker::guarded(kind, ("house", "sesame-1")).await;
    for (user, password, says) in [
        (
            Some("house"),
            Some("wrong-word-1"),
            "refuses the user name or the password",
        ),
        (
            Some("nobody"),
            Some("sesame-1"),
            "refuses the user name or the password",
        ),
        (None, None, "requires a user name and a password"),
    ] {
        let mut settings = settings(&broker.url());
        settings.username = user.map(str::to_owned);
        settings.password = password.map(str::to_owned);
        let client = MqttClient::open(settings);
        let reason = offline(&client, says).await;
        assert!(
            !reason.contains("word-1") && !reason.contains("sesame"),
            "{reason}"
        );
        let error = client.publish("a", "b".into(), false).await.unwrap_err();
        assert_eq!(error, PublishError::Offline { reason });
    }
    for version in [MqttVersion::V3, MqttVersion::V5] {
        let mut settings = settings(&broker.url());
        settings.username = Some("house".to_owned());
        settings.password = Some("sesame-1".to_owned());
        settings.version = version;
        online(&MqttClient::open(settings)).await;
    }
}

async fn both_versions_are_spoken(kind: Kind) {
    let broker = RunningBroker::start(kind).await;
    for version in [MqttVersion::V3, MqttVersion::V5, MqttVersion::Any] {
        let mut settings = settings(&broker.url());
        settings.version = version;
        settings.keep_alive = Duration::from_secs(1);
        let client = MqttClient::open(settings);
        online(&client).await;
        let mut messages = client.subscribe("v/+");
        client.publish("v/one", "x".into(), true).await.unwrap();
        assert_eq!(next(&mut messages).await.topic, "v/one");
        // An unused filter is unsubscribed at the next liveness check, and pings keep the
        // connection.
        drop(messages);
        let mut state = client.state();
        state.mark_unchanged();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(!state.has_changed().unwrap(), "{:?}", *state.borrow());
        client.publish("v/one", "".into(), true).await.unwrap();
    }
}

async fn two_clients_with_one_id_are_reported_as_a_conflict(kind: Kind) {
    let broker = RunningBroker::start(kind).await;
    let mut settings = settings(&broker.url());
    settings.client_id = MqttClientId::Exactly("the-only-one".to_owned());
    let one = MqttClient::open(settings.clone());
    online(&one).await;
    let two = MqttClient::open(settings);
    let named = async {
        tokio::select! {
            reason = offline(&one, "two programs use the same client id") => reason,
            reason = offline(&two, "two programs use the same client id") => reason,
        }
    };
    let reason = in_time("the fight", named).await;
    assert!(reason.contains("another client id"), "{reason}");
}

async fn the_connection_ends_with_the_last_clone(kind: Kind) {
    let broker = RunningBroker::start(kind).await;
    let client = connected(&broker.url()).await;
    let mut messages = client.subscribe("#");
    let clone = client.clone();
    drop(client);
    clone
        .publish("a", "still there".into(), false)
        .await
        .unwrap();
    assert_eq!(next(&mut messages).await.payload, "still there");
    drop(clone);
    assert_eq!(in_time("the end", messages.next()).await, None);
}

#[tokio::test]
async fn a_missing_broker_is_reported_at_once_and_found_when_it_starts() {
    let addr = crate::brokers::free_port();
    let client = MqttClient::open(settings(&format!("mqtt://{addr}")));
    let reason = offline(&client, "nothing listens on that port").await;
    assert!(
        reason.contains("Start it, or correct the address"),
        "{reason}"
    );
    let error = tokio::time::timeout(
        Duration::from_secs(10),
        client.publish("a", "b".into(), false),
    )
    .await;
    assert_eq!(error.unwrap(), Err(PublishError::Offline { reason }));
    let mut broker = toolgate_mqtt::BrokerSettings::default();
    broker.bind = addr;
    let broker = toolgate_mqtt::Broker::start(broker).await.unwrap();
    let mut messages = client.subscribe("a");
    online(&client).await;
    client.publish("a", "b".into(), false).await.unwrap();
    assert_eq!(next(&mut messages).await.payload, "b");
    broker.stop().await;
}

#[tokio::test]
async fn an_unknown_host_is_reported() {
    let client = MqttClient::open(settings("mqtt://no-such-host.invalid"));
    offline(&client, "the host name is unknown").await;
    assert!(matches!(
        *client.state().borrow(),
        MqttState::Offline { .. }
    ));
}

#[tokio::test]
async fn an_invalid_filter_delivers_nothing() {
    let client = MqttClient::open(settings("mqtt://127.0.0.1:1"));
    for filter in ["", "a/#/b", "a+", "a\0"] {
        assert_eq!(client.subscribe(filter).next().await, None, "{filter}");
    }
}
