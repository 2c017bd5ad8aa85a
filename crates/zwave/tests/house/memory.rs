//! A broker in memory with a gateway behind it: whatever is published can be answered after a while.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use toolgate_home::{Device, Home, HomeAccess, Readiness, ZWAVE};
use toolgate_mqtt::{Message, Mqtt, PublishError, State, Subscription};
use zwave::{House, HouseSettings};

pub(crate) const GATEWAY: &str = "zwave/_CLIENTS/ZWAVE_GATEWAY-Zwave_Test";
const NODES: &str = include_str!("../data/getNodes.json");

/// What comes so many milliseconds after a publish, and where.
pub(crate) type Later = (u64, String, String);
type Reaction = Box<dyn Fn(&str, &str) -> Vec<Later> + Send + Sync>;

pub(crate) struct Memory {
    subscribers: Mutex<Vec<mpsc::Sender<Message>>>,
    link: watch::Sender<State>,
    sent: Mutex<Vec<(String, String, bool)>>,
    reactions: Mutex<Vec<Reaction>>,
    fails: Mutex<Option<PublishError>>,
}

impl Memory {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            subscribers: Mutex::default(),
            link: watch::Sender::new(State::Online),
            sent: Mutex::default(),
            reactions: Mutex::default(),
            fails: Mutex::default(),
        })
    }

    pub(crate) async fn deliver(&self, topic: &str, payload: impl Into<Bytes>, retained: bool) {
        let message = Message {
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

    pub(crate) fn link(&self, link: State) {
        self.link.send_replace(link);
    }

    pub(crate) fn fail(&self, error: Option<PublishError>) {
        *self.fails.lock() = error;
    }

    pub(crate) fn react(
        &self,
        reaction: impl Fn(&str, &str) -> Vec<Later> + Send + Sync + 'static,
    ) {
        self.reactions.lock().push(Box::new(reaction));
    }

    /// Answers a command on a topic with what comes later.
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

    /// Answers a question with a result, as the gateway does.
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

    /// Forgets all reactions.
    pub(crate) fn forget(&self) {
        self.reactions.lock().clear();
    }

    /// All that was published but questions: topic, payload, retained.
    pub(crate) fn commands(&self) -> Vec<(String, String, bool)> {
        let sent = self.sent.lock().clone();
        sent.into_iter()
            .filter(|(topic, _, _)| !topic.contains("/api/"))
            .collect()
    }

    /// How often something was asked.
    pub(crate) fn asked(&self, function: &str) -> usize {
        let end = format!("/api/{function}/set");
        let sent = self.sent.lock();
        sent.iter()
            .filter(|(topic, _, _)| topic.ends_with(&end))
            .count()
    }

    /// What was asked, of any function.
    pub(crate) fn questions(&self) -> Vec<String> {
        let sent = self.sent.lock();
        let functions = sent.iter().filter_map(|(topic, _, _)| {
            let (_, function) = topic.split_once("/api/")?;
            function.strip_suffix("/set").map(str::to_owned)
        });
        functions.collect()
    }
}

/// The double is shared with the reactions it starts.
pub(crate) struct Broker(Arc<Memory>);

impl Mqtt for Broker {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        payload: Bytes,
        retain: bool,
    ) -> BoxFuture<'a, Result<(), PublishError>> {
        Box::pin(async move {
            let memory = &self.0;
            if let State::Offline { reason } = &*memory.link.borrow() {
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

    fn subscribe(&self, filter: &str) -> Subscription {
        assert!(filter.ends_with("/#"), "{filter}");
        let (sender, receiver) = mpsc::channel(1_000);
        self.0.subscribers.lock().push(sender);
        Subscription::new(receiver)
    }

    fn state(&self) -> watch::Receiver<State> {
        self.0.link.subscribe()
    }
}

/// Lets everything that is due happen.
pub(crate) async fn settle() {
    sleep(Duration::from_millis(20)).await;
}

pub(crate) fn open(memory: &Arc<Memory>) -> House {
    House::open(
        Arc::new(Broker(Arc::clone(memory))),
        HouseSettings::default(),
    )
}

/// The recorded list of nodes, for `answer`.
pub(crate) fn nodes() -> Json {
    serde_json::from_str::<Json>(NODES).unwrap()["result"].clone()
}

/// The recorded house, after its start as recorded in `lines`.
pub(crate) async fn recorded(lines: &str) -> (Arc<Memory>, House) {
    with_nodes(nodes(), lines).await
}

/// A house with these nodes.
pub(crate) async fn with_nodes(nodes: Json, lines: &str) -> (Arc<Memory>, House) {
    let memory = Memory::new();
    memory.answer("getNodes", 40, nodes);
    let house = open(&memory);
    memory
        .deliver(
            &format!("{GATEWAY}/status"),
            r#"{"value":true,"time":1}"#,
            true,
        )
        .await;
    assert_eq!(house.ready(Duration::from_secs(5)).await, Readiness::Ready);
    memory.replay(lines).await;
    settle().await;
    (memory, house)
}

pub(crate) fn device(house: &House, node: u16) -> Device {
    house
        .device(node.into())
        .unwrap_or_else(|| panic!("no node {node}"))
}

/// The house as its tools see it: they find devices by their names.
pub(crate) fn access(house: &House) -> HomeAccess {
    HomeAccess::new(Arc::new(house.clone()), &ZWAVE, true)
}
