//! The HTTP clients that all servers share: reading the machine's certificates takes longer than many calls.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use reqwest::{Client, Url, redirect};
use tokio::sync::OnceCell;

use super::endpoint::{Trouble, root};

const AGENT: &str = concat!("toolgate/", env!("CARGO_PKG_VERSION"));
const CONNECT: Duration = Duration::from_secs(10);
/// Less than the five seconds after which Node closes an idle connection: a request on a closing one would be lost.
const IDLE: Duration = Duration::from_secs(4);
const IDLE_CONNECTIONS: usize = 8;
/// Finds out that the other machine is gone while a stream is silent.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const MOST_HEADERS: usize = 100;

/// Belongs to one runtime: connections that are kept open live in it.
pub(crate) struct Shared {
    /// The bytes that one message of a server may have.
    pub(super) max_message: usize,
    local: OnceCell<Client>,
    outside: OnceCell<Client>,
}

impl Shared {
    /// `max_message`: the bytes that one message of a server may have.
    pub(crate) fn new(max_message: usize) -> Self {
        Self {
            max_message,
            local: OnceCell::new(),
            outside: OnceCell::new(),
        }
    }

    /// A proxy from the environment is used, but not to reach this machine itself.
    pub(super) async fn client(&self, url: &Url) -> Result<&Client, Trouble> {
        let local = is_loopback(url);
        let cell = if local { &self.local } else { &self.outside };
        cell.get_or_try_init(|| async move {
            tokio::task::spawn_blocking(move || client(local))
                .await
                .unwrap_or_else(|error| Err(error.to_string()))
        })
        .await
        .map_err(|cause| {
            Trouble::Unreachable(format!(
                "no HTTPS client could be made ({cause}); are the machine's CA certificates installed?"
            ))
        })
    }
}

fn client(local: bool) -> Result<Client, String> {
    toolgate_tls::provide();
    // Redirects are followed by hand: headers must not travel to an address nobody configured.
    let builder = Client::builder()
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .user_agent(AGENT)
        .connect_timeout(CONNECT)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .tcp_keepalive(KEEP_ALIVE)
        .tcp_keepalive_interval(KEEP_ALIVE)
        .tcp_keepalive_retries(3)
        .http1_max_headers(MOST_HEADERS);
    let builder = if local {
        // Both, whatever this machine's table of hosts says: servers listen on either. The port is the address's own.
        let both = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let both = both.map(|ip: IpAddr| SocketAddr::new(ip, 0));
        builder.no_proxy().resolve_to_addrs("localhost", &both)
    } else {
        builder
    };
    builder.build().map_err(|error| root(&error))
}

/// This machine, however it is written.
pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    match ip {
        Ok(ip) => ip.to_canonical().is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_all_its_names() {
        for (url, local) in [
            ("http://localhost:3000/mcp", true),
            ("http://LOCALHOST/", true),
            ("http://a.localhost/", true),
            ("http://127.0.0.1/", true),
            ("http://127.9.9.9/", true),
            ("http://0x7f000001/", true),
            ("http://[::1]:1/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://localhost.example.com/", false),
            ("http://192.168.0.1/", false),
            ("https://example.com/", false),
        ] {
            assert_eq!(is_loopback(&url.parse().unwrap()), local, "{url}");
        }
    }
}
