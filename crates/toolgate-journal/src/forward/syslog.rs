//! Records as messages of RFC 5424.

use std::fs;
use std::io;
use std::net::{ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Record;
use crate::time;

/// Facility 13, log audit.
const FACILITY: u8 = 13;
const NOTICE: u8 = 5;
const WARNING: u8 = 4;
/// Longer messages many receivers cut or refuse. The arguments and the result are left out of these.
const LONGEST: usize = 8192;
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Syslog {
    address: Address,
    host: String,
}

enum Address {
    Udp(String),
    Unix(PathBuf),
}

enum Socket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

impl Syslog {
    pub(super) fn udp(address: &str) -> Self {
        Self::new(Address::Udp(address.to_owned()))
    }

    pub(super) fn unix(path: &Path) -> Self {
        Self::new(Address::Unix(path.to_owned()))
    }

    fn new(address: Address) -> Self {
        let names = ["/proc/sys/kernel/hostname", "/etc/hostname"];
        let host = names.iter().find_map(|file| fs::read_to_string(file).ok());
        let host = word(&host.unwrap_or_default(), 255);
        Self { address, host }
    }

    pub(super) fn send(&self, records: &[Record]) -> io::Result<()> {
        let socket = self.connect()?;
        for record in records {
            let message = message(&self.host, record);
            match &socket {
                Socket::Udp(socket) => socket.send(message.as_bytes())?,
                Socket::Unix(socket) => socket.send(message.as_bytes())?,
            };
        }
        Ok(())
    }

    /// Each time: a receiver that was started again has another socket.
    fn connect(&self) -> io::Result<Socket> {
        match &self.address {
            Address::Udp(address) => {
                let found = address.to_socket_addrs()?.next();
                let address = found.ok_or(io::ErrorKind::AddrNotAvailable)?;
                let any = if address.is_ipv4() {
                    "0.0.0.0:0"
                } else {
                    "[::]:0"
                };
                let socket = UdpSocket::bind(any)?;
                socket.set_write_timeout(Some(PATIENCE))?;
                socket.connect(address)?;
                Ok(Socket::Udp(socket))
            }
            Address::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.set_write_timeout(Some(PATIENCE))?;
                socket.connect(path)?;
                Ok(Socket::Unix(socket))
            }
        }
    }
}

/// `<PRI>1 TIME HOST toolgate PID ID - JSON`.
fn message(host: &str, record: &Record) -> String {
    let severity = if record.is_failure { WARNING } else { NOTICE };
    let priority = FACILITY * 8 + severity;
    let moment = time::timestamp(record.started_at);
    let pid = std::process::id();
    let id = word(&record.id, 32);
    let head = format!("<{priority}>1 {moment:.6} {host} toolgate {pid} {id} - ");
    let json = match head.len() + record.json.len() > LONGEST {
        true => shortened(&record.json),
        false => record.json.clone(),
    };
    head + &json
}

/// Without what is long; the hash is still that of the whole record.
fn shortened(json: &str) -> String {
    let mut record: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    if let Some(fields) = record.as_object_mut() {
        for long in [
            "arguments",
            "asked",
            "executed",
            "result",
            "content",
            "details",
            "error",
            "hint",
            "renamed",
            "dropped",
        ] {
            fields.shift_remove(long);
        }
        fields.insert("shortened".to_owned(), true.into());
    }
    record.to_string()
}

/// Printable ASCII without spaces, as the head of a message wants it.
fn word(text: &str, most: usize) -> String {
    let text: String = text
        .chars()
        .filter(char::is_ascii_graphic)
        .take(most)
        .collect();
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_record_is_shortened_and_says_so() {
        let record = |text: usize| {
            Record {
            started_at: 1_700_000_000_123_456,
            is_failure: true,
            tool: "echo".to_owned(),
            id: "0".repeat(32),
            trace_id: None,
            json: serde_json::json!({ "tool": "echo", "asked": "x".repeat(text), "chain": { "hash": "ab" } })
                .to_string(),
        }
        };
        let short = message("host", &record(10));
        let head = "<108>1 2023-11-14T22:13:20.123456Z host toolgate ";
        assert!(short.starts_with(head), "{short}");
        assert!(short.contains("xxxx"));
        let long = message("host", &record(10_000));
        assert!(long.len() < LONGEST && !long.contains("xxxx"));
        let json = r#"{"tool":"echo","chain":{"hash":"ab"},"shortened":true}"#;
        assert!(long.ends_with(json), "{long}");
    }
}
