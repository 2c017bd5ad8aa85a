//! Servers that are not brokers, or misbehave.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::Instant,
};
use toolgate_mqtt::{Mqtt, MqttClient, PublishError};

use crate::{
    in_time, offline, online,
    scripted_broker::{ScriptedBroker, packet},
    settings,
};

#[tokio::test]
async fn garbage_instead_of_a_connack_is_reported() {
    for (bytes, says) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "not MQTT"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not MQTT"),
        (&[0; 100], "not MQTT"),
        (&[0xff; 100], "not MQTT"),
        // A CONNACK of 256 MB.
        (&[0x20, 0xff, 0xff, 0xff, 0x7f, 0, 0], "not MQTT"),
        (&[0x20, 0], "not MQTT"),
        // A TLS alert.
        (&[0x15, 0x03, 0x03, 0, 2, 2, 10], "mqtts://"),
        (&[], "closes the connection without an answer"),
    ] {
        let fake = ScriptedBroker::new().await;
        let client = MqttClient::open(settings(&fake.url()));
        let broker = async {
            loop {
                let (mut stream, _) = fake.listener.accept().await.unwrap();
                let mut greeting = [0; 2];
                stream.read_exact(&mut greeting).await.unwrap();
                stream.write_all(bytes).await.unwrap();
                // Closed without a reset, so that the client can read what was written.
                stream.shutdown().await.unwrap();
                stream.read_to_end(&mut Vec::new()).await.unwrap();
            }
        };
        tokio::select! {
            _ = broker => {}
            reason = offline(&client, says) => drop(reason),
        }
    }
}

#[tokio::test]
async fn a_refused_client_id_is_reported() {
    let fake = ScriptedBroker::new().await;
    let client = MqttClient::open(settings(&fake.url()));
    let (mut stream, _) = fake.client().await;
    stream.write_all(&[0x20, 3, 0, 0x85, 0]).await.unwrap();
    offline(&client, "refuses the client id").await;
}

#[tokio::test]
async fn random_bytes_after_the_connack_are_survived() {
    let mut random = fastrand::Rng::with_seed(20_261_115);
    for _ in 0..200 {
        let fake = ScriptedBroker::new().await;
        let client = MqttClient::open(settings(&fake.url()));
        let mut messages = client.subscribe("#");
        let mut stream = in_time("the client", fake.welcomed()).await;
        let size = random.usize(1..400);
        let mut bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..))
            .take(size)
            .collect();
        // Often starts with a valid packet.
        if random.bool() {
            bytes[0] = random.u8(2..15) << 4 | random.u8(0..4);
            if let Some(length) = bytes.get_mut(1) {
                *length = random.u8(0..100);
            }
        }
        // The client may have hung up meanwhile.
        drop(stream.write_all(&bytes).await);
        drop(stream);
        offline(&client, "The MQTT broker").await;
        drop(client);
        let rest = async { while messages.next().await.is_some() {} };
        in_time("the end", rest).await;
    }
}

#[tokio::test]
async fn a_message_that_is_not_confirmed_is_unknown_and_never_sent_again() {
    let fake = ScriptedBroker::new().await;
    let client = MqttClient::open(settings(&fake.url()));
    let broker = async {
        let mut stream = fake.welcomed().await;
        online(&client).await;
        let publish = packet(&mut stream).await.unwrap();
        assert_eq!(publish[0], 0x32, "QoS 1, not again, not to be kept");
        drop(stream);
        let mut stream = fake.welcomed().await;
        online(&client).await;
        // A repeated message would arrive before this one.
        let again = client.clone();
        tokio::spawn(async move { again.publish("b", "y".into(), false).await });
        let next = loop {
            let packet = packet(&mut stream).await.unwrap();
            if packet[0] >> 4 == 3 {
                break packet;
            }
        };
        assert!(next.ends_with(b"y"), "{next:?}");
    };
    let publish = async {
        online(&client).await;
        client.publish("a", "x".into(), false).await
    };
    let (outcome, ()) = in_time("both", async { tokio::join!(publish, broker) }).await;
    let Err(PublishError::Unknown { reason }) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(reason.contains("may have arrived"), "{reason}");
}

#[tokio::test]
async fn a_broker_that_never_confirms_does_not_block() {
    let fake = ScriptedBroker::new().await;
    let client = MqttClient::open(settings(&fake.url()));
    let _stream = fake.welcomed().await;
    online(&client).await;
    let since = Instant::now();
    // More than the window: messages that were not sent are not unknown, and are not sent later.
    let flights = (0..100).map(|_| client.publish("a", "x".into(), false));
    let outcomes = futures::future::join_all(flights).await;
    assert!(
        since.elapsed() < Duration::from_secs(50),
        "{:?}",
        since.elapsed()
    );
    let unknown = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Err(PublishError::Unknown { .. })))
        .count();
    let unsent = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Err(PublishError::Offline { .. })))
        .count();
    assert_eq!((unknown, unsent), (64, 36));
}

#[tokio::test]
async fn a_withdrawn_message_is_not_sent_late() {
    let fake = ScriptedBroker::new().await;
    let client = MqttClient::open(settings(&fake.url()));
    let mut stream = fake.welcomed().await;
    online(&client).await;
    {
        let flights = (0..100).map(|_| client.publish("a", "x".into(), false));
        let all = futures::future::join_all(flights);
        assert!(
            tokio::time::timeout(Duration::from_millis(200), all)
                .await
                .is_err()
        );
    }
    let mut sent = 0;
    let confirming = async {
        while let Some(packet) = packet(&mut stream).await {
            if packet[0] >> 4 == 3 {
                sent += 1;
                // After the header, the topic "a" and its length.
                stream
                    .write_all(&[0x40, 2, packet[5], packet[6]])
                    .await
                    .unwrap();
            }
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_millis(500), confirming)
            .await
            .is_err()
    );
    assert_eq!(sent, 64);
}

#[tokio::test]
async fn a_silent_broker_is_reported() {
    let fake = ScriptedBroker::new().await;
    let client = MqttClient::open(settings(&fake.url()));
    let _held = fake.client().await;
    offline(&client, "does not answer within 10 s").await;
}
