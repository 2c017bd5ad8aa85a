//! A scripted broker that can misbehave.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Sends scripted bytes to each client and records what clients send.
pub(crate) struct ScriptedBroker {
    pub(crate) listener: TcpListener,
}

impl ScriptedBroker {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        Self { listener }
    }

    pub(crate) fn url(&self) -> String {
        format!("mqtt://{}", self.listener.local_addr().expect("an address"))
    }

    pub(crate) async fn client(&self) -> (TcpStream, Vec<u8>) {
        let (mut stream, _) = self.listener.accept().await.expect("a client");
        let connect = packet(&mut stream).await.expect("a packet");
        assert_eq!(connect[0], 0x10, "a CONNECT");
        (stream, connect)
    }

    pub(crate) async fn welcomed(&self) -> TcpStream {
        let (mut stream, connect) = self.client().await;
        let welcome: &[u8] = if version(&connect) == 5 {
            &[0x20, 3, 0, 0, 0]
        } else {
            &[0x20, 2, 0, 0]
        };
        stream.write_all(welcome).await.expect("it listens");
        stream
    }
}

pub(crate) fn version(connect: &[u8]) -> u8 {
    let name = connect
        .windows(4)
        .position(|bytes| bytes == b"MQTT")
        .expect("MQTT");
    connect[name + 4]
}

/// Reads one raw packet; empty once the stream has ended.
pub(crate) async fn packet(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut packet = vec![stream.read_u8().await.ok()?];
    let mut size = 0;
    for shift in 0..4 {
        let byte = stream.read_u8().await.ok()?;
        packet.push(byte);
        size |= usize::from(byte & 0x7f) << (7 * shift);
        if byte & 0x80 == 0 {
            break;
        }
    }
    let start = packet.len();
    packet.resize(start + size, 0);
    stream.read_exact(&mut packet[start..]).await.ok()?;
    Some(packet)
}

pub(crate) fn publish_bytes(topic: &str, payload: &[u8]) -> Vec<u8> {
    let mut size = 2 + topic.len() + payload.len();
    let mut bytes = vec![0x30];
    loop {
        let low = u8::try_from(size & 0x7f).expect("seven bits");
        size >>= 7;
        bytes.push(if size > 0 { low | 0x80 } else { low });
        if size == 0 {
            break;
        }
    }
    bytes.extend(
        u16::try_from(topic.len())
            .expect("a short topic")
            .to_be_bytes(),
    );
    bytes.extend(topic.as_bytes());
    bytes.extend(payload);
    bytes
}
