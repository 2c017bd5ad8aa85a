//! Tells people who aren't at the dashboard that something waits for them, with a webhook or with
//! another channel that the program adds.
//!
//! A notification grants nothing. Its link leads to the dashboard, which asks
//! for the usual sign-in.

mod settings;
mod webhook;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;
use toolgate_core::Redactor;
use tracing::{info, warn};

pub use settings::{ApprovalSettings, NotifySettings};
pub use webhook::Webhook;

/// An open dashboard gets this long before anybody is notified elsewhere.
pub(crate) const DASHBOARD_FIRST: Duration = Duration::from_secs(15);
// Attempts to deliver one notification, with growing pauses between them.
const ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
// More in one minute tell a person nothing, and would let a caller flood them.
const MAX_PER_MINUTE: usize = 20;
const MINUTE: Duration = Duration::from_secs(60);

/// Delivers notifications to people who don't have the dashboard open. Implementations limit the
/// time of one attempt.
pub trait NotificationChannel: Send + Sync {
    /// Says in the log where notifications go, without secrets.
    fn describe(&self) -> String;

    /// Sends it once. `notification` is a JSON object.
    fn send<'a>(&'a self, notification: &'a str) -> BoxFuture<'a, Result<(), DeliveryError>>;
}

/// Why a notification wasn't delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct DeliveryError {
    pub text: String,
    /// False if another attempt would fail as well.
    pub may_retry: bool,
}

/// What waits for a person, as it is sent.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Notification {
    /// `approval` or `question`.
    pub(crate) event: &'static str,
    pub(crate) id: String,
    /// One sentence with all that matters.
    pub(crate) text: String,
    pub(crate) tool: String,
    pub(crate) server: Option<String>,
    pub(crate) origin: String,
    pub(crate) caller: Option<String>,
    /// Redacted; a string with the beginning if they are long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<Value>,
    /// What a server asks: untrusted text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) question: Option<String>,
    pub(crate) asked_at: String,
    pub(crate) expires_at: String,
    /// Where to answer. Empty until the gateway listens.
    pub(crate) link: String,
}

/// Notifies people through all channels.
pub(crate) struct Notifier {
    channels: Vec<Arc<dyn NotificationChannel>>,
    redactor: Redactor,
    // When the latest were sent.
    recent: Mutex<VecDeque<Instant>>,
}

impl Notifier {
    pub(crate) fn new(channels: Vec<Arc<dyn NotificationChannel>>, redactor: Redactor) -> Self {
        Self {
            channels,
            redactor,
            recent: Mutex::default(),
        }
    }

    /// Sends one notification. Returns whether at least one channel took it. Dropping the future
    /// ends all further attempts to deliver it.
    pub(crate) async fn notify(&self, notification: &Notification) -> bool {
        let (event, id) = (notification.event, &notification.id);
        if !self.may_send() {
            warn!(%event, %id, "notification left out: more than {MAX_PER_MINUTE} in a minute"
            );
            return false;
        }
        let body = serde_json::to_string(notification).unwrap_or_default();
        let channels = self.channels.iter();
        let sent = channels.map(|channel| self.send(&**channel, &body, notification));
        join_all(sent).await.contains(&true)
    }

    async fn send(
        &self,
        channel: &dyn NotificationChannel,
        body: &str,
        notification: &Notification,
    ) -> bool {
        let (event, id) = (notification.event, &notification.id);
        let to = self.redactor.line(&channel.describe(), 200);
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=ATTEMPTS {
            let error = match channel.send(body).await {
                Ok(()) => {
                    info!(%event, %id, %to, "notified of something that waits");
                    return true;
                }
                Err(error) => error,
            };
            let reason = self.redactor.line(&error.text, 300);
            if !error.may_retry || attempt == ATTEMPTS {
                warn!(%event, %id, %to, %reason, attempt, "notification not delivered");
                return false;
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        false
    }

    fn may_send(&self) -> bool {
        let mut recent = self.recent.lock();
        while recent.front().is_some_and(|sent| sent.elapsed() >= MINUTE) {
            recent.pop_front();
        }
        let may_send = recent.len() < MAX_PER_MINUTE;
        if may_send {
            recent.push_back(Instant::now());
        }
        may_send
    }
}

#[cfg(test)]
mod tests;
