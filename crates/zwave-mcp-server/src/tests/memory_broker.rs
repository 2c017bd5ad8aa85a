//! A broker in memory, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use toolgate_mqtt::{Mqtt, MqttMessage, MqttState, PublishError, TopicSubscription};

/// Every subscriber receives every message, because all filters of this crate are `<prefix>/#`.
pub(crate) struct MemoryBroker {
    link: watch::Sender<MqttState>,
    kept: Mutex<BTreeMap<String, Bytes>>,
    subscribers: Mutex<Vec<mpsc::Sender<MqttMessage>>>,
    /// Messages on topics that end with `/set`, except API requests.
    commands: Mutex<Vec<(String, String)>>,
}

impl MemoryBroker {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            link: watch::Sender::new(MqttState::Online),
            kept: Mutex::default(),
            subscribers: Mutex::default(),
            commands: Mutex::default(),
        })
    }

    pub(crate) fn disconnect(&self, reason: &str) {
        self.link.send_replace(MqttState::Offline {
            reason: reason.to_owned(),
        });
    }

    pub(crate) fn commands(&self) -> Vec<(String, String)> {
        self.commands.lock().clone()
    }

    fn deliver(&self, topic: &str, payload: &Bytes, retain: bool) {
        if retain {
            self.kept.lock().insert(topic.to_owned(), payload.clone());
        }
        if topic.ends_with("/set") && !topic.contains("/_CLIENTS/") {
            let text = String::from_utf8(payload.to_vec()).unwrap();
            self.commands.lock().push((topic.to_owned(), text));
        }
        let message = MqttMessage {
            topic: topic.to_owned(),
            payload: payload.clone(),
            retained: false,
        };
        self.subscribers
            .lock()
            .retain(|subscriber| subscriber.try_send(message.clone()).is_ok());
    }
}

impl Mqtt for MemoryBroker {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        payload: Bytes,
        retain: bool,
    ) -> BoxFuture<'a, Result<(), PublishError>> {
        async move {
            if let MqttState::Offline { reason } = self.link.borrow().clone() {
                return Err(PublishError::Offline { reason });
            }
            self.deliver(topic, &payload, retain);
            Ok(())
        }
        .boxed()
    }

    fn subscribe(&self, _: &str) -> TopicSubscription {
        let (sender, receiver) = mpsc::channel(100_000);
        for (topic, payload) in self.kept.lock().iter() {
            let message = MqttMessage {
                topic: topic.clone(),
                payload: payload.clone(),
                retained: true,
            };
            sender.try_send(message).unwrap();
        }
        self.subscribers.lock().push(sender);
        TopicSubscription::new(receiver)
    }

    fn state(&self) -> watch::Receiver<MqttState> {
        self.link.subscribe()
    }
}
