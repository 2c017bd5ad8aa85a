//! The HTTP clients that all servers share: reading the machine's certificates takes longer than many calls.

use std::time::Duration;

use reqwest::{Client, Url};
use tokio::sync::OnceCell;
use toolgate_net::root_cause;

use super::endpoint::Trouble;

/// Less than the five seconds after which Node closes an idle connection: a request on a closing one would be lost.
const IDLE: Duration = Duration::from_secs(4);
const IDLE_CONNECTIONS: usize = 8;

/// Belongs to one runtime: connections that are kept open live in it.
pub(crate) struct Shared {
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
        let is_local = toolgate_net::is_this_machine(url);
        let cell = match is_local {
            true => &self.local,
            false => &self.outside,
        };
        cell.get_or_try_init(|| async move {
            tokio::task::spawn_blocking(move || client(is_local))
                .await
                .unwrap_or_else(|error| Err(error.to_string()))
        })
        .await
        .map_err(|cause| {
            Trouble::Unreachable(format!(
                "no HTTPS client could be made ({cause}); are the machine's CA certificates installed?"
            ).into())
        })
    }
}

fn client(is_local: bool) -> Result<Client, String> {
    toolgate_net::client_builder(is_local)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .build()
        .map_err(|error| root_cause(&error))
}
