//! A broker and gateway in memory: any publish can be answered after a delay.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use toolgate_home::{Home, HomeAccess, HomeDevice, HomeReadiness, ZWAVE};
use toolgate_mqtt::{Mqtt, MqttMessage, MqttState, PublishError, TopicSubscription};
use zwave::{House, HouseSettings};

pub(crate) const GATEWAY: &str = "zwave/_CLIENTS/ZWAVE_GATEWAY-Zwave_Test";
const NODES: &str = include_str!("../data/getNodes.json");

/// A message that follows a publish: delay in milliseconds, topic, payload.
pub(crate) type DelayedMessage = (u64, String, String);
type MessageReaction = Box<dyn Fn(&str, &str) -> Vec<DelayedMessage> + Send + Sync>;

pub(crate) struct GatewayDouble {
    subscribers: Mutex<Vec<mpsc::Sender<MqttMessage>>>,
    link: watch::Sender<MqttState>,
    sent: Mutex<Vec<(String, String, bool)>>,
    reactions: Mutex<Vec<MessageReaction>>,
    fails: Mutex<Option<PublishError>>,
}

impl GatewayDouble {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            subscribers: Mutex::default(),
            link: watch::Sender::new(MqttState::Online),
            sent: Mutex::default(),
            reactions: Mutex::default(),
            fails: Mutex::default(),
        })
    }

    pub(crate) async fn deliver(&self, topic: &str, payload: impl Into<Bytes>, retained: bool) {
        let message = MqttMessage {
            topic: topic.to_owned(),
            payload: payload.into(),
            retained,
        };
        let subscribers = self.subscribers.lock().clone();
        for subscriber in subscribers {
            subscriber.send(message.clone()).await.ok();
        }
    }

    /// Delivers recorded lines: time, retained, topic, payload.
    pub(crate) async fn replay(&self, lines: &str) {
        for line in lines.lines() {
            let mut parts = line.splitn(4, ' ');
            let (_, retained) = (parts.next(), parts.next() == Some("1"));
            let topic = parts.next().unwrap();
            let payload = parts.next().unwrap_or_default().to_owned();
            if !topic.ends_with("/set") {
                self.deliver(topic, payload, retained).await;
            }
        }
    }

    pub(crate) fn link(&self, link: MqttState) {
        self.link.send_replace(link);
    }

    pub(crate) fn fail(&self, error: Option<PublishError>) {
        *self.fails.lock() = error;
    }

    pub(crate) fn react(
        &self,
        reaction: impl Fn(&str, &str) -> Vec<DelayedMessage> + Send + Sync + 'static,
    ) {
        self.reactions.lock().push(Box::new(reaction));
    }

    pub(crate) fn on(&self, topic: &'static str, later: &[(u64, &str, impl AsRef<str>)]) {
        let later = later
            .iter()
            .map(|(after, topic, payload)| {
                (*after, (*topic).to_owned(), payload.as_ref().to_owned())
            })
            .collect::<Vec<_>>();
        self.react(move |published, _| {
            if published == topic {
                later.clone()
            } else {
                Vec::new()
            }
        });
    }

    pub(crate) fn answer(&self, function: &'static str, after: u64, result: Json) {
        self.react(move |topic, payload| {
            let own = format!("{GATEWAY}/api/{function}");
            if topic != format!("{own}/set") {
                return Vec::new();
            }
            let origin = serde_json::from_str::<Json>(payload).unwrap();
            let reply = json!({
                "success": true, "message": "Success zwave api call", "result": result,
                "args": origin["args"], "origin": origin,
            });
            vec![(after, own, reply.to_string())]
        });
    }

    pub(crate) fn forget(&self) {
        self.reactions.lock().clear();
    }

    /// Everything published except API requests: topic, payload, retained.
    pub(crate) fn commands(&self) -> Vec<(String, String, bool)> {
        let sent = self.sent.lock().clone();
        sent.into_iter()
            .filter(|(topic, _, _)| !topic.contains("/api/"))
            .collect()
    }

    pub(crate) fn asked(&self, function: &str) -> usize {
        let end = format!("/api/{function}/set");
        let sent = self.sent.lock();
        sent.iter()
            .filter(|(topic, _, _)| topic.ends_with(&end))
            .count()
    }

    pub(crate) fn questions(&self) -> Vec<String> {
        let sent = self.sent.lock();
        let functions = sent.iter().filter_map(|(topic, _, _)| {
            let (_, function) = topic.split_once("/api/")?;
            function.strip_suffix("/set").map(str::to_owned)
        });
        functions.collect()
    }
}

// Shared, because the reactions it starts need it too.
pub(crate) struct SharedGatewayDouble(Arc<GatewayDouble>);

impl Mqtt for SharedGatewayDouble {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        payload: Bytes,
        retain: bool,
    ) -> BoxFuture<'a, Result<(), PublishError>> {
        Box::pin(async move {
            let memory = &self.0;
            if let MqttState::Offline { reason } = &*memory.link.borrow() {
                let reason = reason.clone();
                return Err(PublishError::Offline { reason });
            }
            let text = String::from_utf8(payload.to_vec()).unwrap();
            let sent = (topic.to_owned(), text.clone(), retain);
            memory.sent.lock().push(sent);
            let reactions = memory.reactions.lock();
            let later = reactions.iter().flat_map(|react| react(topic, &text));
            for (after, topic, payload) in later {
                let memory = Arc::clone(memory);
                tokio::spawn(async move {
                    sleep(Duration::from_millis(after)).await;
                    memory.deliver(&topic, payload, false).await;
                });
            }
            memory.fails.lock().clone().map_or(Ok(()), Err)
        })
    }

    fn subscribe(&self, filter: &str) -> TopicSubscription {
        assert!(filter.ends_with("/#"), "{filter}");
        let (sender, receiver) = mpsc::channel(1_000);
        self.0.subscribers.lock().push(sender);
        TopicSubscription::new(receiver)
    }

    fn state(&self) -> watch::Receiver<MqttState> {
        self.0.link.subscribe()
    }
}

pub(crate) async fn settle() {
    sleep(Duration::from_millis(20)).await;
}

pub(crate) fn open(memory: &Arc<GatewayDouble>) -> House {
    House::open(
        Arc::new(SharedGatewayDouble(Arc::clone(memory))),
        HouseSettings::default(),
    )
}

/// The recorded list of nodes, for `answer`.
pub(crate) fn nodes() -> Json {
    serde_json::from_str::<Json>(NODES).unwrap()["result"].clone()
}

pub(crate) async fn recorded(lines: &str) -> (Arc<GatewayDouble>, House) {
    with_nodes(nodes(), lines).await
}

pub(crate) async fn with_nodes(nodes: Json, lines: &str) -> (Arc<GatewayDouble>, House) {
    let memory = GatewayDouble::new();
    memory.answer("getNodes", 40, nodes);
    let house = open(&memory);
    memory
        .deliver(
            &format!("{GATEWAY}/status"),
            r#"{"value":true,"time":1}"#,
            true,
        )
        .await;
    assert_eq!(
        house.ready(Duration::from_secs(5)).await,
        HomeReadiness::Ready
    );
    memory.replay(lines).await;
    settle().await;
    (memory, house)
}

pub(crate) fn device(house: &House, node: u16) -> HomeDevice {
    house
        .device(node.into())
        .unwrap_or_else(|| panic!("no node {node}"))
}

pub(crate) fn access(house: &House) -> HomeAccess {
    HomeAccess::new(Arc::new(house.clone()), &ZWAVE, true)
}
