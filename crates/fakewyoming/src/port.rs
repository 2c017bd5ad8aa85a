//! A port that stays taken while nobody listens on it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

/// A port of the loopback, for one listener after another. Whoever connects while there is none is refused.
///
/// A port that is merely free is given to the next who asks for any: to another test, or to an outgoing connection.
pub struct Port {
    address: SocketAddr,
    /// Bound, and never listens: the system offers the port to nobody, and who names it may listen on it.
    _held: TcpSocket,
}

impl Port {
    /// Takes one that nobody has.
    ///
    /// # Panics
    /// If there is no free port on the loopback.
    pub fn take() -> Self {
        held().unwrap_or_else(|error| panic!("no port on the loopback: {error}"))
    }

    /// `tcp://127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("tcp://{}", self.address)
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.address.port()
    }

    /// Listens there, until the listener is dropped.
    ///
    /// # Panics
    /// If somebody listens already.
    pub async fn listen(&self) -> TcpListener {
        let listener = TcpListener::bind(self.address).await;
        listener.unwrap_or_else(|error| panic!("{} is not ours: {error}", self.address))
    }
}

fn held() -> io::Result<Port> {
    let held = TcpSocket::new_v4()?;
    // Two sockets may have one port if both say so, and at most one listens.
    held.set_reuseaddr(true)?;
    held.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    Ok(Port {
        address: held.local_addr()?,
        _held: held,
    })
}
