//! Bytes that violate the protocol, and a proxy that sends them in the middle of a conversation.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Every way to break the protocol, by name. The only right answer to each
/// is closing the connection.
pub(crate) fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let deep = format!("{{\"type\": \"info\", \"data\": {}\n", "[".repeat(60_000));
    let header = |rest: &str| format!("{{\"type\": \"audio-chunk\", {rest}}}\n").into_bytes();
    vec![
        ("bytes that are no text", vec![0xff; 100_000]),
        ("another protocol", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ("a header without an end", vec![b'{'; 2 << 20]),
        ("a header that is too deep", deep.into_bytes()),
        ("a header without a type", b"{\"data\": {}}\n".to_vec()),
        (
            "a payload of a terabyte",
            header("\"payload_length\": 1099511627776"),
        ),
        (
            "data of a terabyte",
            header("\"data_length\": 1099511627776"),
        ),
        ("a length below zero", header("\"payload_length\": -1")),
        (
            "a length beyond all numbers",
            header("\"payload_length\": 99999999999999999999999"),
        ),
        ("a length in words", header("\"data_length\": \"many\"")),
        (
            "data that is no JSON",
            [header("\"data_length\": 4").as_slice(), &[0xff; 4]].concat(),
        ),
    ]
}

/// A proxy between the gateway and an engine. Once the gateway sends an event of one type, it
/// injects bytes before the engine's answer, a single time.
pub(crate) struct HostileProxy {
    address: SocketAddr,
    plot: Arc<PlannedAttack>,
    _listening: JoinSet<()>,
}

struct PlannedAttack {
    engine: String,
    trigger: &'static str,
    poison: Mutex<Option<Vec<u8>>>,
    done: Notify,
}

impl HostileProxy {
    /// In front of an engine, given as `tcp://address`.
    pub(crate) async fn before(engine: &str, trigger: &'static str, poison: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let plot = Arc::new(PlannedAttack {
            engine: engine.trim_start_matches("tcp://").to_owned(),
            trigger,
            poison: Mutex::new(Some(poison)),
            done: Notify::new(),
        });
        let mut listening = JoinSet::new();
        listening.spawn(listen(listener, Arc::clone(&plot)));
        Self {
            address,
            plot,
            _listening: listening,
        }
    }

    pub(crate) fn address(&self) -> String {
        format!("tcp://{}", self.address)
    }

    /// Waits until the bytes have been sent.
    pub(crate) async fn done(&self) {
        self.plot.done.notified().await;
    }
}

async fn listen(listener: TcpListener, plot: Arc<PlannedAttack>) {
    let mut connections = JoinSet::new();
    while let Ok((gateway, _)) = listener.accept().await {
        let Ok(engine) = TcpStream::connect(&plot.engine).await else {
            continue;
        };
        connections.spawn(carry(gateway, engine, Arc::clone(&plot)));
    }
}

async fn carry(gateway: TcpStream, engine: TcpStream, plot: Arc<PlannedAttack>) {
    let (mut from_gateway, mut to_gateway) = gateway.into_split();
    let (mut from_engine, mut to_engine) = engine.into_split();
    let (mut up, mut down) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    // The name of an event may arrive in two pieces.
    let mut seen = Vec::new();
    loop {
        let carried = tokio::select! {
            read = from_gateway.read(&mut up) => {
                let Ok(length @ 1..) = read else { return };
                seen.extend_from_slice(&up[..length]);
                if let Some(poison) = plot.poison_after(&seen) {
                    // The gateway may hang up before it has read everything.
                    drop(to_gateway.write_all(&poison).await);
                    plot.done.notify_one();
                }
                seen.drain(..seen.len().saturating_sub(plot.trigger.len()));
                to_engine.write_all(&up[..length]).await
            }
            read = from_engine.read(&mut down) => {
                let Ok(length @ 1..) = read else { return };
                to_gateway.write_all(&down[..length]).await
            }
        };
        if carried.is_err() {
            return;
        }
    }
}

impl PlannedAttack {
    fn poison_after(&self, seen: &[u8]) -> Option<Vec<u8>> {
        let is_time = String::from_utf8_lossy(seen).contains(self.trigger);
        is_time.then(|| self.poison.lock().take())?
    }
}
