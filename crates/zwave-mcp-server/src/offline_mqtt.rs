//! The connection of a server without a usable broker address.

use bytes::Bytes;
use futures::future::{self, BoxFuture, FutureExt};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use toolgate_mqtt::{Mqtt, MqttMessage, MqttState, PublishError, TopicSubscription};

/// Always offline with the given reason, so that the tools can report it.
pub(crate) struct OfflineMqtt {
    state: watch::Sender<MqttState>,
    reason: String,
    /// Kept open, because a subscription whose sender is dropped would end.
    open_subscriptions: Mutex<Vec<mpsc::Sender<MqttMessage>>>,
}

impl OfflineMqtt {
    pub(crate) fn new(reason: String) -> Self {
        let state = MqttState::Offline {
            reason: reason.clone(),
        };
        Self {
            state: watch::Sender::new(state),
            reason,
            open_subscriptions: Mutex::default(),
        }
    }
}

impl Mqtt for OfflineMqtt {
    fn publish<'a>(
        &'a self,
        _: &'a str,
        _: Bytes,
        _: bool,
    ) -> BoxFuture<'a, Result<(), PublishError>> {
        future::ready(Err(PublishError::Offline {
            reason: self.reason.clone(),
        }))
        .boxed()
    }

    fn subscribe(&self, _: &str) -> TopicSubscription {
        let (sender, receiver) = mpsc::channel(1);
        self.open_subscriptions.lock().push(sender);
        TopicSubscription::new(receiver)
    }

    fn state(&self) -> watch::Receiver<MqttState> {
        self.state.subscribe()
    }
}
