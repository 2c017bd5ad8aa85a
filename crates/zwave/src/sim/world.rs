//! Everything there is: it takes messages and the time, and gives messages.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde_json::Value as Json;
use tokio::time::Instant;

use super::catalog;
use super::house::Change;
use super::node::Node;
use super::options::{ApiFault, Options};
use super::plan::{Plan, PlannedScene};
use super::radio::{Job, Reply, Work};
use super::value::Value;
use crate::topic::{Style, Topics};
use crate::value::NodeId;
use toolgate_home::DeviceStatus;

/// The radio is quick, and what waits for it is little; whoever floods it is not heard.
pub(super) const MAX_WAITING: usize = 10_000;

/// Longer commands and questions are not read.
const MAX_PAYLOAD: usize = 1024 * 1024;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Out {
    pub topic: String,
    pub payload: Bytes,
    pub retain: bool,
}

#[derive(Debug)]
pub(super) enum Due {
    Radio,
    /// The gateway tells what it expects from a command.
    Echo {
        node: NodeId,
        target: usize,
        sent: Json,
        reply: Option<Reply>,
    },
    Verify {
        node: NodeId,
        target: usize,
    },
    Wake {
        node: NodeId,
    },
    Sleep {
        node: NodeId,
    },
    Tick,
    /// Something that happened is over.
    Calm {
        node: NodeId,
        value: usize,
        to: Json,
    },
    /// What a plug draws follows its switch.
    Draw {
        node: NodeId,
    },
}

#[derive(Debug)]
pub(super) struct World {
    pub options: Options,
    pub topics: Topics,
    pub style: Style,
    pub gateway: String,
    pub nodes: BTreeMap<NodeId, Node>,
    pub broadcast: Vec<Value>,
    pub scenes: Vec<PlannedScene>,
    /// Where values can be written: topic without prefix and `/set`.
    pub routes: HashMap<String, (NodeId, usize)>,
    pub queue: VecDeque<Job>,
    pub sending: Option<Job>,
    pub api: ApiFault,
    pub random: fastrand::Rng,
    pub now: Instant,
    pub out: Vec<Out>,
    pub changes: Vec<Change>,
    /// Whether anybody wants to know of changes.
    pub watched: bool,
    dues: BTreeMap<(Instant, u64), Due>,
    count: u64,
    started: Instant,
    epoch: u64,
}

impl World {
    pub(super) fn new(plan: Plan, options: Options, now: Instant) -> Self {
        let epoch = options.epoch.unwrap_or_else(SystemTime::now);
        let epoch = epoch.duration_since(SystemTime::UNIX_EPOCH);
        let epoch = u64::try_from(epoch.unwrap_or_default().as_millis()).unwrap_or_default();
        let nodes = plan.nodes.into_iter().map(|node| Node::new(node, epoch));
        let nodes = nodes.chain([Node::controller(epoch)]);
        let nodes = nodes
            .map(|node| (node.id, node))
            .collect::<BTreeMap<_, _>>();
        let mut broadcast = catalog::broadcast(nodes.values().flat_map(|node| &node.values));
        for value in &mut broadcast {
            value.updated = Some(epoch);
        }
        let mut world = Self {
            topics: Topics::new(&options.prefix),
            style: options.style(),
            gateway: options.client_id(),
            random: fastrand::Rng::with_seed(options.seed),
            options,
            nodes,
            broadcast,
            scenes: plan.scenes,
            routes: HashMap::new(),
            queue: VecDeque::new(),
            sending: None,
            api: ApiFault::None,
            now,
            out: Vec::new(),
            changes: Vec::new(),
            watched: false,
            dues: BTreeMap::new(),
            count: 0,
            started: now,
            epoch,
        };
        world.wind_up();
        world
    }

    fn wind_up(&mut self) {
        let sleepers = self.nodes.values();
        let sleepers = sleepers.filter_map(|node| Some((node.id, node.sleeps?)));
        for (node, after) in sleepers.collect::<Vec<_>>() {
            self.after(after, Due::Wake { node });
        }
        if self.options.life {
            self.after(super::life::TICK, Due::Tick);
        }
    }

    /// Milliseconds since 1970.
    pub(super) fn wall(&self) -> u64 {
        let since = self.now.saturating_duration_since(self.started);
        self.epoch + u64::try_from(since.as_millis()).unwrap_or_default()
    }

    /// For how long it is there, in seconds.
    pub(super) fn uptime(&self) -> f64 {
        self.now
            .saturating_duration_since(self.started)
            .as_secs_f64()
    }

    pub(super) fn after(&mut self, wait: Duration, due: Due) {
        self.count += 1;
        self.dues.insert((self.now + wait, self.count), due);
    }

    /// The read-back of an older command on a value is not needed any more.
    pub(super) fn forget_verify(&mut self, node: NodeId, value: usize) {
        self.dues.retain(|_, due| {
            !matches!(due, Due::Verify { node: n, target } if *n == node && *target == value)
        });
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.dues.keys().next().map(|(at, _)| *at)
    }

    pub(super) fn run(&mut self, now: Instant) {
        while let Some(entry) = self.dues.first_entry() {
            let at = entry.key().0;
            if at > now {
                break;
            }
            let due = entry.remove();
            // Everything at its own time, however late we are.
            self.now = self.now.max(at);
            self.happen(due);
        }
        self.now = self.now.max(now);
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Radio => self.sent(),
            Due::Echo {
                node,
                target,
                sent,
                reply,
            } => self.echo(node, target, &sent, reply),
            Due::Verify { node, target } => self.verify(node, target),
            Due::Wake { node } => self.wake(node),
            Due::Sleep { node } => self.sleep(node),
            Due::Tick => self.tick(),
            Due::Calm { node, value, to } => self.report(node, value, to),
            Due::Draw { node } => self.draw(node),
        }
    }

    pub(super) fn take(&mut self, topic: &str, payload: &[u8]) {
        let prefix = self.topics.whole("");
        let Some(rest) = topic.strip_prefix(&prefix) else {
            return;
        };
        let Some(rest) = rest.strip_suffix("/set") else {
            return;
        };
        if payload.len() > MAX_PAYLOAD {
            return;
        }
        let payload = super::dialect::read(payload);
        let mine = format!("_CLIENTS/{}/", self.gateway);
        if let Some(action) = rest.strip_prefix(&mine) {
            return self.act(rest, action, payload);
        }
        // To an unknown topic nobody listens.
        if let Some((node, value)) = self.routes.get(rest).copied() {
            self.command(node, value, &payload);
        }
    }

    fn act(&mut self, topic: &str, action: &str, payload: Json) {
        if let Some(function) = action.strip_prefix("api/") {
            return self.ask(function, payload);
        }
        if let Some(suffix) = action.strip_prefix("broadcast/") {
            let all = self.routes.iter();
            let mut all = all
                .filter(|(topic, _)| topic.ends_with(&format!("/{suffix}")))
                .map(|(_, found)| *found)
                .collect::<Vec<_>>();
            all.sort_unstable();
            all.dedup();
            self.publish(topic, &payload, true);
            for (node, value) in all {
                self.command(node, value, &payload);
            }
        } else if action == "multicast" {
            // The recorded network knew none; nothing follows the echo.
            self.publish(topic, &payload, true);
        }
    }

    fn command(&mut self, node: NodeId, value: usize, payload: &Json) {
        let Some(found) = self.nodes.get(&node) else {
            return;
        };
        let times = if found.faults.hears_twice { 2 } else { 1 };
        let Some(wish) = super::device::wish(&found.values[value], payload) else {
            return;
        };
        for _ in 0..times {
            self.enqueue(Job {
                node,
                work: Work::Write {
                    value,
                    wish: wish.clone(),
                },
                reply: None,
            });
        }
    }

    fn wake(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        let waiting = std::mem::take(&mut node.waiting);
        let Some(sleeps) = node.sleeps else {
            return;
        };
        self.after(sleeps, Due::Wake { node: id });
        self.status(id, DeviceStatus::Awake);
        // As long as a device stays awake when it is told nothing more.
        let stay = Duration::from_secs(2)
            + Duration::from_millis(200) * u32::try_from(waiting.len()).unwrap_or(0);
        self.after(stay, Due::Sleep { node: id });
        self.queue.extend(waiting);
        self.start_sending();
    }

    fn sleep(&mut self, id: NodeId) {
        self.status(id, DeviceStatus::Asleep);
    }
}
