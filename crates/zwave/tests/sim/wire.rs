//! A broker in memory: every client receives every message, and new clients
//! receive the retained ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value as Json;
use tokio::sync::{mpsc, watch};
use toolgate_mqtt::{Mqtt, MqttMessage, MqttState, PublishError, TopicSubscription};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PublishedLine {
    pub topic: String,
    pub payload: Bytes,
    pub retained: bool,
}

impl PublishedLine {
    /// Null if it is empty.
    pub(crate) fn json(&self) -> Json {
        match self.payload.is_empty() {
            true => Json::Null,
            false => serde_json::from_slice(&self.payload).unwrap(),
        }
    }
}

#[derive(Clone)]
pub(crate) struct InMemoryBroker {
    inner: Arc<Mutex<BrokerTestState>>,
    state: watch::Sender<MqttState>,
}

#[derive(Default)]
struct BrokerTestState {
    log: Vec<PublishedLine>,
    kept: BTreeMap<String, Bytes>,
    subscribers: Vec<(String, mpsc::Sender<MqttMessage>)>,
}

impl InMemoryBroker {
    pub(crate) fn new() -> Self {
        Self {
            inner: Arc::default(),
            state: watch::Sender::new(MqttState::Online),
        }
    }

    pub(crate) fn client(&self) -> Self {
        self.clone()
    }

    pub(crate) fn take(&self) -> Vec<PublishedLine> {
        std::mem::take(&mut self.inner().log)
    }

    pub(crate) fn kept(&self) -> BTreeMap<String, Bytes> {
        self.inner().kept.clone()
    }

    /// Takes the broker down, or brings it back without its retained messages.
    pub(crate) fn set_online(&self, online: bool) {
        self.inner().kept.clear();
        self.state.send_replace(if online {
            MqttState::Online
        } else {
            MqttState::Offline {
                reason: "gone".to_owned(),
            }
        });
    }

    fn inner(&self) -> MutexGuard<'_, BrokerTestState> {
        self.inner.lock()
    }
}

impl Mqtt for InMemoryBroker {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        payload: Bytes,
        retain: bool,
    ) -> BoxFuture<'a, Result<(), PublishError>> {
        Box::pin(async move {
            if let MqttState::Offline { reason } = self.state.borrow().clone() {
                return Err(PublishError::Offline { reason });
            }
            let mut inner = self.inner();
            inner.log.push(PublishedLine {
                topic: topic.to_owned(),
                payload: payload.clone(),
                retained: retain,
            });
            if retain && payload.is_empty() {
                inner.kept.remove(topic);
            } else if retain {
                inner.kept.insert(topic.to_owned(), payload.clone());
            }
            inner.subscribers.retain(|(filter, sender)| {
                !topic.starts_with(filter.as_str())
                    || sender
                        .try_send(MqttMessage {
                            topic: topic.to_owned(),
                            payload: payload.clone(),
                            retained: false,
                        })
                        .is_ok()
            });
            Ok(())
        })
    }

    /// All filters in these tests end with `#`.
    fn subscribe(&self, filter: &str) -> TopicSubscription {
        let prefix = filter.strip_suffix('#').unwrap();
        let (sender, receiver) = mpsc::channel(100_000);
        let mut inner = self.inner();
        let kept = inner.kept.iter();
        for (topic, payload) in kept.filter(|(topic, _)| topic.starts_with(prefix)) {
            let message = MqttMessage {
                topic: topic.clone(),
                payload: payload.clone(),
                retained: true,
            };
            sender.try_send(message).unwrap();
        }
        inner.subscribers.push((prefix.to_owned(), sender));
        TopicSubscription::new(receiver)
    }

    fn state(&self) -> watch::Receiver<MqttState> {
        self.state.subscribe()
    }
}
