//! The HTTP clients that all servers share. Creating one is slow, because it
//! loads the machine's certificates.

use std::time::Duration;

use reqwest::{Client, Url};
use tokio::sync::OnceCell;
use toolgate_net::root_cause;

use super::endpoint::EndpointError;

// Shorter than the five seconds after which Node closes idle connections: a request sent on a
// closing connection would be lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
const MAX_IDLE_CONNECTIONS: usize = 8;

/// Must be used from one runtime only, because pooled connections live in it.
pub(crate) struct HttpClients {
    pub(super) max_message: usize,
    local: OnceCell<Client>,
    remote: OnceCell<Client>,
}

impl HttpClients {
    pub(crate) fn new(max_message: usize) -> Self {
        Self {
            max_message,
            local: OnceCell::new(),
            remote: OnceCell::new(),
        }
    }

    /// Returns the client for this address. The remote one uses proxies from the environment.
    pub(super) async fn client(&self, url: &Url) -> Result<&Client, EndpointError> {
        let is_local = toolgate_net::is_local_url(url);
        let cell = match is_local {
            true => &self.local,
            false => &self.remote,
        };
        cell.get_or_try_init(|| async move {
            // Reads certificate files, so it must not run on an async thread.
            tokio::task::spawn_blocking(move || build_client(is_local))
                .await
                .unwrap_or_else(|error| Err(error.to_string()))
        })
        .await
        .map_err(|cause| {
            EndpointError::Unreachable(format!(
                "the HTTPS client can't be created ({cause}); are the machine's CA certificates installed?"
            ).into())
        })
    }
}

fn build_client(is_local: bool) -> Result<Client, String> {
    toolgate_net::client_builder(is_local)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
        .build()
        .map_err(|error| root_cause(&error))
}
