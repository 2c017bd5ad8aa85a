//! The connection of a server that was told no usable address.

use bytes::Bytes;
use futures::future::{self, BoxFuture, FutureExt};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use toolgate_mqtt::{Message, Mqtt, PublishError, State, Subscription};

/// Always offline, and says why: the tools then can.
pub(crate) struct OfflineMqtt {
    state: watch::Sender<State>,
    reason: String,
    /// Of subscriptions on which nothing ever comes.
    silent: Mutex<Vec<mpsc::Sender<Message>>>,
}

impl OfflineMqtt {
    pub(crate) fn new(reason: String) -> Self {
        let state = State::Offline {
            reason: reason.clone(),
        };
        Self {
            state: watch::Sender::new(state),
            reason,
            silent: Mutex::default(),
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

    fn subscribe(&self, _: &str) -> Subscription {
        let (sender, receiver) = mpsc::channel(1);
        self.silent.lock().push(sender);
        Subscription::new(receiver)
    }

    fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }
}
