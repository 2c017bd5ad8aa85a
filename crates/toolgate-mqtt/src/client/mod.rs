//! A client of any broker.

mod backoff;
mod dial;
mod keeper;
mod session;
mod subscribers;
mod trouble;

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

use crate::{Mqtt, PublishError, Settings, State, Subscription, message::Feed};

/// A client of any broker: connects by itself, again and again, and never sends late.
///
/// Clones share the connection. It ends, with a goodbye to the broker, when the last one is dropped.
///
/// ```
/// use toolgate_mqtt::{Broker, BrokerSettings, Client, Mqtt, Settings, State};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let broker = Broker::start(BrokerSettings::default()).await?;
/// let client = Client::open(Settings::new(&broker.url())?);
/// client.state().wait_for(|state| *state == State::Online).await?;
///
/// let mut messages = client.subscribe("house/+");
/// client.publish("house/light", "on".into(), false).await?;
/// assert_eq!(messages.next().await.map(|message| message.topic).as_deref(), Some("house/light"));
/// broker.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    /// Never full: who publishes waits for the answer, and whatever waits here too long is taken back.
    commands: mpsc::UnboundedSender<Command>,
    state: watch::Receiver<State>,
    queue: usize,
}

#[derive(Debug)]
enum Command {
    Publish(Publish),
    Subscribe(String, Feed),
}

#[derive(Debug)]
struct Publish {
    topic: String,
    payload: Bytes,
    retain: bool,
    stage: Arc<Stage>,
    outcome: Option<oneshot::Sender<Result<(), PublishError>>>,
}

impl Publish {
    fn answer(&mut self, outcome: Result<(), PublishError>) {
        if let Some(waiting) = self.outcome.take() {
            // Whoever asked may have given up.
            drop(waiting.send(outcome));
        }
    }
}

/// Whether a message is still ours. Exactly one of sending it and taking it back happens.
#[derive(Debug, Default)]
struct Stage(AtomicU8);

impl Stage {
    const WAITING: u8 = 0;
    const SENT: u8 = 1;
    const TAKEN_BACK: u8 = 2;

    fn send(&self) -> bool {
        self.turn(Self::SENT)
    }

    fn take_back(&self) -> bool {
        self.turn(Self::TAKEN_BACK)
    }

    fn is_waiting(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::WAITING
    }

    fn turn(&self, to: u8) -> bool {
        self.0
            .compare_exchange(Self::WAITING, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

/// Takes a message back when nobody waits for it any more.
struct Waiting(Arc<Stage>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.take_back();
    }
}

/// How long a message may take to be confirmed.
const CONFIRM_LIMIT: Duration = Duration::from_secs(5);
const LARGEST_PAYLOAD: usize = dial::LARGEST - 128 * 1024;

impl Client {
    /// Begins to connect; to be called inside a tokio runtime. [`state`](Mqtt::state) tells how it goes.
    pub fn open(settings: Settings) -> Self {
        let (commands, orders) = mpsc::unbounded_channel();
        let queue = settings.queue;
        let (keeper, state) = keeper::Keeper::new(settings, orders);
        tokio::spawn(keeper.run());
        Self {
            commands,
            state,
            queue,
        }
    }

    async fn send(&self, topic: &str, payload: Bytes, retain: bool) -> Result<(), PublishError> {
        check(topic, &payload)?;
        if let State::Offline { reason } = &*self.state.borrow() {
            return Err(PublishError::Offline {
                reason: reason.clone(),
            });
        }
        let (outcome, answer) = oneshot::channel();
        let stage = Arc::<Stage>::default();
        let publish = Publish {
            topic: topic.to_owned(),
            payload,
            retain,
            stage: stage.clone(),
            outcome: Some(outcome),
        };
        let _waiting = Waiting(stage.clone());
        let gone = || PublishError::Offline {
            reason: "The connection to the MQTT broker was closed.".to_owned(),
        };
        self.commands
            .send(Command::Publish(publish))
            .map_err(|_| gone())?;
        match tokio::time::timeout(CONFIRM_LIMIT, answer).await {
            Ok(Ok(outcome)) => outcome,
            _ if stage.take_back() => Err(PublishError::Offline {
                reason: "The MQTT broker takes no messages at the moment; nothing was sent. Is it overloaded?".to_owned(),
            }),
            _ => Err(PublishError::Unknown {
                reason: format!(
                    "The message was sent, but the MQTT broker did not confirm it within {} s: it may have arrived.",
                    CONFIRM_LIMIT.as_secs()
                ),
            }),
        }
    }
}

impl Mqtt for Client {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        payload: Bytes,
        retain: bool,
    ) -> BoxFuture<'a, Result<(), PublishError>> {
        self.send(topic, payload, retain).boxed()
    }

    /// A filter that is none gives a subscription that is over at once.
    fn subscribe(&self, filter: &str) -> Subscription {
        let (feed, subscription) = Feed::new(self.queue);
        if mqtt5_protocol::validate_topic_filter(filter).is_err() {
            error!(
                "this is no filter of MQTT topics: {}",
                toolgate_core::escape(filter)
            );
        } else {
            // If the connection was closed for good, the subscription is over too.
            drop(
                self.commands
                    .send(Command::Subscribe(filter.to_owned(), feed)),
            );
        }
        subscription
    }

    fn state(&self) -> watch::Receiver<State> {
        self.state.clone()
    }
}

/// What no broker would take, or would take for something else.
fn check(topic: &str, payload: &Bytes) -> Result<(), PublishError> {
    let reason = if topic.is_empty() {
        "The topic is empty.".to_owned()
    } else if topic.len() > usize::from(u16::MAX) {
        format!(
            "The topic is {} bytes long; MQTT allows 65535.",
            topic.len()
        )
    } else if topic.contains(['+', '#']) {
        "The topic holds a wildcard (+ or #); nothing can be published there.".to_owned()
    } else if topic.contains(char::is_control) {
        "The topic holds a control character.".to_owned()
    } else if payload.len() > LARGEST_PAYLOAD {
        format!(
            "The payload is {} bytes long; at most {LARGEST_PAYLOAD} are sent.",
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
    fn what_can_not_be_published_is_refused_before_anything_is_sent() {
        let long = "x".repeat(65536);
        for topic in ["", "a/+/b", "#", "a\0b", "a\nb", &long] {
            assert!(
                matches!(
                    check(topic, &Bytes::new()),
                    Err(PublishError::Refused { .. })
                ),
                "{topic:.20}"
            );
        }
        let large = Bytes::from(vec![0; LARGEST_PAYLOAD + 1]);
        assert!(matches!(
            check("a", &large),
            Err(PublishError::Refused { .. })
        ));
        assert_eq!(check("zwave/küche/Switch 1", &large.slice(1..)), Ok(()));
    }

    #[test]
    fn a_message_is_either_sent_or_taken_back() {
        let stage = Stage::default();
        assert!(stage.send());
        assert!(!stage.take_back() && !stage.send());
        let stage = Arc::<Stage>::default();
        drop(Waiting(stage.clone()));
        assert!(!stage.send());
    }
}
