//! How to reach a broker, and as whom.

use std::{fmt, path::PathBuf, time::Duration};

use bytes::Bytes;

/// How to reach a broker, and as whom.
///
/// ```
/// use toolgate_mqtt::Settings;
///
/// let mut settings = Settings::new("mqtts://broker.example")?;
/// settings.username = Some("house".to_owned());
/// settings.password = Some("sesame-123".to_owned());
/// assert_eq!(settings.address(), "mqtts://broker.example:8883");
/// assert!(!format!("{settings:?}").contains("sesame"));
/// # Ok::<(), toolgate_mqtt::BadAddress>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Settings {
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// As whom; taken from the address if it names one.
    pub username: Option<String>,
    /// Its password. Never shown.
    pub password: Option<String>,
    /// A file of PEM certificates: with `mqtts://` these alone are trusted. Without it, those of the system are.
    pub ca_file: Option<PathBuf>,
    /// How this client calls itself.
    pub client_id: ClientId,
    /// A connection on which nothing is heard for this long is given up. Whole seconds; it is 20.
    pub keep_alive: Duration,
    /// What the broker publishes if this program vanishes without saying goodbye.
    pub will: Option<Will>,
    /// Which MQTT to speak.
    pub version: Version,
    /// How many messages wait for a slow reader of one [`Subscription`](crate::Subscription) before new ones are dropped.
    pub queue: usize,
}

/// How a client calls itself: a broker lets only one of each name in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientId {
    /// This, and some random characters: two programs never are in each other's way.
    Prefix(String),
    /// Exactly this, for brokers that admit certain names alone.
    Exactly(String),
}

/// Which MQTT to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Version {
    /// 5, and 3.1.1 with a broker that knows no other.
    #[default]
    Any,
    /// 3.1.1 alone.
    V3,
    /// 5 alone.
    V5,
}

/// What the broker publishes if this program vanishes without saying goodbye.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Will {
    /// Where.
    pub topic: String,
    /// What.
    pub payload: Bytes,
    /// Whether the broker keeps it for those who come later.
    pub retain: bool,
}

/// This is no address of a broker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} Write it as mqtt://host:1883, or mqtts://host:8883 for TLS.")]
pub struct BadAddress(String);

impl Settings {
    /// `mqtt://host`, or `mqtts://host` for TLS; with `:port` if it is not the usual 1883 or 8883, and with `user:password@`
    /// before the host if you must. What people write elsewhere (`tcp://`, `ssl://`, no scheme at all) is understood.
    pub fn new(url: &str) -> Result<Self, BadAddress> {
        let url = url.trim();
        let (scheme, rest) = url.split_once("://").unwrap_or(("mqtt", url));
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "mqtt" | "tcp" => false,
            "mqtts" | "ssl" | "tls" => true,
            "ws" | "wss" => return Err(bad("MQTT over WebSocket is not supported.")),
            _ => {
                return Err(bad(
                    "The address of the broker has a scheme other than MQTT's.",
                ));
            }
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        // The last one: a password may hold another.
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        let (host, port) = host_and_port(place, if tls { 8883 } else { 1883 })?;
        let (username, password) = match user.map(|user| user.split_once(':').unwrap_or((user, "")))
        {
            Some((name, word)) => (
                Some(decoded(name)?),
                (!word.is_empty()).then(|| decoded(word)).transpose()?,
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
            client_id: ClientId::Prefix("toolgate".to_owned()),
            keep_alive: Duration::from_secs(20),
            will: None,
            version: Version::Any,
            queue: 20_000,
        })
    }

    /// The address, without anything secret.
    pub fn address(&self) -> String {
        let scheme = if self.tls { "mqtts" } else { "mqtt" };
        if self.host.contains(':') {
            format!("{scheme}://[{}]:{}", self.host, self.port)
        } else {
            format!("{scheme}://{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("address", &self.address())
            .field("username", &self.username)
            .field("password", &self.password.as_ref().map(|_| "[REDACTED]"))
            .field("ca_file", &self.ca_file)
            .field("client_id", &self.client_id)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Never quotes the address: it may hold a password.
fn bad(reason: &str) -> BadAddress {
    BadAddress(reason.to_owned())
}

fn host_and_port(place: &str, usual: u16) -> Result<(String, u16), BadAddress> {
    let (host, port) = if let Some(rest) = place.strip_prefix('[') {
        let (host, port) = rest
            .split_once(']')
            .ok_or_else(|| bad("The address of the broker lacks a ']'."))?;
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
        return Err(bad("The address of the broker has no proper host."));
    }
    let port = match port {
        Some(port) => port.parse().ok().filter(|port| *port != 0),
        None => Some(usual),
    };
    let port = port.ok_or_else(|| {
        bad("The address of the broker has a port that is no number from 1 to 65535.")
    })?;
    Ok((host.to_owned(), port))
}

/// `%40` is an `@`.
fn decoded(text: &str) -> Result<String, BadAddress> {
    let wrong = || {
        bad(
            "The user or the password in the address of the broker is not properly percent-encoded.",
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
            assert_eq!(Settings::new(url).unwrap().address(), address, "{url}");
        }
    }

    #[test]
    fn a_user_in_the_address_is_understood_and_never_shown() {
        let settings = Settings::new("mqtt://ho%40use:s%3A@cret-9@host:1").unwrap();
        assert_eq!(settings.username.as_deref(), Some("ho@use"));
        assert_eq!(settings.password.as_deref(), Some("s:@cret-9"));
        assert!(!format!("{settings:?}").contains("cret-9"));
        assert_eq!(Settings::new("mqtt://name@host").unwrap().password, None);
    }

    #[test]
    fn what_is_no_address_is_refused_without_quoting_it() {
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
            let error = Settings::new(url).unwrap_err().to_string();
            assert!(
                error.contains("mqtt://host:1883") && !error.contains("sesame"),
                "{url}: {error}"
            );
        }
    }
}
