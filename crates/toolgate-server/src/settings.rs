//! The section `serve` of the configuration.

use std::fmt;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_core::Pattern;

/// Where the gateway listens, and who may come in.
///
/// ```
/// let settings = toolgate_server::ServeSettings::default();
/// assert_eq!(settings.bind.to_string(), "127.0.0.1:7460");
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(description = "The gateway over HTTP")]
#[non_exhaustive]
pub struct ServeSettings {
    /// The address to listen on; beyond this machine only with a token.
    #[schemars(with = "String")]
    pub bind: SocketAddr,
    /// Names under which this gateway is reached, besides loopback names and the address it listens on.
    pub hosts: Vec<String>,
    /// Origins of pages that may use it, besides its own.
    pub origins: Vec<String>,
    /// Who has it may use everything. Empty: no token is needed on loopback.
    pub token: String,
    /// More tokens, each with tools of its own.
    pub tokens: Vec<TokenSettings>,
    /// Calls per second that one token or address may ask for; 0: as many as there are.
    pub rate: u32,
    /// Requests that may be under way at once; more are told to come back.
    pub concurrency: usize,
    /// Connections that may be open at once.
    pub connections: usize,
    /// Whether servers may be added over HTTP, by URL only.
    pub add_servers: bool,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from(([127, 0, 0, 1], 7460)),
            hosts: Vec::new(),
            origins: Vec::new(),
            token: String::new(),
            tokens: Vec::new(),
            rate: 0,
            concurrency: 512,
            connections: 4096,
            add_servers: false,
        }
    }
}

/// A token and what it opens.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TokenSettings {
    /// The secret itself.
    pub token: String,
    /// A name for the log and the journal.
    #[serde(default)]
    pub name: String,
    /// Only these tools exist for it.
    #[schemars(with = "Vec<String>")]
    #[serde(default = "everything")]
    pub allow: Vec<Pattern>,
}

impl fmt::Debug for TokenSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSettings")
            .field("name", &self.name)
            .field("allow", &self.allow)
            .finish_non_exhaustive()
    }
}

fn everything() -> Vec<Pattern> {
    vec![Pattern::new("*")]
}
