//! The settings under `approvals` in the configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use toolgate_core::text::{DURATION_PATTERN, deserialize_duration};

// Nobody reads a question in less.
const MIN_TIMEOUT: Duration = Duration::from_secs(5);
// Longer questions are forgotten, and each keeps its call in memory.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// How people learn that a call waits for approval, or that a server asks something.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(
    description = "How people learn that a call waits for approval, or that a server asks something"
)]
#[non_exhaustive]
pub struct ApprovalSettings {
    /// How long a call waits for a person's approval, and a server for a person's answer.
    #[serde(deserialize_with = "timeout")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub timeout: Duration,
    /// Whom `toolgate serve` notifies while nobody has answered at the dashboard.
    pub notify: NotifySettings,
}

impl Default for ApprovalSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(120),
            notify: NotifySettings::default(),
        }
    }
}

/// Where notifications go. They lead to the dashboard, and never approve anything by themselves.
#[derive(Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotifySettings {
    /// The URL that receives each notification as a POST with JSON; empty: none.
    pub webhook: String,
    /// Headers of that request, such as `Authorization`; never shown.
    pub headers: BTreeMap<String, String>,
    /// The topic on the broker of `mqtt.url` that each notification is published to; empty: none.
    pub mqtt: String,
    /// The address of the dashboard for the link, such as `https://tools.example.org`; empty: the
    /// address that the gateway listens on.
    pub dashboard: String,
}

fn timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let timeout = deserialize_duration(deserializer)?;
    match (MIN_TIMEOUT..=MAX_TIMEOUT).contains(&timeout) {
        true => Ok(timeout),
        false => Err(de::Error::custom("must be from 5s to 24h")),
    }
}

impl NotifySettings {
    /// What is wrong with these settings, with the key first, as a sentence that says what to do.
    pub fn problem(&self) -> Option<String> {
        let wrong = |key: &str, text: &str| Some(format!("approvals.notify.{key}: {text}"));
        let is_page = |text: &str| {
            let url = Url::parse(text).ok();
            url.is_some_and(|url| matches!(url.scheme(), "http" | "https"))
        };
        // The values aren't quoted, because they may contain passwords.
        if !self.webhook.is_empty() && !is_page(&self.webhook) {
            return wrong(
                "webhook",
                "must be an address such as https://example.org/hook",
            );
        }
        if !self.dashboard.is_empty() && !is_page(&self.dashboard) {
            return wrong(
                "dashboard",
                "must be an address such as https://tools.example.org",
            );
        }
        if self.webhook.is_empty() && !self.headers.is_empty() {
            return wrong("headers", "has no effect without approvals.notify.webhook");
        }
        let bad_header = self.headers.iter().find(|(name, value)| {
            name.parse::<HeaderName>().is_err() || value.parse::<HeaderValue>().is_err()
        });
        if let Some((name, _)) = bad_header {
            let name = toolgate_core::text::escape(name);
            return wrong(
                "headers",
                &format!("'{name}' is not a header that HTTP allows"),
            );
        }
        let is_filter = self.mqtt.contains(['+', '#', '\0']) || self.mqtt.len() > 1000;
        match is_filter {
            true => wrong(
                "mqtt",
                "must be a topic without + and #, such as home/toolgate",
            ),
            false => None,
        }
    }

    /// The values that must not be shown.
    pub fn secrets(&self) -> impl Iterator<Item = String> + '_ {
        let in_url = Url::parse(&self.webhook).ok();
        let in_url = in_url.and_then(|url| url.password().map(str::to_owned));
        self.headers.values().cloned().chain(in_url)
    }
}

impl fmt::Debug for NotifySettings {
    /// Leaves out what may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotifySettings")
            .field("has_webhook", &!self.webhook.is_empty())
            .field("headers", &self.headers.keys())
            .field("mqtt", &self.mqtt)
            .field("dashboard", &self.dashboard)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_time_to_answer_is_bounded() {
        let read = |timeout: &str| {
            let settings = json!({ "timeout": timeout });
            let settings = serde_json::from_value::<ApprovalSettings>(settings);
            settings.map(|settings| settings.timeout.as_secs())
        };
        assert_eq!(ApprovalSettings::default().timeout.as_secs(), 120);
        assert_eq!(read("10m").ok(), Some(600));
        for wrong in ["1s", "25h", "soon"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn mistakes_are_named_with_their_key_and_without_secrets() {
        for (settings, problem) in [
            (json!({}), None),
            (
                json!({ "webhook": "https://h/x", "headers": { "Authorization": "Bearer word" } }),
                None,
            ),
            (
                json!({ "mqtt": "home/toolgate", "dashboard": "https://h" }),
                None,
            ),
            (
                json!({ "webhook": "secret-word" }),
                Some("approvals.notify.webhook: "),
            ),
            (
                json!({ "webhook": "file:///etc/passwd" }),
                Some("approvals.notify.webhook: "),
            ),
            (
                json!({ "headers": { "a": "b" } }),
                Some("approvals.notify.headers: "),
            ),
            (
                json!({ "webhook": "https://h/", "headers": { "a b": "secret-word" } }),
                Some("approvals.notify.headers: "),
            ),
            (
                json!({ "webhook": "https://h/", "headers": { "a": "secret-word\n" } }),
                Some("approvals.notify.headers: "),
            ),
            (json!({ "mqtt": "home/#" }), Some("approvals.notify.mqtt: ")),
            (
                json!({ "dashboard": "h" }),
                Some("approvals.notify.dashboard: "),
            ),
        ] {
            let settings: NotifySettings = serde_json::from_value(settings).unwrap();
            let found = settings.problem();
            assert_eq!(found.is_some(), problem.is_some(), "{found:?}");
            let found = found.unwrap_or_default();
            assert!(found.starts_with(problem.unwrap_or_default()), "{found}");
            assert!(!found.contains("secret-word"), "{found}");
            assert!(!format!("{settings:?}").contains("word"), "{settings:?}");
        }
    }
}
