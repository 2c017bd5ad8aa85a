//! The settings under `serve` in the configuration.

use std::collections::HashSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use toolgate_core::ToolPattern;
use toolgate_mcp::TaskSettings;

use crate::Right;

// Shorter tokens can be guessed.
const MIN_TOKEN_LEN: usize = 16;

/// Where the gateway listens, and who may connect.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(description = "The gateway over HTTP")]
#[non_exhaustive]
pub struct ServeSettings {
    /// The address to listen on; beyond this machine only with a token.
    #[serde(deserialize_with = "bind")]
    #[schemars(with = "String")]
    pub bind: SocketAddr,
    /// Names under which this gateway is reached, besides loopback names and the
    /// address it listens on.
    pub hosts: Vec<String>,
    /// Origins of pages that may use it, besides its own.
    pub origins: Vec<String>,
    /// The operator's token, which may use everything. Empty: no token is needed on loopback.
    pub token: String,
    /// More tokens, each with tools and rights of its own.
    pub tokens: Vec<TokenSettings>,
    /// Calls per second for each token or address; 0: no limit.
    pub rate: u32,
    /// Concurrent requests that may be calls, and as many that only read; further ones are
    /// told to try again.
    pub concurrency: usize,
    /// Connections that may be open at once.
    pub connections: usize,
    /// Whether servers may be added over HTTP, by URL only.
    pub add_servers: bool,
    /// Calls that MCP clients need not wait for.
    pub tasks: TaskSettings,
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
            tasks: TaskSettings::default(),
        }
    }
}

/// A token, the tools it may use and its rights.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TokenSettings {
    /// The secret itself.
    pub token: String,
    /// A name for the log.
    #[serde(default)]
    pub name: String,
    /// The only tools that it may use.
    #[schemars(with = "Vec<String>")]
    #[serde(default = "everything")]
    pub allow: Vec<ToolPattern>,
    /// What its holder may do besides calling tools; nothing by default.
    #[serde(default)]
    pub rights: Vec<Right>,
}

impl ServeSettings {
    /// What is wrong with these settings, as a sentence that says what to do.
    pub fn problem(&self) -> Option<String> {
        let tokens = self.problem_of_tokens();
        let names = || self.hosts.iter().find_map(|host| problem_of_host(host));
        let origins = || {
            self.origins
                .iter()
                .find_map(|origin| problem_of_origin(origin))
        };
        tokens
            .or_else(|| self.problem_of_bind(self.bind))
            .or_else(names)
            .or_else(origins)
            .or_else(|| self.problem_of_limits())
    }

    pub(crate) fn problem_of_bind(&self, bind: SocketAddr) -> Option<String> {
        let is_private = bind.ip().to_canonical().is_loopback();
        (!is_private && self.secrets().next().is_none()).then(|| {
            format!(
                "{bind} can be reached by others, and no token is set: set serve.token in the configuration \
                 (openssl rand -hex 32 makes one), or listen on 127.0.0.1"
            )
        })
    }

    /// All tokens that are set, `serve.token` first, each with its name in the configuration.
    fn secrets(&self) -> impl Iterator<Item = (String, &str)> {
        let more = self.tokens.iter().enumerate();
        let more = more.map(|(index, token)| (format!("serve.tokens[{index}]"), &*token.token));
        let first = "serve.token (or TOOLGATE_TOKEN)".to_owned();
        std::iter::once((first, &*self.token))
            .chain(more)
            .filter(|(_, token)| !token.is_empty())
    }

    fn problem_of_tokens(&self) -> Option<String> {
        if let Some(index) = self.tokens.iter().position(|token| token.token.is_empty()) {
            return Some(format!(
                "serve.tokens[{index}] has an empty token; give it one (openssl rand -hex 32 makes a good one), or leave the entry out"
            ));
        }
        let mut seen = HashSet::new();
        self.secrets().find_map(|(name, token)| {
            let length = token.chars().count();
            if length < MIN_TOKEN_LEN {
                Some(format!(
                    "{name} has {length} characters, which can be guessed; it needs at least {MIN_TOKEN_LEN} \
                     (openssl rand -hex 32 makes a good one)"
                ))
            } else if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                Some(format!(
                    "{name} has a space or a character that HTTP headers do not allow; use letters and digits \
                     (openssl rand -hex 32 makes a good one)"
                ))
            } else if !seen.insert(token) {
                Some(format!(
                    "{name} is the same as a token before it, so it appears twice; give each entry its own"
                ))
            } else {
                None
            }
        })
    }

    fn problem_of_limits(&self) -> Option<String> {
        if self.tasks.keep.is_zero() {
            let text = "serve.tasks.keep is 0, so no result could be fetched; leave it out or set at least 1s";
            return Some(text.to_owned());
        }
        let name = match (self.concurrency, self.connections) {
            (0, _) => "concurrency",
            (_, 0) => "connections",
            _ => return None,
        };
        Some(format!(
            "serve.{name} is 0, so nobody could connect; leave it out or set at least 1"
        ))
    }
}

impl fmt::Debug for ServeSettings {
    /// Leaves out the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServeSettings")
            .field("bind", &self.bind)
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .field("tokens", &self.tokens)
            .field("rate", &self.rate)
            .field("concurrency", &self.concurrency)
            .field("connections", &self.connections)
            .field("add_servers", &self.add_servers)
            .field("tasks", &self.tasks)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TokenSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSettings")
            .field("name", &self.name)
            .field("allow", &self.allow)
            .field("rights", &self.rights)
            .finish_non_exhaustive()
    }
}

/// Parses an address to listen on, with or without a port.
pub fn parse_bind(text: &str) -> Result<SocketAddr, String> {
    let default_port = ServeSettings::default().bind.port();
    let text = text.replacen("localhost", "127.0.0.1", 1);
    let ip = |text: &str| text.trim_matches(['[', ']']).parse::<IpAddr>();
    let port = text.rsplit_once(':').map(|(_, port)| port);
    match (text.parse(), ip(&text)) {
        (Ok(address), _) => Ok(address),
        (_, Ok(ip)) => Ok(SocketAddr::new(ip, default_port)),
        _ if port.is_some_and(|port| port.parse::<u64>().is_ok_and(|port| port > 65_535)) => {
            Err("ports go to 65535; write an address such as 127.0.0.1:7460".to_owned())
        }
        _ => {
            Err("must be an address of this machine and a port, such as 127.0.0.1:7460".to_owned())
        }
    }
}

fn bind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_bind(&text).map_err(de::Error::custom)
}

fn everything() -> Vec<ToolPattern> {
    vec![ToolPattern::new("*")]
}

fn problem_of_host(host: &str) -> Option<String> {
    let shown = toolgate_core::text::escape(host);
    if host.contains("://") {
        return Some(format!(
            "serve.hosts: '{shown}' is a whole address; write only the name, such as tools.example.org or tools.example.org:8443"
        ));
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    (host.is_empty() || !host.bytes().all(is_name)).then(|| {
        format!("serve.hosts: '{shown}' is not a host name; write it as tools.example.org, without * or /")
    })
}

fn problem_of_origin(origin: &str) -> Option<String> {
    let shown = toolgate_core::text::escape(origin);
    let rest = origin.split_once("://").map(|(_, rest)| rest);
    match rest {
        None => Some(format!(
            "serve.origins: '{shown}' has no scheme; write it as a browser does, such as https://tools.example.org"
        )),
        Some(host) if host.is_empty() || host.contains(['/', '*', ' ', '?', '#']) => Some(format!(
            "serve.origins: '{shown}' is more than an origin; write scheme, host and port only, without * or /"
        )),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const GOOD: &str = "0123456789abcdef";

    #[test]
    fn insecure_or_unusable_settings_are_refused() {
        let table = [
            (json!({}), None),
            (json!({ "token": "" }), None),
            (json!({ "bind": "127.9.9.9:1" }), None),
            (json!({ "bind": "[::1]:1" }), None),
            (json!({ "bind": "[::ffff:127.0.0.1]:1" }), None),
            (json!({ "bind": "0.0.0.0:7460", "token": GOOD }), None),
            (
                json!({ "bind": "0.0.0.0:7460", "tokens": [{ "token": GOOD }] }),
                None,
            ),
            (json!({ "bind": "0.0.0.0:7460" }), Some("no token is set")),
            (json!({ "bind": "[::]:7460" }), Some("no token is set")),
            (
                json!({ "bind": "192.168.1.5:7460", "token": "" }),
                Some("no token is set"),
            ),
            (json!({ "tokens": [{ "token": "" }] }), Some("empty token")),
            (json!({ "token": "hunter2" }), Some("has 7 characters")),
            (
                json!({ "tokens": [{ "token": GOOD }, { "token": "short" }] }),
                Some("serve.tokens[1] has 5 characters, which can be guessed"),
            ),
            (json!({ "token": "0123456789 abcdef" }), Some("space")),
            (
                json!({ "token": GOOD, "tokens": [{ "token": GOOD }] }),
                Some("serve.tokens[0] is the same"),
            ),
            (
                json!({ "hosts": ["tools.example.org", "10.0.0.1:8443", "[fd00::1]"] }),
                None,
            ),
            (
                json!({ "hosts": ["https://tools.example.org"] }),
                Some("whole address"),
            ),
            (json!({ "hosts": ["*"] }), Some("not a host name")),
            (json!({ "hosts": [""] }), Some("not a host name")),
            (
                json!({ "origins": ["https://tools.example.org", "vscode-webview://x"] }),
                None,
            ),
            (
                json!({ "origins": ["tools.example.org"] }),
                Some("no scheme"),
            ),
            (json!({ "origins": ["*"] }), Some("no scheme")),
            (json!({ "origins": ["https://*"] }), Some("without *")),
            (
                json!({ "origins": ["https://a.test/"] }),
                Some("more than an origin"),
            ),
            (json!({ "concurrency": 0 }), Some("concurrency")),
            (json!({ "connections": 0 }), Some("connections")),
        ];
        for (settings, expected) in table {
            let read: ServeSettings = serde_json::from_value(settings.clone()).unwrap();
            let problem = read.problem();
            match expected {
                None => assert_eq!(problem, None, "{settings}"),
                Some(part) => assert!(
                    problem
                        .as_deref()
                        .is_some_and(|problem| problem.contains(part)),
                    "{settings}: {problem:?}"
                ),
            }
            assert!(
                !problem.unwrap_or_default().contains("hunter2"),
                "{settings}"
            );
        }
    }

    #[test]
    fn debug_shows_no_token() {
        let settings = json!({ "token": GOOD, "tokens": [{ "token": format!("{GOOD}x"), "name": "kitchen" }] });
        let settings: ServeSettings = serde_json::from_value(settings).unwrap();
        let shown = format!("{settings:?}");
        assert!(
            shown.contains("kitchen") && !shown.contains(GOOD),
            "{shown}"
        );
    }

    #[test]
    fn an_address_needs_no_port() {
        for (text, expected) in [
            ("0.0.0.0", Some("0.0.0.0:7460")),
            ("[::1]:80", Some("[::1]:80")),
            ("::", Some("[::]:7460")),
            ("localhost:80", Some("127.0.0.1:80")),
            ("localhost", Some("127.0.0.1:7460")),
            ("example.org:80", None),
            ("80", None),
            ("", None),
        ] {
            let found = parse_bind(text).ok().map(|address| address.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        assert!(parse_bind("127.0.0.1:99999").is_err_and(|text| text.contains("65535")));
    }
}
