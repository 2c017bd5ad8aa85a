//! The destinations of forwarded records.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::otlp::OtlpLogCollector;
use super::syslog::{SyslogAddress, SyslogClient};
use super::{ForwardRecord, ForwardTarget};
use crate::store::{create_private_folder, private_file};

pub(super) enum ForwardDestination {
    Syslog(SyslogClient),
    File(PathBuf),
    Otlp(OtlpLogCollector),
}

impl ForwardDestination {
    pub(super) fn new(to: &ForwardTarget) -> Result<Self, String> {
        Ok(match to {
            ForwardTarget::SyslogUdp(address) => {
                Self::Syslog(SyslogClient::new(SyslogAddress::Udp(address.clone())))
            }
            ForwardTarget::SyslogUnix(path) => {
                Self::Syslog(SyslogClient::new(SyslogAddress::Unix(path.clone())))
            }
            ForwardTarget::File(path) => Self::File(path.clone()),
            ForwardTarget::Otlp(address) => Self::Otlp(OtlpLogCollector::new(address)?),
        })
    }

    /// Sends all records or fails. After an error all of them are sent again.
    pub(super) fn send(&mut self, records: &[ForwardRecord]) -> Result<(), String> {
        match self {
            Self::Syslog(syslog) => syslog.send(records).map_err(|error| error.to_string()),
            Self::File(path) => {
                append(path, records).map_err(|error| format!("{}: {error}", path.display()))
            }
            Self::Otlp(collector) => collector.send(records),
        }
    }
}

// Opened each time, because log rotation may move the file away.
fn append(path: &Path, records: &[ForwardRecord]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        create_private_folder(folder)?;
    }
    let mut file = private_file().append(true).create(true).open(path)?;
    let mut lines = String::new();
    for record in records {
        lines.push_str(&record.json);
        lines.push('\n');
    }
    file.write_all(lines.as_bytes())?;
    file.sync_data()
}
