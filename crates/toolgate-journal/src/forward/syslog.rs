//! Sends records as syslog messages (RFC 5424).

use std::fs;
use std::io;
use std::net::{ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use super::ForwardRecord;
use crate::time;

/// Facility 13, log audit.
const FACILITY: u8 = 13;
const NOTICE: u8 = 5;
const WARNING: u8 = 4;
// Many receivers cut or refuse longer messages. Arguments and results are left out of these.
const MAX_MESSAGE_BYTES: usize = 8192;
const LONG_FIELDS: &str =
    "arguments asked executed result content details error hint renamed dropped";
const SEND_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct SyslogClient {
    address: SyslogAddress,
    host: String,
}

pub(super) enum SyslogAddress {
    Udp(String),
    Unix(PathBuf),
}

type SendDatagram = Box<dyn Fn(&[u8]) -> io::Result<usize>>;

impl SyslogClient {
    pub(super) fn new(address: SyslogAddress) -> Self {
        let names = ["/proc/sys/kernel/hostname", "/etc/hostname"];
        let host = names.iter().find_map(|file| fs::read_to_string(file).ok());
        let host = header_word(&host.unwrap_or_default(), 255);
        Self { address, host }
    }

    pub(super) fn send(&self, records: &[ForwardRecord]) -> io::Result<()> {
        let send = self.connect()?;
        records.iter().try_for_each(|record| {
            let message = message(&self.host, record);
            send(message.as_bytes()).map(drop)
        })
    }

    // Connects each time, because a restarted receiver has another socket.
    fn connect(&self) -> io::Result<SendDatagram> {
        match &self.address {
            SyslogAddress::Udp(address) => {
                let found = address.to_socket_addrs()?.next();
                let address = found.ok_or(io::ErrorKind::AddrNotAvailable)?;
                let any = if address.is_ipv4() {
                    "0.0.0.0:0"
                } else {
                    "[::]:0"
                };
                let socket = UdpSocket::bind(any)?;
                socket.set_write_timeout(Some(SEND_TIMEOUT))?;
                socket.connect(address)?;
                Ok(Box::new(move |bytes| socket.send(bytes)))
            }
            SyslogAddress::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.set_write_timeout(Some(SEND_TIMEOUT))?;
                socket.connect(path)?;
                Ok(Box::new(move |bytes| socket.send(bytes)))
            }
        }
    }
}

/// `<PRI>1 TIME HOST toolgate PID ID - JSON`.
fn message(host: &str, record: &ForwardRecord) -> String {
    let severity = if record.is_failure { WARNING } else { NOTICE };
    let priority = FACILITY * 8 + severity;
    let moment = time::timestamp(record.started_at);
    let pid = std::process::id();
    let id = header_word(&record.id, 32);
    let head = format!("<{priority}>1 {moment:.6} {host} toolgate {pid} {id} - ");
    let json = match head.len() + record.json.len() > MAX_MESSAGE_BYTES {
        true => shorten(&record.json),
        false => record.json.clone(),
    };
    head + &json
}

// Leaves out the long fields. The hash is still that of the whole record.
fn shorten(json: &str) -> String {
    let mut record: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    if let Some(fields) = record.as_object_mut() {
        for long in LONG_FIELDS.split(' ') {
            fields.shift_remove(long);
        }
        fields.insert("shortened".to_owned(), true.into());
    }
    record.to_string()
}

/// Keeps printable ASCII without spaces, as the header of a message requires.
fn header_word(text: &str, most: usize) -> String {
    let printable = text.chars().filter(char::is_ascii_graphic);
    match printable.take(most).collect::<String>() {
        empty if empty.is_empty() => "-".to_owned(),
        word => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_record_is_shortened_and_says_so() {
        let record = |text: usize| {
            ForwardRecord {
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
        assert!(long.len() < MAX_MESSAGE_BYTES && !long.contains("xxxx"));
        let json = r#"{"tool":"echo","chain":{"hash":"ab"},"shortened":true}"#;
        assert!(long.ends_with(json), "{long}");
    }
}
