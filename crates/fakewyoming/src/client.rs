//! Somebody who asks a Wyoming service, with the codec of the doubles.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::Got;
use crate::frame::{event, read};

/// A connection to a service.
pub struct Client(BufReader<TcpStream>);

impl Client {
    /// Connects to an address such as `tcp://127.0.0.1:10300`.
    pub async fn connect(address: &str) -> io::Result<Self> {
        let address = address.strip_prefix("tcp://").unwrap_or(address);
        Ok(Self(BufReader::new(TcpStream::connect(address).await?)))
    }

    /// Sends an event.
    pub async fn send(&mut self, kind: &str, data: &Value, payload: &[u8]) -> io::Result<()> {
        self.0.write_all(&event(kind, data, payload)).await
    }

    /// The next event of one of these kinds; all others are passed over.
    pub async fn wait_for(&mut self, kinds: &[&str]) -> io::Result<Got> {
        loop {
            let got = read(&mut self.0).await?;
            let got = got.ok_or(io::ErrorKind::UnexpectedEof)?;
            if kinds.contains(&got.kind.as_str()) {
                return Ok(got);
            }
        }
    }
}
