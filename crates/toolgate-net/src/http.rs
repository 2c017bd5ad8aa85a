//! Builds HTTP clients, with the same rules in all crates.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use reqwest::{Client, ClientBuilder, redirect, retry};
use rustls::crypto::{CryptoProvider, ring};

const USER_AGENT: &str = concat!("toolgate/", env!("CARGO_PKG_VERSION"));
/// How long a connection may take to be established.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
// Detects a dead connection while a stream is silent.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const MAX_HEADERS: usize = 100;

/// Installs `ring` as the TLS provider of the process, unless there is one already.
///
/// It has to run before any client is built; [`client_builder`] calls it.
pub fn install_tls_provider() {
    if CryptoProvider::get_default().is_none()
        && ring::default_provider().install_default().is_err()
    {
        tracing::debug!("another thread installed its TLS provider first");
    }
}

/// Starts building an HTTP client with the rules of this project: no redirects, no retries, no
/// proxy for this machine.
///
/// Set `is_local` if it only connects to this machine: see [`is_local_url`](crate::is_local_url).
///
/// Building the client reads the machine's certificates, which takes longer than many requests:
/// build it once, and not on a thread of the async runtime.
pub fn client_builder(is_local: bool) -> ClientBuilder {
    install_tls_provider();
    let builder = Client::builder()
        // A redirect could send headers with keys to an address that nobody configured.
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
    // Try both families, whatever the hosts file says, because servers listen on either. The port
    // comes from the URL. A proxy from the environment can't reach this machine.
    let both: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let both = both.map(|ip| SocketAddr::new(ip, 0));
    builder.no_proxy().resolve_to_addrs("localhost", &both)
}

/// Returns the text of an error's innermost cause.
///
/// That is what a person needs to know; the outer errors only say that a request failed.
pub fn root_cause(error: &dyn Error) -> String {
    let mut root = error;
    while let Some(cause) = root.source() {
        root = cause;
    }
    root.to_string()
}
