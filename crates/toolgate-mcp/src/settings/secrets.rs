//! What of a server's settings must never be shown.

use super::{Connection, ServerSettings};

/// Shorter values are words and numbers that stand in any text, and hide nothing.
const SHORTEST: usize = 6;

impl ServerSettings {
    /// Values that no log, error or screen may show: those of its variables and headers, and what an address holds of them.
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets = Vec::new();
        match &self.connection {
            Connection::Stdio(program) => {
                let values = program
                    .env
                    .values()
                    .filter(|value| !is_plain_address(value));
                secrets.extend(values.cloned());
                program
                    .env
                    .values()
                    .for_each(|value| of_address(value, &mut secrets));
            }
            Connection::Http { url, headers } => {
                for (_, value) in &headers.0 {
                    secrets.push(value.clone());
                    // "Bearer abc": the token also turns up alone.
                    secrets.extend(value.split_once(' ').map(|(_, token)| token.to_owned()));
                }
                of_address(url, &mut secrets);
            }
        }
        secrets.retain(|secret| secret.len() >= SHORTEST);
        secrets
    }
}

/// The password and the values in the query of an address.
fn of_address(text: &str, secrets: &mut Vec<String>) {
    let Ok(url) = reqwest::Url::parse(text) else {
        return;
    };
    secrets.extend(url.password().map(str::to_owned));
    let query = url.query().unwrap_or_default();
    let values = query.split('&').filter_map(|pair| pair.split_once('='));
    secrets.extend(values.map(|(_, value)| value.to_owned()));
}

/// A host and a port: to hide them would only hide what could not be reached.
fn is_plain_address(text: &str) -> bool {
    reqwest::Url::parse(text).is_ok_and(|url| {
        let is_bare = url.username().is_empty() && url.password().is_none();
        let is_short = url.path().len() <= 1 && url.query().is_none() && url.fragment().is_none();
        url.has_host() && is_bare && is_short
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use crate::{Places, ServerSettings};

    fn secrets(entry: &Value) -> Vec<String> {
        let places = Places {
            folder: Path::new("/"),
            home: None,
        };
        ServerSettings::read("s", entry, places)
            .0
            .unwrap()
            .secrets()
    }

    #[test]
    fn values_of_variables_headers_and_addresses_are_secrets() {
        for (entry, expected) in [
            (
                json!({ "command": "x", "env": { "TOKEN": "abcdef-123", "LEVEL": "debug", "ON": "1" } }),
                &["abcdef-123"][..],
            ),
            (
                json!({ "command": "x", "env": { "MQTT_BROKER_URL": "mqtt://localhost:1883", "HOOK": "https://h/services/T/B" } }),
                &["https://h/services/T/B"],
            ),
            (
                json!({ "command": "x", "env": { "DB": "postgres://ada:s3cret-word@host/db" } }),
                &["postgres://ada:s3cret-word@host/db", "s3cret-word"],
            ),
            (
                json!({ "url": "https://ada:s3cret-word@h/mcp?apiKey=k-123456&v=1", "headers": { "Authorization": "Bearer tok-12345" } }),
                &["Bearer tok-12345", "tok-12345", "s3cret-word", "k-123456"],
            ),
        ] {
            assert_eq!(secrets(&entry), expected, "{entry}");
        }
    }

    #[test]
    fn settings_do_not_show_them() {
        let entry = json!({ "url": "https://h/", "headers": { "X-Key": "tok-12345" } });
        let places = Places {
            folder: Path::new("/"),
            home: None,
        };
        let settings = ServerSettings::read("s", &entry, places).0.unwrap();
        assert!(!format!("{settings:?}").contains("tok-12345"));
    }
}
