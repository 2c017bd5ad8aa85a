//! The settings of a client's connection.

use std::{fmt, path::PathBuf, time::Duration};

use bytes::Bytes;

/// How to reach a broker, and with which credentials.
#[derive(Clone)]
#[non_exhaustive]
pub struct MqttClientSettings {
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub username: Option<String>,
    /// Never shown by `Debug` or in messages.
    pub password: Option<String>,
    /// PEM certificates to trust with `mqtts://` instead of the system's.
    pub ca_file: Option<PathBuf>,
    pub client_id: MqttClientId,
    /// How long a silent connection is kept, in whole seconds; 20 s by default.
    pub keep_alive: Duration,
    pub will: Option<LastWill>,
    pub version: MqttVersion,
    /// How many messages are queued for a slow reader of one
    /// `TopicSubscription` before new ones are dropped.
    pub queue: usize,
}

/// A client's id. A broker accepts only one client with each id.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MqttClientId {
    /// This and some random characters, so that two programs never use the same id.
    Prefix(String),
    Exactly(String),
}

/// The MQTT version that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MqttVersion {
    /// 5, or 3.1.1 with a broker that doesn't support 5.
    #[default]
    Any,
    V3,
    V5,
}

/// The message that the broker publishes if the connection ends without a DISCONNECT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastWill {
    pub topic: String,
    pub payload: Bytes,
    pub retain: bool,
}

/// Why a broker's URL can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} Write it as mqtt://host:1883, or mqtts://host:8883 for TLS.")]
pub struct BrokerAddressError(String);

impl MqttClientSettings {
    /// Parses `mqtt://host`, or `mqtts://host` for TLS, with `:port` if it is not 1883 or 8883 and
    /// optionally `user:password@` before the host. Other common forms (`tcp://`, `ssl://`, no
    /// scheme) are accepted too.
    pub fn new(url: &str) -> Result<Self, BrokerAddressError> {
        let url = url.trim();
        let (scheme, rest) = url.split_once("://").unwrap_or(("mqtt", url));
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "mqtt" | "tcp" => false,
            "mqtts" | "ssl" | "tls" => true,
            "ws" | "wss" => return Err(address_error("MQTT over WebSocket is not supported.")),
            _ => {
                return Err(address_error(
                    "The broker's address must start with mqtt:// or mqtts://.",
                ));
            }
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        // The last `@`, because a password may contain another one.
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        let (host, port) = host_and_port(place, if tls { 8883 } else { 1883 })?;
        let (username, password) = match user.map(|user| user.split_once(':').unwrap_or((user, "")))
        {
            Some((name, word)) => (
                Some(percent_decode(name)?),
                (!word.is_empty())
                    .then(|| percent_decode(word))
                    .transpose()?,
            ),
            None => (None, None),
        };
        Ok(Self {
            tls,
            host,
            port,
            username,
            password,
            ca_file: None,
            client_id: MqttClientId::Prefix("toolgate".to_owned()),
            keep_alive: Duration::from_secs(20),
            will: None,
            version: MqttVersion::Any,
            queue: 20_000,
        })
    }

    pub fn address(&self) -> String {
        let scheme = if self.tls { "mqtts" } else { "mqtt" };
        if self.host.contains(':') {
            format!("{scheme}://[{}]:{}", self.host, self.port)
        } else {
            format!("{scheme}://{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for MqttClientSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MqttClientSettings")
            .field("address", &self.address())
            .field("username", &self.username)
            .field("password", &self.password.as_ref().map(|_| "[REDACTED]"))
            .field("ca_file", &self.ca_file)
            .field("client_id", &self.client_id)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

// Never quotes the address: it may hold a password.
fn address_error(reason: &str) -> BrokerAddressError {
    BrokerAddressError(reason.to_owned())
}

fn host_and_port(place: &str, usual: u16) -> Result<(String, u16), BrokerAddressError> {
    let (host, port) = if let Some(rest) = place.strip_prefix('[') {
        let (host, port) = rest
            .split_once(']')
            .ok_or_else(|| address_error("The broker's address lacks a ']'."))?;
        (host, port.strip_prefix(':'))
    } else {
        match place.rsplit_once(':') {
            // More than one colon without brackets is an IPv6 address.
            Some((host, _)) if host.contains(':') => (place, None),
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        }
    };
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
    if host.is_empty() || host.len() > 255 || !host.chars().all(fits) {
        return Err(address_error(
            "The host in the broker's address is missing or invalid.",
        ));
    }
    let port = port.map_or(Some(usual), |port| {
        port.parse().ok().filter(|port| *port != 0)
    });
    let port = port.ok_or_else(|| {
        address_error("The port in the broker's address must be a number from 1 to 65535.")
    })?;
    Ok((host.to_owned(), port))
}

fn percent_decode(text: &str) -> Result<String, BrokerAddressError> {
    let wrong = || {
        address_error(
            "The user name or password in the broker's address is not percent-encoded correctly.",
        )
    };
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || {
            bytes
                .next()
                .and_then(|digit| char::from(digit).to_digit(16))
        };
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(wrong());
        };
        out.push(u8::try_from(high * 16 + low).map_err(|_| wrong())?);
    }
    String::from_utf8(out).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for (url, address) in [
            ("mqtt://localhost", "mqtt://localhost:1883"),
            ("mqtts://broker.example/", "mqtts://broker.example:8883"),
            ("tcp://10.0.0.7:1884", "mqtt://10.0.0.7:1884"),
            ("ssl://broker", "mqtts://broker:8883"),
            ("MQTT://Broker", "mqtt://Broker:1883"),
            ("broker.local:1885", "mqtt://broker.local:1885"),
            ("mqtt://[::1]:1886", "mqtt://[::1]:1886"),
            ("mqtt://::1", "mqtt://[::1]:1883"),
            (" mqtt://u:p@host ", "mqtt://host:1883"),
        ] {
            assert_eq!(
                MqttClientSettings::new(url).unwrap().address(),
                address,
                "{url}"
            );
        }
    }

    #[test]
    fn a_user_in_the_address_is_understood_and_never_shown() {
        let settings = MqttClientSettings::new("mqtt://ho%40use:s%3A@cret-9@host:1").unwrap();
        assert_eq!(settings.username.as_deref(), Some("ho@use"));
        assert_eq!(settings.password.as_deref(), Some("s:@cret-9"));
        assert!(!format!("{settings:?}").contains("cret-9"));
        assert_eq!(
            MqttClientSettings::new("mqtt://name@host")
                .unwrap()
                .password,
            None
        );
    }

    #[test]
    fn invalid_addresses_are_refused_without_quoting_them() {
        for url in [
            "",
            "mqtt://",
            "http://sesame-1@host",
            "ws://sesame-1:1@h",
            "mqtt://sesame-1@host:0",
            "mqtt://host:sesame-1",
            "mqtt://sesame-1@ho st",
            "mqtt://host/sesame-1",
            "mqtt://sesame-1%zz@host",
            "mqtt://[::1",
            "mqtt://u:%ff@host",
        ] {
            let error = MqttClientSettings::new(url).unwrap_err().to_string();
            assert!(
                error.contains("mqtt://host:1883") && !error.contains("sesame"),
                "{url}: {error}"
            );
        }
    }
}
