//! The key with which commands of the same user sign in to a gateway on this machine
//! that needs no token.
//!
//! It is stored in the state folder beside the journal, and grants no more than access to that
//! folder does: reading all calls, and acting on them. It can't approve a call.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use reqwest::Url;
use toolgate_server::{Gateway, ServeSettings};
use tracing::warn;

use crate::config::state_folder;
use crate::{file, wiring};

// Bytes. A longer file isn't one of ours.
const MAX_FILE_BYTES: u64 = 100;

/// The key file of a running gateway, removed on drop.
pub(crate) struct OperatorKeyFile(PathBuf);

impl OperatorKeyFile {
    /// Creates the gateway's key. `None` if tokens are configured, which commands use instead, or
    /// if the key can't be stored, which is logged.
    pub(crate) fn make(
        gateway: &Gateway,
        address: SocketAddr,
        settings: &ServeSettings,
    ) -> Option<Self> {
        if !settings.token.is_empty() || !settings.tokens.is_empty() {
            return None;
        }
        let (path, key) = (path(address)?, toolgate_server::random_key()?);
        if let Err(error) = write(&path, &key) {
            let path = path.display();
            warn!(
                "commands with --at can't sign in as the operator: {path} can't be written ({error})"
            );
            return None;
        }
        gateway.accept_command_key(&key);
        Some(Self(path))
    }
}

impl Drop for OperatorKeyFile {
    fn drop(&mut self) {
        // A file left behind is harmless: the next gateway has another key.
        drop(std::fs::remove_file(&self.0));
    }
}

pub(crate) fn find(base: &Url) -> Option<(SocketAddr, String)> {
    let port = base.port_or_known_default()?;
    let host = base.host_str()?.trim_matches(['[', ']']);
    let ips: Vec<IpAddr> = match host {
        "localhost" => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        host => host.parse().into_iter().collect(),
    };
    let loopback = ips.into_iter().filter(std::net::IpAddr::is_loopback);
    let mut addresses = loopback.map(|ip| SocketAddr::new(ip, port));
    addresses.find_map(|address| Some((address, read(&path(address)?)?)))
}

fn path(address: SocketAddr) -> Option<PathBuf> {
    let folder = state_folder(&wiring::environment)?;
    Some(folder.join("gateways").join(format!("{address}.key")))
}

fn write(path: &Path, key: &str) -> io::Result<()> {
    file::create_parent_folder(path)?;
    // A leftover of a killed gateway, or a link that an attacker placed.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new();
    let mut file = file.write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(key.as_bytes())
}

fn read(path: &Path) -> Option<String> {
    let file = std::fs::File::open(path).ok()?;
    let found = file.metadata().ok()?;
    let is_ours = found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0;
    let mut key = String::new();
    let read = is_ours.then(|| file.take(MAX_FILE_BYTES).read_to_string(&mut key));
    matches!(read, Some(Ok(1..))).then_some(key)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_read_only_where_nobody_else_can() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b.key");
        write(&path, "one").unwrap();
        write(&path, "two").unwrap();
        assert_eq!(read(&path).as_deref(), Some("two"));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o604)).unwrap();
        assert_eq!(read(&path), None);
    }

    #[test]
    fn no_key_goes_to_another_machine() {
        for url in ["http://192.0.2.1:7460/", "http://tools.example.org/"] {
            assert!(find(&Url::parse(url).unwrap()).is_none(), "{url}");
        }
    }
}
