//! The embedded broker with Mosquitto's clients, and with clients that misbehave.

use std::{process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::Command,
};
use toolgate_mqtt::{Broker, BrokerSettings, Mqtt, PublishError};

use crate::{
    connected, in_time,
    scripted_broker::{packet, publish_bytes},
};

async fn start() -> Broker {
    Broker::start(BrokerSettings::default()).await.unwrap()
}

fn connect(version: u8, flags: u8, id: &str, rest: &[u8]) -> Vec<u8> {
    let mut body = vec![0, 4, b'M', b'Q', b'T', b'T', version, flags | 2, 0, 60];
    if version == 5 {
        body.push(0);
    }
    body.extend([0, u8::try_from(id.len()).unwrap()]);
    body.extend(id.as_bytes());
    body.extend(rest);
    let mut bytes = vec![0x10, u8::try_from(body.len()).unwrap()];
    bytes.extend(body);
    bytes
}

async fn raw(broker: &Broker, first: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(broker.addr()).await.unwrap();
    stream.write_all(first).await.unwrap();
    stream
}

async fn admitted(broker: &Broker, version: u8, id: &str) -> TcpStream {
    let mut stream = raw(broker, &connect(version, 0, id, &[])).await;
    let welcome = in_time("a welcome", packet(&mut stream)).await.unwrap();
    assert_eq!((welcome[0], welcome[3]), (0x20, 0), "{welcome:?}");
    stream
}

async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 65536];
    while let Ok(read @ 1..) = in_time("the end", stream.read(&mut chunk)).await {
        bytes.extend(&chunk[..read]);
    }
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn mosquittos_clients_talk_through_it() {
    if !thirdparty::has_programs(&["mosquitto_pub", "mosquitto_sub"]) {
        return;
    }
    let broker = start().await;
    let port = broker.addr().port().to_string();
    for version in ["311", "5"] {
        for qos in ["0", "1", "2"] {
            let mut reader = Command::new("mosquitto_sub");
            reader
                .args(["-p", &port, "-V", version, "-q", qos, "-C", "2", "-v"])
                .args(["-t", "kept/#", "-t", "live"])
                .stdout(Stdio::piped())
                .kill_on_drop(true);
            // The retained message shows that the subscription is active.
            publish(&port, version, qos, &["-t", "kept/a", "-m", "old", "-r"]).await;
            let mut reader = reader.spawn().unwrap();
            let mut lines = BufReader::new(reader.stdout.take().unwrap()).lines();
            let line = in_time("a line", lines.next_line()).await.unwrap();
            assert_eq!(line.as_deref(), Some("kept/a old"));
            publish(&port, version, qos, &["-t", "live", "-m", "new"]).await;
            let line = in_time("a line", lines.next_line()).await.unwrap();
            assert_eq!(line.as_deref(), Some("live new"));
            assert!(in_time("its end", reader.wait()).await.unwrap().success());
        }
    }
}

async fn publish(port: &str, version: &str, qos: &str, args: &[&str]) {
    let mut command = Command::new("mosquitto_pub");
    command
        .args(["-p", port, "-V", version, "-q", qos])
        .args(args);
    let status = in_time("a publish", command.status()).await;
    assert!(status.unwrap().success(), "{version} {qos} {args:?}");
}

#[tokio::test]
async fn an_invalid_connect_is_refused() {
    let broker = start().await;
    let old = [
        0x10, 14, 0, 6, b'M', b'Q', b'I', b's', b'd', b'p', 3, 2, 0, 60, 0, 0,
    ];
    let cases: [(&[u8], &[u8]); 8] = [
        (b"GET / HTTP/1.1\r\n\r\n", &[]),
        (&[0; 100], &[]),
        (&[0xff; 100], &[]),
        // A ping, a message, a CONNECT of 256 MB.
        (&[0xc0, 0], &[]),
        (&publish_bytes("a", b"x"), &[]),
        (&[0x10, 0xff, 0xff, 0xff, 0x7f], &[]),
        (&old, &[0x20, 2, 0, 1]),
        (&connect(6, 0, "a", &[]), &[0x20, 3, 0, 0x84, 0]),
    ];
    for (bytes, answer) in cases {
        let mut stream = raw(&broker, bytes).await;
        assert_eq!(rest(&mut stream).await, answer, "{bytes:?}");
    }
    // Half of a packet, followed by silence.
    let mut stream = raw(&broker, &connect(5, 0, "half", &[])[..9]).await;
    assert!(rest(&mut stream).await.is_empty());
    admitted(&broker, 5, "next").await;
}

#[tokio::test]
async fn errors_after_the_connack_end_the_connection_with_their_reason() {
    let broker = start().await;
    let cases: [(&[u8], u8); 6] = [
        (&connect(5, 0, "a", &[]), 0x82),
        (&[0x00, 0x00], 0x81),
        // SUBSCRIBE without its flags.
        (&[0x80, 6, 0, 1, 0, 0, 1, b'a'], 0x81),
        // A wildcard, a topic alias, and a subscription identifier in a message.
        (&[0x30, 5, 0, 2, b'a', b'#', 0], 0x90),
        (&[0x30, 7, 0, 1, b'a', 3, 0x23, 0, 1], 0x94),
        (&[0x30, 6, 0, 1, b'a', 2, 0x0b, 1], 0x82),
    ];
    for (bytes, reason) in cases {
        let mut stream = admitted(&broker, 5, "bad").await;
        stream.write_all(bytes).await.unwrap();
        let goodbye = in_time("a goodbye", packet(&mut stream)).await.unwrap();
        assert_eq!((goodbye[0], goodbye[2]), (0xe0, reason), "{bytes:?}");
        assert!(rest(&mut stream).await.is_empty());
    }
}

#[tokio::test]
async fn a_taken_client_id_is_handed_over_after_the_will() {
    let broker = start().await;
    let reader = connected(&broker.url()).await;
    let mut messages = reader.subscribe("will");
    reader.publish("will", "ready".into(), false).await.unwrap();
    let will = [&[0, 0, 4][..], b"will", &[0, 4], b"gone"].concat();
    let mut old = raw(&broker, &connect(5, 0b100, "twin", &will)).await;
    in_time("a welcome", packet(&mut old)).await.unwrap();
    let mut new = admitted(&broker, 5, "twin").await;
    new.write_all(&[
        0x30, 11, 0, 4, b'w', b'i', b'l', b'l', 0, b'b', b'o', b'r', b'n',
    ])
    .await
    .unwrap();
    for payload in ["ready", "gone", "born"] {
        assert_eq!(
            in_time("it", messages.next()).await.unwrap().payload,
            payload
        );
    }
    let goodbye = in_time("a goodbye", packet(&mut old)).await.unwrap();
    assert_eq!((goodbye[0], goodbye[2]), (0xe0, 0x8e));
}

#[tokio::test]
async fn a_will_is_published_if_the_disconnect_asks_for_it() {
    let broker = start().await;
    let reader = connected(&broker.url()).await;
    let mut messages = reader.subscribe("will/+");
    reader
        .publish("will/a", "ready".into(), false)
        .await
        .unwrap();
    for (name, reason) in [("b", 0), ("c", 4)] {
        let will = [&[0, 0, 6][..], b"will/", name.as_bytes(), &[0, 1, b'x']].concat();
        let mut stream = raw(&broker, &connect(5, 0b100, name, &will)).await;
        in_time("a welcome", packet(&mut stream)).await.unwrap();
        stream.write_all(&[0xe0, 1, reason]).await.unwrap();
        rest(&mut stream).await;
    }
    for topic in ["will/a", "will/c"] {
        assert_eq!(in_time("it", messages.next()).await.unwrap().topic, topic);
    }
}

#[tokio::test]
async fn an_oversized_retained_message_is_refused() {
    let broker = start().await;
    let client = connected(&broker.url()).await;
    let mut messages = client.subscribe("big");
    let big = vec![b'x'; 1024 * 1024 + 1];
    let refused = client.publish("big", big.clone().into(), true).await;
    let Err(PublishError::Refused { reason }) = refused else {
        panic!("{refused:?}");
    };
    assert!(reason.contains("limit"), "{reason}");
    client.publish("big", big.into(), false).await.unwrap();
    let message = in_time("it", messages.next()).await.unwrap();
    assert!(!message.retained);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_reads_is_disconnected_alone() {
    let broker = start().await;
    let mut deaf = admitted(&broker, 4, "deaf").await;
    deaf.write_all(&[0x82, 6, 0, 1, 0, 1, b'#', 0])
        .await
        .unwrap();
    in_time("an answer", packet(&mut deaf)).await.unwrap();
    let client = connected(&broker.url()).await;
    let message = vec![b'x'; 64 * 1024];
    // More than the queue and the network buffers hold.
    for _ in 0..1000 {
        client
            .publish("a", message.clone().into(), false)
            .await
            .unwrap();
    }
    let got = rest(&mut deaf).await.len();
    assert!(got < 1000 * message.len(), "{got}");
    client
        .publish("a", "still there".into(), false)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_client_that_only_sends_requests_is_disconnected() {
    let broker = start().await;
    let mut stream = admitted(&broker, 4, "asker").await;
    let pings = [0xc0, 0].repeat(1024 * 1024);
    let asking = async { while stream.write_all(&pings).await.is_ok() {} };
    in_time("the cut", asking).await;
    connected(&broker.url()).await;
}

#[tokio::test]
async fn silence_beyond_the_keep_alive_ends_the_connection() {
    let broker = start().await;
    let mut hello = connect(5, 0, "mute", &[]);
    hello[11] = 1;
    let mut stream = raw(&broker, &hello).await;
    in_time("a welcome", packet(&mut stream)).await.unwrap();
    let since = tokio::time::Instant::now();
    let goodbye = in_time("a goodbye", packet(&mut stream)).await.unwrap();
    assert_eq!((goodbye[0], goodbye[2]), (0xe0, 0x8d));
    assert!(since.elapsed() >= Duration::from_millis(1400));
}
