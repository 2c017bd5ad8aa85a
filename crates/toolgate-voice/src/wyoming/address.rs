//! The address of a Wyoming service.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use toolgate_net::is_local_host;

/// Where a Wyoming service listens: `tcp://host:port` or `unix:///path`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WyomingAddress {
    Tcp {
        /// IPv6 addresses have no brackets here.
        host: String,
        port: u16,
    },
    Unix(PathBuf),
}

impl WyomingAddress {
    /// True if connecting here may reach a listener of this machine at `listener`. Host names are
    /// not resolved, except `localhost`.
    pub fn may_reach(&self, listener: &Self) -> bool {
        match (self, listener) {
            (Self::Unix(path), Self::Unix(listener)) => path == listener,
            (
                Self::Tcp { host, port },
                Self::Tcp {
                    host: at,
                    port: taken,
                },
            ) => {
                let is_same =
                    host.eq_ignore_ascii_case(at) || is_local_host(host) && is_local_host(at);
                // With port 0, the system picks a port that nobody uses.
                port == taken && *port != 0 && is_same
            }
            _ => false,
        }
    }
}

/// A text that is not a [`WyomingAddress`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is not a Wyoming address: write tcp://host:port, with a port up to 65535, or unix:///path"
)]
pub struct WyomingAddressError {
    text: String,
}

impl FromStr for WyomingAddress {
    type Err = WyomingAddressError;

    fn from_str(text: &str) -> Result<Self, WyomingAddressError> {
        parse(text).ok_or_else(|| WyomingAddressError {
            text: super::frame::excerpt(text),
        })
    }
}

fn parse(text: &str) -> Option<WyomingAddress> {
    if let Some(path) = text.strip_prefix("unix://") {
        let usable = path.starts_with('/') && !path.ends_with('/') && !path.contains('\0');
        return usable.then(|| WyomingAddress::Unix(path.into()));
    }
    let (host, port) = text.strip_prefix("tcp://")?.rsplit_once(':')?;
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return None; // `+80` would parse.
    }
    let port = port.parse().ok()?;
    let host = match host.strip_prefix('[') {
        Some(host) => host
            .strip_suffix(']')
            .filter(|host| host.parse::<std::net::Ipv6Addr>().is_ok())?,
        None => Some(host).filter(|host| is_name(host))?,
    };
    Some(WyomingAddress::Tcp {
        host: host.to_owned(),
        port,
    })
}

// Rejected here because a resolver takes seconds to reject it.
fn is_name(host: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    !host.is_empty() && host.len() <= 255 && host.chars().all(is_of_name)
}

impl fmt::Display for WyomingAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "tcp://[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "tcp://{host}:{port}"),
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip() {
        for text in [
            "tcp://127.0.0.1:10300",
            "tcp://homeassistant.local:0",
            "tcp://[::1]:65535",
            "tcp://küche:10700",
            "unix:///run/wyoming/piper.sock",
        ] {
            assert_eq!(text.parse::<WyomingAddress>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn address_may_reach_a_listener_at_the_same_place() {
        for (address, listener, reaches) in [
            ("tcp://127.0.0.1:10200", "tcp://127.0.0.1:10200", true),
            ("tcp://localhost:10200", "tcp://127.0.0.1:10200", true),
            ("tcp://127.0.0.1:10200", "tcp://0.0.0.0:10200", true),
            ("tcp://0.0.0.0:10200", "tcp://[::]:10200", true),
            ("tcp://[::1]:10200", "tcp://[::]:10200", true),
            ("tcp://Hall:10200", "tcp://hall:10200", true),
            ("tcp://127.0.0.1:10200", "tcp://127.0.0.1:10201", false),
            ("tcp://127.0.0.1:0", "tcp://127.0.0.1:0", false),
            ("tcp://10.0.0.7:10200", "tcp://0.0.0.0:10200", false),
            ("tcp://10.0.0.7:10200", "tcp://127.0.0.1:10200", false),
            ("unix:///run/tts", "unix:///run/tts", true),
            ("unix:///run/tts", "unix:///run/other", false),
            ("unix:///run/tts", "tcp://127.0.0.1:10200", false),
        ] {
            let [from, to] =
                [address, listener].map(|text| text.parse::<WyomingAddress>().unwrap());
            assert_eq!(from.may_reach(&to), reaches, "{address} {listener}");
        }
    }

    #[test]
    fn invalid_address_is_rejected_with_the_expected_form() {
        for text in [
            "",
            "localhost:10300",
            "tcp://localhost",
            "tcp://:10300",
            "tcp://localhost:",
            "tcp://localhost:65536",
            "tcp://localhost:+80",
            "tcp://localhost:10300/",
            "tcp://user@localhost:10300",
            "tcp://a b:1",
            "tcp://::1:10300",
            "tcp://[::1:10300",
            "tcp://[localhost]:10300",
            "udp://localhost:10300",
            "stdio://",
            "unix://relative",
            "unix:///",
            "unix:///a\0b",
        ] {
            let error = text.parse::<WyomingAddress>().unwrap_err().to_string();
            assert!(
                error.ends_with("is not a Wyoming address: write tcp://host:port, with a port up to 65535, or unix:///path"),
                "{text}: {error}"
            );
        }
        let hostile = format!("tcp://\u{1b}[2J{}", "a".repeat(10_000));
        let error = hostile.parse::<WyomingAddress>().unwrap_err().to_string();
        assert!(error.len() < 400 && !error.contains('\u{1b}'), "{error}");
    }
}
