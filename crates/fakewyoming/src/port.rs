//! A port that stays reserved while nobody listens on it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

/// A reserved port of the loopback, for one listener after another. While there is no
/// listener, connections are refused.
///
/// The system could give an unreserved port to another test or to an outgoing connection.
pub struct Port {
    address: SocketAddr,
    /// Bound but never listening: the system gives the port to nobody, but a socket that names it
    /// may listen on it.
    _held: TcpSocket,
}

impl Port {
    /// # Panics
    /// If no port is free on the loopback.
    pub fn reserve() -> Self {
        reserve_port().unwrap_or_else(|error| panic!("no port on the loopback: {error}"))
    }

    pub fn address(&self) -> String {
        format!("tcp://{}", self.address)
    }

    pub fn number(&self) -> u16 {
        self.address.port()
    }

    /// Listens there, until the listener is dropped.
    ///
    /// # Panics
    /// If another process already listens on it.
    pub async fn listen(&self) -> TcpListener {
        let listener = TcpListener::bind(self.address).await;
        listener.unwrap_or_else(|error| panic!("{} is not ours: {error}", self.address))
    }
}

fn reserve_port() -> io::Result<Port> {
    let held = TcpSocket::new_v4()?;
    // Two sockets may share a port if both ask for it, and at most one listens.
    held.set_reuseaddr(true)?;
    held.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    Ok(Port {
        address: held.local_addr()?,
        _held: held,
    })
}
