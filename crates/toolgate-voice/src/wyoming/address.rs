//! Where a service is.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use toolgate_net::is_this_host;

/// Where a Wyoming service listens.
///
/// ```
/// use toolgate_voice::wyoming::Address;
///
/// let address: Address = "tcp://127.0.0.1:10300".parse().unwrap();
/// assert_eq!(address.to_string(), "tcp://127.0.0.1:10300");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Address {
    /// `tcp://host:port`.
    Tcp {
        /// A name or an address; IPv6 without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// `unix:///path`.
    Unix(PathBuf),
}

impl Address {
    /// True if whoever connects here may well be answered by a listener of this machine at `listener`. Names are not looked up,
    /// but for `localhost`.
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
                    host.eq_ignore_ascii_case(at) || is_this_host(host) && is_this_host(at);
                // Whoever leaves the port to the system gets one that nobody has.
                port == taken && *port != 0 && is_same
            }
            _ => false,
        }
    }
}

/// Text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is no Wyoming address: write tcp://host:port, with a port up to 65535, or unix:///path"
)]
pub struct AddressError {
    text: String,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        parse(text).ok_or_else(|| AddressError {
            text: super::frame::excerpt(text),
        })
    }
}

fn parse(text: &str) -> Option<Address> {
    if let Some(path) = text.strip_prefix("unix://") {
        let usable = path.starts_with('/') && !path.ends_with('/') && !path.contains('\0');
        return usable.then(|| Address::Unix(path.into()));
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
    Some(Address::Tcp {
        host: host.to_owned(),
        port,
    })
}

/// A name or an IPv4 address. What is none of both is better refused here than by a resolver that takes seconds.
fn is_name(host: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    !host.is_empty() && host.len() <= 255 && host.chars().all(is_of_name)
}

impl fmt::Display for Address {
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
    fn addresses_are_read_and_written_alike() {
        for text in [
            "tcp://127.0.0.1:10300",
            "tcp://homeassistant.local:0",
            "tcp://[::1]:65535",
            "tcp://küche:10700",
            "unix:///run/wyoming/piper.sock",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_address_may_reach_whoever_listens_at_it() {
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
            let [from, to] = [address, listener].map(|text| text.parse::<Address>().unwrap());
            assert_eq!(from.may_reach(&to), reaches, "{address} {listener}");
        }
    }

    #[test]
    fn what_is_no_address_is_told_with_what_to_write() {
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
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(
                error.ends_with("is no Wyoming address: write tcp://host:port, with a port up to 65535, or unix:///path"),
                "{text}: {error}"
            );
        }
        let hostile = format!("tcp://\u{1b}[2J{}", "a".repeat(10_000));
        let error = hostile.parse::<Address>().unwrap_err().to_string();
        assert!(error.len() < 400 && !error.contains('\u{1b}'), "{error}");
    }
}
