//! The section `mqtt` of the configuration.

use std::fmt;

use serde::Deserialize;
use toolgate_mqtt::{BrokerAddressError, MqttClientSettings};

/// The broker to which the voice gateway publishes what it hears and says.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(
    test,
    schemars(
        description = "The MQTT broker to which the voice gateway publishes what it hears and says"
    )
)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct MqttSettings {
    /// Its address, such as `mqtt://localhost:1883`, or `mqtts://` for TLS; empty: no broker.
    pub(crate) url: String,
    /// The user name; empty: log in without one.
    pub(crate) username: String,
    /// The password, preferably as `${VAR}`; never shown.
    pub(crate) password: String,
}

impl MqttSettings {
    pub(crate) fn broker(&self) -> Result<Option<MqttClientSettings>, BrokerAddressError> {
        if self.url.is_empty() {
            return Ok(None);
        }
        let mut settings = MqttClientSettings::new(&self.url)?;
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        settings.username = given(&self.username).or(settings.username);
        settings.password = given(&self.password).or(settings.password);
        Ok(Some(settings))
    }
}

impl fmt::Debug for MqttSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.broker().map(|broker| broker.map(|one| one.address()));
        f.debug_struct("MqttSettings")
            .field("address", &address)
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_may_be_in_the_address_or_beside_it() {
        let login = |url: &str, username: &str, password: &str| {
            let settings = MqttSettings {
                url: url.to_owned(),
                username: username.to_owned(),
                password: password.to_owned(),
            };
            let broker = settings.broker().unwrap()?;
            Some((broker.address(), broker.username, broker.password))
        };
        let known = |name: &str, word: &str| {
            let address = "mqtt://h:1883".to_owned();
            Some((address, Some(name.to_owned()), Some(word.to_owned())))
        };
        assert_eq!(login("", "a", "b"), None);
        assert_eq!(login("h", "a", "b"), known("a", "b"));
        assert_eq!(login("mqtt://a:b@h", "", ""), known("a", "b"));
        assert_eq!(login("mqtt://a:b@h", "c", "d"), known("c", "d"));
        assert!(
            MqttSettings {
                url: "http://h".to_owned(),
                ..MqttSettings::default()
            }
            .broker()
            .is_err()
        );
    }

    #[test]
    fn a_password_is_not_shown() {
        let settings = MqttSettings {
            url: "mqtt://me:first-word@h".to_owned(),
            username: String::new(),
            password: "second-word".to_owned(),
        };
        assert!(!format!("{settings:?}").contains("word"), "{settings:?}");
    }
}
