//! Where connections come in: a port or a socket file.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use tokio::net::{TcpListener, UnixListener, UnixStream};
use tracing::debug;

use super::server::BindError;
use super::{Address, Connection};

#[derive(Debug)]
pub(crate) struct Listener {
    address: Address,
    socket: Socket,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// A socket file that nobody listens on any more is replaced.
    pub(crate) async fn bind(address: &Address) -> Result<Self, BindError> {
        open(address).await.map_err(|error| BindError {
            at: address.to_string(),
            why: match error.kind() {
                io::ErrorKind::AddrInUse => "another program listens there already".to_owned(),
                _ => error.to_string(),
            },
        })
    }

    /// Where it listens; with the port it got, if it was left to the system.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// True if only programs of this machine can connect.
    pub(crate) fn is_private(&self) -> bool {
        match &self.socket {
            Socket::Tcp(listener) => listener
                .local_addr()
                .is_ok_and(|address| address.ip().to_canonical().is_loopback()),
            Socket::Unix(_) => true,
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Connection> {
        match &self.socket {
            Socket::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                if let Err(error) = stream.set_nodelay(true) {
                    debug!(%error, "a Wyoming connection broke"); // Whoever reads from it finds out.
                }
                let (read, write) = stream.into_split();
                Ok(Connection::over(read, write, &format!("tcp://{peer}")))
            }
            Socket::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let (read, write) = stream.into_split();
                Ok(Connection::over(read, write, &self.address.to_string()))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address {
            // Somebody else may have removed it before.
            drop(fs::remove_file(path));
        }
    }
}

async fn open(address: &Address) -> io::Result<Listener> {
    match address {
        Address::Tcp { host, port } => {
            let listener = TcpListener::bind((host.as_str(), *port)).await?;
            let address = Address::Tcp {
                host: host.clone(),
                port: listener.local_addr()?.port(),
            };
            Ok(Listener {
                address,
                socket: Socket::Tcp(listener),
            })
        }
        Address::Unix(path) => {
            remove_stale(path).await?;
            Ok(Listener {
                address: address.clone(),
                socket: Socket::Unix(UnixListener::bind(path)?),
            })
        }
    }
}

/// A program that was killed leaves its socket file. Only a socket is removed, and only if nobody answers.
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
