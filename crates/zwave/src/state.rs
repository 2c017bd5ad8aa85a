//! All that is known of a house, kept current by every message.
//!
//! Nothing here waits or sends: messages go in, and what is known comes out.

mod bases;
mod gateways;
mod take;
mod values;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use toolgate_home::{CommandProof, DeviceStatus};
use toolgate_mqtt::{Message, State as Link};

use crate::node::{MAX_ALL_VALUES, MAX_NODES, Node};
use crate::topic::{self, About, Style, Topics};
use crate::value::{NodeId, ValueId};
use bases::Bases;
use gateways::Gateways;

pub(crate) use gateways::Gateway;

/// Topics whose value was found once are found at once the next time; this many.
const MAX_ROUTES: usize = 100_000;
/// Kept messages of nodes that nobody told us about yet; this many, and this long all together.
const MAX_PENDING: usize = 5_000;
const MAX_PENDING_BYTES: usize = 4 * 1024 * 1024;

/// Longer topics can not be sent, with `/set` behind them.
const MAX_TOPIC: usize = 65_000;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub instant: Instant,
    /// Milliseconds since 1970.
    pub wall: u64,
}

impl Now {
    pub(crate) fn read() -> Self {
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
    pub proof: CommandProof,
}

#[derive(Debug)]
pub(crate) struct State {
    pub topics: Topics,
    pub link: Link,
    pub nodes: BTreeMap<NodeId, Node>,
    pub gateways: Gateways,
    pub driver: Option<bool>,
    /// When the gateway last told its nodes.
    pub answered: Option<SystemTime>,
    /// The nodes should be asked for again.
    pub ask_again: bool,
    pub watched: Vec<PendingCommand>,
    /// Nodes that are no devices: the controller and virtual ones.
    left_out: BTreeSet<NodeId>,
    bases: Bases,
    /// Bases that no node should have, and one has.
    odd: HashSet<String>,
    routes: HashMap<Arc<str>, (NodeId, ValueId)>,
    pending: HashMap<String, Vec<Message>>,
    pending_count: usize,
    pending_bytes: usize,
    style: Style,
}

impl State {
    pub(crate) fn new(prefix: &str, link: Link) -> Self {
        Self {
            topics: Topics::new(prefix),
            link,
            nodes: BTreeMap::new(),
            gateways: Gateways::default(),
            driver: None,
            answered: None,
            ask_again: true,
            watched: Vec::new(),
            left_out: BTreeSet::new(),
            bases: Bases::default(),
            odd: HashSet::new(),
            routes: HashMap::new(),
            pending: HashMap::new(),
            pending_count: 0,
            pending_bytes: 0,
            style: Style::default(),
        }
    }

    /// Whether somebody keeps what is known current.
    pub(crate) fn is_current(&self) -> bool {
        self.link == Link::Online && self.gateways.current().is_some_and(|one| one.alive)
    }

    /// Takes the gateway's list of nodes: it is the truth, but where values are published it does not tell.
    pub(crate) fn take_nodes(&mut self, told: Vec<crate::node::DescribedNode>) {
        let mut old = std::mem::take(&mut self.nodes);
        self.left_out.clear();
        let mut values = 0;
        for told in told {
            let id = told.id;
            let Some(mut node) = told.into_node() else {
                self.left_out.extend(id);
                continue;
            };
            values += node.values.len();
            if self.nodes.len() == MAX_NODES || values > MAX_ALL_VALUES {
                tracing::warn!("the gateway has more nodes than fit: the rest is left out");
                break;
            }
            if let Some(old) = old.remove(&node.id) {
                keep_topics(&old, &mut node);
                node.last_active = node.last_active.max(old.last_active);
            }
            self.nodes.insert(node.id, node);
        }
        self.routes.clear();
        self.bases.rebuild(&self.nodes);
        self.answered = Some(SystemTime::now());
        self.take_all_pending();
    }

    pub(crate) fn take_link(&mut self, link: Link) {
        if link == Link::Online {
            self.ask_again = true;
        }
        self.link = link;
    }

    /// Where a value is told what to be. The topic on which it was seen published; else the one it must have.
    pub(crate) fn set_topic(&self, node: &Node, id: &ValueId) -> Result<String, String> {
        let rest = node
            .values
            .get(id)
            .and_then(|value| value.topic.as_deref().map(str::to_owned))
            .unwrap_or_else(|| self.computed_topic(node, id));
        let shared = "shares its MQTT topic with another device, and nobody could tell which of them would act: give one of \
                      them another name in zwave-js-ui";
        if topic::split(&rest).is_some_and(|(base, _)| self.bases.is_shared(base)) {
            return Err(format!("'{}' {shared}.", node.title()));
        }
        let topic = self.topics.whole(&rest);
        // A name may contain slashes, and must not make a question to the gateway of a command to a lamp.
        let own = matches!(self.topics.about(&topic), About::Node { .. });
        if !own || topic.len() > MAX_TOPIC || topic.contains(['+', '#', '\0']) {
            return Err(format!(
                "'{}' has a name that no device can be commanded by: give it another one in zwave-js-ui.",
                node.title()
            ));
        }
        Ok(format!("{topic}/set"))
    }

    fn computed_topic(&self, node: &Node, id: &ValueId) -> String {
        let property_name = node
            .values
            .get(id)
            .map_or(id.property.as_str(), |value| &value.property_name);
        // What is seen of the node itself says more than what is seen of the house.
        let seen = node
            .values
            .values()
            .find_map(|value| value.topic.as_deref());
        let (base, form) = match seen.and_then(topic::split) {
            Some((base, suffix)) => (base.to_owned(), suffix.form),
            None => (
                self.style.base(node.id, &node.name, &node.location),
                self.style.form,
            ),
        };
        format!("{base}/{}", topic::suffix(form, id, property_name))
    }

    fn tell_status(&mut self, id: NodeId, status: DeviceStatus) {
        for watched in self.watched.iter_mut().filter(|one| one.node == id) {
            watched.proof.take_status(status);
        }
    }
}

fn keep_topics(old: &Node, new: &mut Node) {
    let topics = old.values.values().filter_map(|value| value.topic.clone());
    let mut topics = topics
        .filter_map(|topic| {
            let (_, suffix) = topic::split(&topic)?;
            let key = (
                suffix.form,
                topic::suffix(suffix.form, &suffix.value_id(), suffix.property),
            );
            Some((key, topic))
        })
        .collect::<HashMap<_, _>>();
    if topics.is_empty() {
        return;
    }
    for (id, value) in &mut new.values {
        value.topic = [topic::Form::Named, topic::Form::Numbered]
            .into_iter()
            .find_map(|form| topics.remove(&(form, topic::suffix(form, id, &value.property_name))));
    }
}
