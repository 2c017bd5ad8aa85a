//! A broker in memory, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use toolgate_mqtt::{Message, Mqtt, PublishError, State, Subscription};

/// Everybody gets everything: all of this crate's filters are `<prefix>/#`.
pub(crate) struct Memory {
    link: watch::Sender<State>,
    kept: Mutex<BTreeMap<String, Bytes>>,
    subscribers: Mutex<Vec<mpsc::Sender<Message>>>,
    /// What was published on topics that end with `/set`, but for questions to the gateway.
    commands: Mutex<Vec<(String, String)>>,
}

impl Memory {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            link: watch::Sender::new(State::Online),
            kept: Mutex::default(),
            subscribers: Mutex::default(),
            commands: Mutex::default(),
        })
    }

    /// The broker goes, for this reason.
    pub(crate) fn go(&self, reason: &str) {
        self.link.send_replace(State::Offline {
            reason: reason.to_owned(),
        });
    }

    /// What devices were told so far.
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
        let message = Message {
            topic: topic.to_owned(),
            payload: payload.clone(),
            retained: false,
        };
        self.subscribers
            .lock()
            .retain(|subscriber| subscriber.try_send(message.clone()).is_ok());
    }
}

impl Mqtt for Memory {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        payload: Bytes,
        retain: bool,
    ) -> BoxFuture<'a, Result<(), PublishError>> {
        async move {
            if let State::Offline { reason } = self.link.borrow().clone() {
                return Err(PublishError::Offline { reason });
            }
            self.deliver(topic, &payload, retain);
            Ok(())
        }
        .boxed()
    }

    fn subscribe(&self, _: &str) -> Subscription {
        let (sender, receiver) = mpsc::channel(100_000);
        for (topic, payload) in self.kept.lock().iter() {
            let message = Message {
                topic: topic.clone(),
                payload: payload.clone(),
                retained: true,
            };
            sender.try_send(message).unwrap();
        }
        self.subscribers.lock().push(sender);
        Subscription::new(receiver)
    }

    fn state(&self) -> watch::Receiver<State> {
        self.link.subscribe()
    }
}
