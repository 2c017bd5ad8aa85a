//! Brokers that die, hang and come back (F1, F6).

use std::{collections::HashMap, time::Duration};

use futures::{StreamExt, stream::FuturesUnordered};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::Instant};
use toolgate_mqtt::{Mqtt, MqttClient, MqttState, MqttVersion, PublishError};

use crate::{
    brokers::{Kind, RunningBroker, mosquitto_is_there, with_each_broker},
    connected, in_time, offline, online, publish_again,
    scripted_broker::publish_bytes,
    settings,
};

with_each_broker!(
    nothing_is_sent_twice_after_the_broker_restarts,
    nothing_is_sent_twice_after_the_broker_is_killed,
    subscriptions_survive_a_broker_restart,
    a_flood_is_bounded_and_counted,
    a_message_of_100_mb_is_skipped,
);

async fn nothing_is_sent_twice_after_the_broker_restarts(kind: Kind) {
    interrupted(kind, false).await;
}

async fn nothing_is_sent_twice_after_the_broker_is_killed(kind: Kind) {
    interrupted(kind, true).await;
}

async fn interrupted(kind: Kind, killed: bool) {
    const MESSAGES: usize = 1000;
    let mut broker = RunningBroker::start(kind).await;
    let reader = connected(&broker.url()).await;
    let mut messages = reader.subscribe("flight/#");
    let writer = connected(&broker.url()).await;
    publish_again(&writer, "flight/begin", "").await;

    let mut flights: FuturesUnordered<_> = (0..MESSAGES)
        .map(|number| {
            let writer = writer.clone();
            let topic = format!("flight/{number}");
            tokio::spawn(async move { (number, writer.publish(&topic, "x".into(), false).await) })
        })
        .collect();
    let mut outcomes = HashMap::new();
    while let Some(flight) = in_time("a publish", flights.next()).await {
        let (number, outcome) = flight.unwrap();
        assert!(
            !matches!(outcome, Err(PublishError::Refused { .. })),
            "{outcome:?}"
        );
        assert_eq!(outcomes.insert(number, outcome), None);
        if outcomes.len() == 50 {
            if killed {
                broker.kill();
            } else {
                broker.stop().await;
            }
        }
    }
    assert_eq!(outcomes.len(), MESSAGES);
    let unsure = outcomes.values().filter(|outcome| outcome.is_err()).count();
    assert!(unsure > 0, "the broker was gone too late to matter");
    offline(&writer, "").await;
    offline(&reader, "").await;

    broker.restart().await;
    // Confirmed on the subscription's connection, which is therefore active again.
    publish_again(&reader, "flight/begin", "").await;
    publish_again(&writer, "flight/end", "").await;
    let mut arrived: HashMap<usize, usize> = HashMap::new();
    loop {
        let message = in_time("a message", messages.next()).await.unwrap();
        match message.topic.strip_prefix("flight/").unwrap() {
            "begin" => {}
            "end" => break,
            number => *arrived.entry(number.parse().unwrap()).or_default() += 1,
        }
    }
    for (number, times) in arrived {
        assert_eq!(times, 1, "{number} arrived {times} times");
        let outcome = &outcomes[&number];
        assert!(
            !matches!(outcome, Err(PublishError::Offline { .. })),
            "{number} arrived, but was said not to be sent"
        );
    }
}

async fn subscriptions_survive_a_broker_restart(kind: Kind) {
    let mut broker = RunningBroker::start(kind).await;
    let client = connected(&broker.url()).await;
    let mut one = client.subscribe("a/+");
    let mut two = client.subscribe("b");
    for _ in 0..2 {
        broker.kill();
        offline(&client, "").await;
        let error = client.publish("a/x", "late".into(), false).await;
        assert!(
            matches!(error, Err(PublishError::Offline { .. })),
            "{error:?}"
        );
        broker.restart().await;
        publish_again(&client, "a/x", "new").await;
        publish_again(&client, "b", "new").await;
        assert_eq!(in_time("one", one.next()).await.unwrap().payload, "new");
        assert_eq!(in_time("two", two.next()).await.unwrap().payload, "new");
    }
}

async fn a_flood_is_bounded_and_counted(kind: Kind) {
    const MESSAGES: usize = 50_000;
    const QUEUE: usize = 1000;
    let broker = RunningBroker::start(kind).await;
    let mut settings = settings(&broker.url());
    settings.queue = QUEUE;
    let client = MqttClient::open(settings);
    online(&client).await;
    let mut slow = client.subscribe("flood/#");
    publish_again(&client, "flood/begin", "").await;

    let mut flood = connect_raw_client(&broker).await;
    let message = publish_bytes("flood/x", b"0123456789");
    flood.write_all(&message.repeat(MESSAGES)).await.unwrap();
    let dropped = async {
        while slow.dropped() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    in_time("dropping", dropped).await;
    // The connection still works, for others too.
    let mut quick = client.subscribe("quick");
    publish_again(&client, "quick", "x").await;
    assert_eq!(
        in_time("the quick one", quick.next())
            .await
            .unwrap()
            .payload,
        "x"
    );
    let mut read = 0;
    while tokio::time::timeout(Duration::from_millis(500), slow.next())
        .await
        .is_ok()
    {
        read += 1;
    }
    let lost = usize::try_from(slow.dropped()).unwrap();
    assert!(
        read >= QUEUE && read + lost <= MESSAGES + 1,
        "{read} read, {lost} dropped"
    );
    publish_again(&client, "flood/end", "x").await;
    assert_eq!(
        in_time("the end", slow.next()).await.unwrap().topic,
        "flood/end"
    );
}

async fn a_message_of_100_mb_is_skipped(kind: Kind) {
    let broker = RunningBroker::start(kind).await;
    for version in [MqttVersion::V3, MqttVersion::V5] {
        let mut settings = settings(&broker.url());
        settings.version = version;
        let client = MqttClient::open(settings);
        online(&client).await;
        let mut messages = client.subscribe("big/#");
        publish_again(&client, "big/begin", "").await;
        let mut talker = connect_raw_client(&broker).await;
        let message = publish_bytes("big/one", &vec![b'x'; 100_000_000]);
        // A broker may hang up on it.
        drop(talker.write_all(&message).await);
        drop(talker.write_all(&publish_bytes("big/two", b"x")).await);
        drop(talker);
        // Long enough for it to be routed, had it been accepted.
        tokio::time::sleep(Duration::from_millis(300)).await;
        publish_again(&client, "big/end", "").await;
        let mut topics = Vec::new();
        while topics.last().is_none_or(|topic| topic != "big/end") {
            topics.push(in_time("a message", messages.next()).await.unwrap().topic);
        }
        assert!(!topics.contains(&"big/one".to_owned()), "{topics:?}");
        assert_eq!(*client.state().borrow(), MqttState::Online);
    }
}

async fn connect_raw_client(broker: &RunningBroker) -> TcpStream {
    let mut stream = TcpStream::connect(broker.addr()).await.unwrap();
    let id = format!("talker{}", fastrand::u32(..));
    let mut hello = vec![
        0,
        4,
        b'M',
        b'Q',
        b'T',
        b'T',
        4,
        2,
        0,
        60,
        0,
        u8::try_from(id.len()).unwrap(),
    ];
    hello.extend(id.as_bytes());
    stream
        .write_all(&[0x10, u8::try_from(hello.len()).unwrap()])
        .await
        .unwrap();
    stream.write_all(&hello).await.unwrap();
    let mut welcome = [0; 4];
    tokio::io::AsyncReadExt::read_exact(&mut stream, &mut welcome)
        .await
        .unwrap();
    assert_eq!(welcome, [0x20, 2, 0, 0]);
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_hangs_is_noticed_by_the_keep_alive() {
    if !mosquitto_is_there() {
        return;
    }
    let broker = RunningBroker::start(Kind::Mosquitto).await;
    let mut settings = settings(&broker.url());
    settings.keep_alive = Duration::from_secs(2);
    let client = MqttClient::open(settings);
    online(&client).await;
    broker.freeze(true);
    let since = Instant::now();
    // The broker still counts as connected, so the message may have arrived.
    let error = client.publish("a", "b".into(), false).await;
    assert!(
        matches!(error, Err(PublishError::Unknown { .. })),
        "{error:?}"
    );
    let reason = offline(&client, "has been silent for").await;
    let noticed = since.elapsed();
    assert!(noticed < Duration::from_secs(30), "{noticed:?}: {reason}");
    let error = client.publish("a", "b".into(), false).await;
    assert_eq!(error, Err(PublishError::Offline { reason }));
    broker.freeze(false);
    publish_again(&client, "a", "b").await;
}
