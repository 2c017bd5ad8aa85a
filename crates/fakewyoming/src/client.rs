//! A client of Wyoming services, with the fakes' own codec.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::ReceivedEvent;
use crate::frame::{encode_event, read_event};

/// A client that sends and receives plain events.
pub struct WyomingTestClient(BufReader<TcpStream>);

impl WyomingTestClient {
    /// Connects to an address such as `tcp://127.0.0.1:10300`.
    pub async fn connect(address: &str) -> io::Result<Self> {
        let address = address.strip_prefix("tcp://").unwrap_or(address);
        Ok(Self(BufReader::new(TcpStream::connect(address).await?)))
    }

    pub async fn send(&mut self, kind: &str, data: &Value, payload: &[u8]) -> io::Result<()> {
        self.0.write_all(&encode_event(kind, data, payload)).await
    }

    /// Waits for the next event of one of these kinds and skips all others.
    pub async fn wait_for(&mut self, kinds: &[&str]) -> io::Result<ReceivedEvent> {
        loop {
            let got = read_event(&mut self.0).await?;
            let got = got.ok_or(io::ErrorKind::UnexpectedEof)?;
            if kinds.contains(&got.kind.as_str()) {
                return Ok(got);
            }
        }
    }
}
