//! HTTP clients that all follow the same rules.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use reqwest::{Client, ClientBuilder, redirect, retry};
use rustls::crypto::{CryptoProvider, ring};

const USER_AGENT: &str = concat!("toolgate/", env!("CARGO_PKG_VERSION"));
/// How long a client waits for a connection unless it says otherwise.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Finds out that the other machine is gone while a stream is silent.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const MAX_HEADERS: usize = 100;

/// Makes `ring` the cryptography of TLS, unless the process has chosen already. Every client needs
/// it before it is built; [`client_builder`] calls it.
///
/// ```
/// toolgate_net::install_tls_provider();
/// toolgate_net::install_tls_provider();
/// assert!(rustls::crypto::CryptoProvider::get_default().is_some());
/// ```
pub fn install_tls_provider() {
    if CryptoProvider::get_default().is_none()
        && ring::default_provider().install_default().is_err()
    {
        tracing::debug!("another thread installed its TLS provider first");
    }
}

/// Starts an HTTP client with the rules that hold for all of ours. `is_local` says that it only
/// talks to this machine, see [`is_this_machine`](crate::is_this_machine).
///
/// Building it reads the machine's certificates, which takes longer than many requests: build it
/// once, and not on a thread that serves others.
///
/// ```
/// let client = toolgate_net::client_builder(true).build();
/// assert!(client.is_ok());
/// ```
pub fn client_builder(is_local: bool) -> ClientBuilder {
    install_tls_provider();
    let builder = Client::builder()
        // A redirect would carry headers with keys to an address nobody configured.
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(KEEP_ALIVE)
        .tcp_keepalive_interval(KEEP_ALIVE)
        .tcp_keepalive_retries(3)
        .http1_max_headers(MAX_HEADERS);
    if !is_local {
        return builder;
    }
    // Both, whatever this machine's table of hosts says: servers listen on either. The port is the
    // URL's own. A proxy from the environment can't reach this machine.
    let both: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let both = both.map(|ip| SocketAddr::new(ip, 0));
    builder.no_proxy().resolve_to_addrs("localhost", &both)
}

/// The innermost cause of an error, which is what a person needs to know: the layers around it only
/// say that a request failed.
pub fn root_cause(error: &dyn Error) -> String {
    let mut root = error;
    while let Some(cause) = root.source() {
        root = cause;
    }
    root.to_string()
}
