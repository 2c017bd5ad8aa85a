//! Listens on a port or a socket file.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use tokio::net::{TcpListener, UnixListener, UnixStream};
use tracing::debug;

use super::server::WyomingBindError;
use super::{WyomingAddress, WyomingConnection};

#[derive(Debug)]
pub(crate) struct WyomingListener {
    address: WyomingAddress,
    socket: ListenSocket,
}

#[derive(Debug)]
enum ListenSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl WyomingListener {
    pub(crate) async fn bind(address: &WyomingAddress) -> Result<Self, WyomingBindError> {
        open_listener(address)
            .await
            .map_err(|error| WyomingBindError {
                at: address.to_string(),
                why: match error.kind() {
                    io::ErrorKind::AddrInUse => {
                        "another program is already listening there".to_owned()
                    }
                    _ => error.to_string(),
                },
            })
    }

    pub(crate) fn address(&self) -> &WyomingAddress {
        &self.address
    }

    pub(crate) fn is_private(&self) -> bool {
        match &self.socket {
            ListenSocket::Tcp(listener) => listener
                .local_addr()
                .is_ok_and(|address| address.ip().to_canonical().is_loopback()),
            ListenSocket::Unix(_) => true,
        }
    }

    pub(super) async fn accept(&self) -> io::Result<WyomingConnection> {
        match &self.socket {
            ListenSocket::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // A broken connection fails again on its first read.
                if let Err(error) = stream.set_nodelay(true) {
                    debug!(%error, "a new Wyoming connection failed");
                }
                let (read, write) = stream.into_split();
                let at = format!("tcp://{peer}");
                Ok(WyomingConnection::from_streams(read, write, &at))
            }
            ListenSocket::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let (read, write) = stream.into_split();
                let at = self.address.to_string();
                Ok(WyomingConnection::from_streams(read, write, &at))
            }
        }
    }
}

impl Drop for WyomingListener {
    fn drop(&mut self) {
        if let WyomingAddress::Unix(path) = &self.address {
            // It may have been removed already.
            drop(fs::remove_file(path));
        }
    }
}

async fn open_listener(address: &WyomingAddress) -> io::Result<WyomingListener> {
    match address {
        WyomingAddress::Tcp { host, port } => {
            let listener = TcpListener::bind((host.as_str(), *port)).await?;
            let address = WyomingAddress::Tcp {
                host: host.clone(),
                port: listener.local_addr()?.port(),
            };
            let socket = ListenSocket::Tcp(listener);
            Ok(WyomingListener { address, socket })
        }
        WyomingAddress::Unix(path) => {
            remove_stale(path).await?;
            let socket = ListenSocket::Unix(UnixListener::bind(path)?);
            let address = address.clone();
            Ok(WyomingListener { address, socket })
        }
    }
}

// A killed program leaves its socket file. Only a socket is removed, and only if nobody answers.
async fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if !is_socket {
        return Ok(());
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Ok(()),
    }
}
