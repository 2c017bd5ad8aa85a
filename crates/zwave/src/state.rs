//! The known state of a home, updated by every message.
//!
//! Nothing here waits or sends, so the effect of each message can be tested by itself.

mod bases;
mod gateways;
mod messages;
mod values;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use toolgate_home::{CommandConfirmation, DeviceStatus};
use toolgate_mqtt::{MqttMessage, MqttState as Link};

use crate::node::{MAX_ALL_VALUES, MAX_NODES, ZwaveNode};
use crate::topic::{self, HomeTopics, TopicStyle, TopicSubject};
use crate::value::{NodeId, ValueId};
use bases::BaseTopics;
use gateways::SeenGateways;

pub(crate) use gateways::SeenGateway;

// Limits the cache from topics to values. A flood of topics must not fill the memory.
const MAX_ROUTES: usize = 100_000;
// Limits retained messages of nodes that are not known yet, in number and bytes.
const MAX_POSTPONED: usize = 5_000;
const MAX_POSTPONED_BYTES: usize = 4 * 1024 * 1024;

// In bytes. Leaves room for the prefix and `/set` within MQTT's limit.
const MAX_TOPIC: usize = 65_000;

#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageTime {
    pub instant: Instant,
    /// In milliseconds since 1970.
    pub wall: u64,
}

impl MessageTime {
    pub(crate) fn now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            instant: Instant::now(),
            wall: u64::try_from(since.unwrap_or(Duration::ZERO).as_millis()).unwrap_or(u64::MAX),
        }
    }
}

#[derive(Debug)]
pub(crate) struct PendingCommand {
    pub number: u64,
    pub node: NodeId,
    pub current: ValueId,
    pub target: ValueId,
    pub confirmation: CommandConfirmation,
}

#[derive(Debug)]
pub(crate) struct HomeState {
    pub topics: HomeTopics,
    pub link: Link,
    pub nodes: BTreeMap<NodeId, ZwaveNode>,
    pub gateways: SeenGateways,
    pub driver_ready: Option<bool>,
    /// When the gateway last listed its nodes.
    pub nodes_listed_at: Option<SystemTime>,
    pub needs_nodes: bool,
    pub pending_commands: Vec<PendingCommand>,
    /// Nodes that are not devices: the controller and virtual nodes.
    ignored_nodes: BTreeSet<NodeId>,
    bases: BaseTopics,
    unexpected_topics: HashSet<String>,
    routes: HashMap<Arc<str>, (NodeId, ValueId)>,
    postponed: HashMap<String, Vec<MqttMessage>>,
    postponed_count: usize,
    postponed_bytes: usize,
    style: TopicStyle,
}

impl HomeState {
    pub(crate) fn new(prefix: &str, link: Link) -> Self {
        Self {
            topics: HomeTopics::new(prefix),
            link,
            nodes: BTreeMap::new(),
            gateways: SeenGateways::default(),
            driver_ready: None,
            nodes_listed_at: None,
            needs_nodes: true,
            pending_commands: Vec::new(),
            ignored_nodes: BTreeSet::new(),
            bases: BaseTopics::default(),
            unexpected_topics: HashSet::new(),
            routes: HashMap::new(),
            postponed: HashMap::new(),
            postponed_count: 0,
            postponed_bytes: 0,
            style: TopicStyle::default(),
        }
    }

    pub(crate) fn is_current(&self) -> bool {
        self.link == Link::Online && self.gateways.current().is_some_and(|one| one.alive)
    }

    /// Replaces the nodes with the gateway's list. Their topics are kept, because the
    /// list doesn't contain them.
    pub(crate) fn replace_nodes(&mut self, listed: Vec<crate::node::DescribedNode>) {
        let mut old = std::mem::take(&mut self.nodes);
        self.ignored_nodes.clear();
        let mut values = 0;
        for listed_node in listed {
            let id = listed_node.id;
            let Some(mut node) = listed_node.into_node() else {
                self.ignored_nodes.extend(id);
                continue;
            };
            values += node.values.len();
            if self.nodes.len() == MAX_NODES || values > MAX_ALL_VALUES {
                tracing::warn!("the gateway has too many nodes: the rest is ignored");
                break;
            }
            if let Some(old) = old.remove(&node.id) {
                carry_over_topics(&old, &mut node);
                node.last_active = node.last_active.max(old.last_active);
            }
            self.nodes.insert(node.id, node);
        }
        self.routes.clear();
        self.bases.rebuild(&self.nodes);
        self.nodes_listed_at = Some(SystemTime::now());
        self.apply_all_postponed();
    }

    pub(crate) fn set_link(&mut self, link: Link) {
        if link == Link::Online {
            self.needs_nodes = true;
        }
        self.link = link;
    }

    /// The topic to write a value: where it was seen published, or else where it should be.
    pub(crate) fn set_topic(&self, node: &ZwaveNode, id: &ValueId) -> Result<String, String> {
        let seen = node.values.get(id).and_then(|value| value.topic.as_deref());
        let rest = seen.map_or_else(|| self.computed_topic(node, id), str::to_owned);
        let shared = "shares its MQTT topic with another device, so either of them might act: give one of \
                      them another name in zwave-js-ui";
        if topic::split_topic(&rest).is_some_and(|(base, _)| self.bases.is_shared(base)) {
            return Err(format!("'{}' {shared}.", node.title()));
        }
        let topic = self.topics.with_prefix(&rest);
        // A node's name may contain slashes. It must not turn a command to a lamp into a request to
        // the gateway.
        let own = matches!(self.topics.subject(&topic), TopicSubject::Node { .. });
        if !own || topic.len() > MAX_TOPIC || topic.contains(['+', '#', '\0']) {
            return Err(format!(
                "'{}' has a name that can't be used in an MQTT topic: rename it in zwave-js-ui.",
                node.title()
            ));
        }
        Ok(format!("{topic}/set"))
    }

    fn computed_topic(&self, node: &ZwaveNode, id: &ValueId) -> String {
        let value = node.values.get(id);
        let property_name = value.map_or(id.property.as_str(), |value| &value.property_name);
        // Topics of the node itself are better evidence than those of other nodes.
        let seen = node
            .values
            .values()
            .find_map(|value| value.topic.as_deref());
        let (base, form) = match seen.and_then(topic::split_topic) {
            Some((base, suffix)) => (base.to_owned(), suffix.form),
            None => (
                self.style.base(node.id, &node.name, &node.location),
                self.style.form,
            ),
        };
        format!("{base}/{}", topic::value_suffix(form, id, property_name))
    }

    fn report_status(&mut self, id: NodeId, status: DeviceStatus) {
        let pending = self.pending_commands.iter_mut();
        pending
            .filter(|one| one.node == id)
            .for_each(|one| one.confirmation.record_status(status));
    }

    // Each unexpected topic causes a new request for the nodes only once.
    fn note_unexpected(&mut self, topic: &str) {
        if self.unexpected_topics.len() < MAX_NODES
            && self.unexpected_topics.insert(topic.to_owned())
        {
            self.needs_nodes = true;
        }
    }
}

fn carry_over_topics(old: &ZwaveNode, new: &mut ZwaveNode) {
    let topics = old.values.values().filter_map(|value| value.topic.clone());
    let mut topics = topics
        .filter_map(|topic| {
            let (_, suffix) = topic::split_topic(&topic)?;
            let key = (
                suffix.form,
                topic::value_suffix(suffix.form, &suffix.value_id(), suffix.property),
            );
            Some((key, topic))
        })
        .collect::<HashMap<_, _>>();
    if topics.is_empty() {
        return;
    }
    for (id, value) in &mut new.values {
        value.topic = [topic::TopicForm::Named, topic::TopicForm::ValueId]
            .into_iter()
            .find_map(|form| {
                topics.remove(&(form, topic::value_suffix(form, id, &value.property_name)))
            });
    }
}
