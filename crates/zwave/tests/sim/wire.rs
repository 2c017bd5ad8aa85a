//! A broker without a network: everybody hears what is published, and what is kept is told to newcomers.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value as Json;
use tokio::sync::{mpsc, watch};
use toolgate_mqtt::{Message, Mqtt, PublishError, State, Subscription};

/// Something that was published.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub topic: String,
    pub payload: Bytes,
    pub retained: bool,
}

impl Line {
    /// Null if it is empty.
    pub(crate) fn json(&self) -> Json {
        match self.payload.is_empty() {
            true => Json::Null,
            false => serde_json::from_slice(&self.payload).unwrap(),
        }
    }
}

#[derive(Clone)]
pub(crate) struct Wire {
    inner: Arc<Mutex<Inner>>,
    state: watch::Sender<State>,
}

#[derive(Default)]
struct Inner {
    log: Vec<Line>,
    kept: BTreeMap<String, Bytes>,
    ears: Vec<(String, mpsc::Sender<Message>)>,
}

impl Wire {
    pub(crate) fn new() -> Self {
        Self {
            inner: Arc::default(),
            state: watch::Sender::new(State::Online),
        }
    }

    pub(crate) fn client(&self) -> Self {
        self.clone()
    }

    /// What was published since the last call.
    pub(crate) fn take(&self) -> Vec<Line> {
        std::mem::take(&mut self.inner().log)
    }

    /// What is kept.
    pub(crate) fn kept(&self) -> BTreeMap<String, Bytes> {
        self.inner().kept.clone()
    }

    /// The broker goes away or comes back, having forgotten everything.
    pub(crate) fn set_online(&self, online: bool) {
        self.inner().kept.clear();
        self.state.send_replace(if online {
            State::Online
        } else {
            State::Offline {
                reason: "gone".to_owned(),
            }
        });
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Mqtt for Wire {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        payload: Bytes,
        retain: bool,
    ) -> BoxFuture<'a, Result<(), PublishError>> {
        Box::pin(async move {
            if let State::Offline { reason } = self.state.borrow().clone() {
                return Err(PublishError::Offline { reason });
            }
            let mut inner = self.inner();
            inner.log.push(Line {
                topic: topic.to_owned(),
                payload: payload.clone(),
                retained: retain,
            });
            if retain && payload.is_empty() {
                inner.kept.remove(topic);
            } else if retain {
                inner.kept.insert(topic.to_owned(), payload.clone());
            }
            inner.ears.retain(|(filter, ear)| {
                !topic.starts_with(filter.as_str())
                    || ear
                        .try_send(Message {
                            topic: topic.to_owned(),
                            payload: payload.clone(),
                            retained: false,
                        })
                        .is_ok()
            });
            Ok(())
        })
    }

    /// Filters end with `#`.
    fn subscribe(&self, filter: &str) -> Subscription {
        let prefix = filter.strip_suffix('#').unwrap();
        let (sender, receiver) = mpsc::channel(100_000);
        let mut inner = self.inner();
        let kept = inner.kept.iter();
        for (topic, payload) in kept.filter(|(topic, _)| topic.starts_with(prefix)) {
            let message = Message {
                topic: topic.clone(),
                payload: payload.clone(),
                retained: true,
            };
            sender.try_send(message).unwrap();
        }
        inner.ears.push((prefix.to_owned(), sender));
        Subscription::new(receiver)
    }

    fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }
}
