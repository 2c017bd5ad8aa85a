//! The MQTT client: the handle, and the commands it sends to the task of the connection.

mod backoff;
mod connect;
mod connection_task;
mod link_error;
mod session;
mod subscriptions;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::error;

use crate::{
    Mqtt, MqttClientSettings, MqttState, PublishError, TopicSubscription, message::SubscriptionFeed,
};

/// A client of any broker, which reconnects by itself. Clones share the connection. It is closed,
/// with a DISCONNECT, when the last one is dropped.
#[derive(Debug, Clone)]
pub struct MqttClient {
    // Unbounded, but it can't pile up: publishers wait for the outcome, and a message that waits
    // too long is withdrawn.
    commands: mpsc::UnboundedSender<ClientCommand>,
    state: watch::Receiver<MqttState>,
    queue: usize,
}

#[derive(Debug)]
enum ClientCommand {
    Publish(PendingPublish),
    Subscribe(String, SubscriptionFeed),
}

#[derive(Debug)]
struct PendingPublish {
    topic: String,
    payload: Bytes,
    retain: bool,
    stage: Arc<SendState>,
    outcome: Option<oneshot::Sender<Result<(), PublishError>>>,
}

impl PendingPublish {
    fn answer(&mut self, outcome: Result<(), PublishError>) {
        if let Some(waiting) = self.outcome.take() {
            // Fails only if the caller has given up.
            drop(waiting.send(outcome));
        }
    }
}

// Whether a message was sent or withdrawn. Atomic, so that exactly one of the two happens.
#[derive(Debug, Default)]
struct SendState(AtomicU8);

impl SendState {
    const WAITING: u8 = 0;
    const SENT: u8 = 1;
    const WITHDRAWN: u8 = 2;

    fn send(&self) -> bool {
        self.change_to(Self::SENT)
    }

    fn withdraw(&self) -> bool {
        self.change_to(Self::WITHDRAWN)
    }

    fn is_waiting(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::WAITING
    }

    fn change_to(&self, to: u8) -> bool {
        self.0
            .compare_exchange(Self::WAITING, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

struct WithdrawOnDrop(Arc<SendState>);

impl Drop for WithdrawOnDrop {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}

const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_PAYLOAD_BYTES: usize = connect::MAX_PACKET - 128 * 1024;

impl MqttClient {
    /// Starts to connect and returns at once. Must be called in a tokio runtime;
    /// [`state`](Mqtt::state) shows the progress.
    pub fn open(settings: MqttClientSettings) -> Self {
        let (commands, receiver) = mpsc::unbounded_channel();
        let queue = settings.queue;
        let (task, state) = connection_task::ConnectionTask::new(settings, receiver);
        tokio::spawn(task.run());
        Self {
            commands,
            state,
            queue,
        }
    }

    async fn send(&self, topic: &str, payload: Bytes, retain: bool) -> Result<(), PublishError> {
        check_message(topic, &payload)?;
        if let MqttState::Offline { reason } = self.state.borrow().clone() {
            return Err(PublishError::Offline { reason });
        }
        let (outcome, answer) = oneshot::channel();
        let stage = Arc::<SendState>::default();
        let publish = PendingPublish {
            topic: topic.to_owned(),
            payload,
            retain,
            stage: stage.clone(),
            outcome: Some(outcome),
        };
        let _waiting = WithdrawOnDrop(stage.clone());
        let offline = |reason: &str| PublishError::Offline {
            reason: reason.to_owned(),
        };
        self.commands
            .send(ClientCommand::Publish(publish))
            .map_err(|_| offline("The connection to the MQTT broker was closed."))?;
        match tokio::time::timeout(CONFIRM_TIMEOUT, answer).await {
            Ok(Ok(outcome)) => outcome,
            _ if stage.withdraw() => Err(offline(
                "The MQTT broker accepts no messages at the moment; nothing was sent. Is it overloaded?",
            )),
            _ => Err(PublishError::Unknown {
                reason: format!(
                    "The message was sent, but the MQTT broker did not confirm it within {} s: it may have arrived.",
                    CONFIRM_TIMEOUT.as_secs()
                ),
            }),
        }
    }
}

impl Mqtt for MqttClient {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        payload: Bytes,
        retain: bool,
    ) -> BoxFuture<'a, Result<(), PublishError>> {
        self.send(topic, payload, retain).boxed()
    }

    /// An invalid filter gives a subscription that has already ended.
    fn subscribe(&self, filter: &str) -> TopicSubscription {
        let (feed, subscription) = SubscriptionFeed::new(self.queue);
        if mqtt5_protocol::validate_topic_filter(filter).is_err() {
            error!(
                "not a valid MQTT topic filter: {}",
                toolgate_core::text::escape(filter)
            );
        } else {
            let subscribe = ClientCommand::Subscribe(filter.to_owned(), feed);
            // If the connection is closed for good, dropping the feed ends the subscription too.
            drop(self.commands.send(subscribe));
        }
        subscription
    }

    fn state(&self) -> watch::Receiver<MqttState> {
        self.state.clone()
    }
}

fn check_message(topic: &str, payload: &Bytes) -> Result<(), PublishError> {
    let reason = if topic.is_empty() {
        "The topic is empty.".to_owned()
    } else if topic.len() > usize::from(u16::MAX) {
        format!(
            "The topic is {} bytes long; MQTT allows 65535.",
            topic.len()
        )
    } else if topic.contains(['+', '#']) {
        "The topic contains a wildcard (+ or #); nothing can be published there.".to_owned()
    } else if topic.contains(char::is_control) {
        "The topic contains a control character.".to_owned()
    } else if payload.len() > MAX_PAYLOAD_BYTES {
        format!(
            "The payload is {} bytes long; at most {MAX_PAYLOAD_BYTES} are sent.",
            payload.len()
        )
    } else {
        return Ok(());
    };
    Err(PublishError::Refused { reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_messages_are_refused_before_anything_is_sent() {
        let long = "x".repeat(65536);
        for topic in ["", "a/+/b", "#", "a\0b", "a\nb", &long] {
            assert!(
                matches!(
                    check_message(topic, &Bytes::new()),
                    Err(PublishError::Refused { .. })
                ),
                "{topic:.20}"
            );
        }
        let large = Bytes::from(vec![0; MAX_PAYLOAD_BYTES + 1]);
        assert!(matches!(
            check_message("a", &large),
            Err(PublishError::Refused { .. })
        ));
        assert_eq!(
            check_message("zwave/küche/Switch 1", &large.slice(1..)),
            Ok(())
        );
    }

    #[test]
    fn a_message_is_either_sent_or_withdrawn() {
        let stage = SendState::default();
        assert!(stage.send());
        assert!(!stage.withdraw() && !stage.send());
        let stage = Arc::<SendState>::default();
        drop(WithdrawOnDrop(stage.clone()));
        assert!(!stage.send());
    }
}
