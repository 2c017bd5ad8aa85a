//! What takes records.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::otlp::Collector;
use super::syslog::Syslog;
use super::{Forward, Record};

pub(super) enum Destination {
    Syslog(Syslog),
    File(PathBuf),
    Otlp(Collector),
}

impl Destination {
    pub(super) fn new(to: &Forward) -> Result<Self, String> {
        Ok(match to {
            Forward::SyslogUdp(address) => Self::Syslog(Syslog::udp(address)),
            Forward::SyslogUnix(path) => Self::Syslog(Syslog::unix(path)),
            Forward::File(path) => Self::File(path.clone()),
            Forward::Otlp(address) => Self::Otlp(Collector::new(address)?),
        })
    }

    /// All of them, or an error: then all come again.
    pub(super) fn send(&mut self, records: &[Record]) -> Result<(), String> {
        match self {
            Self::Syslog(syslog) => syslog.send(records).map_err(|error| error.to_string()),
            Self::File(path) => {
                append(path, records).map_err(|error| format!("{}: {error}", path.display()))
            }
            Self::Otlp(collector) => collector.send(records),
        }
    }
}

/// Opened each time: whoever rotates the file may move it away.
fn append(path: &Path, records: &[Record]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    let mut lines = String::new();
    for record in records {
        lines.push_str(&record.json);
        lines.push('\n');
    }
    file.write_all(lines.as_bytes())?;
    file.sync_data()
}
