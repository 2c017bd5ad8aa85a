//! The simulation itself, driven by messages and the time, without network or clock.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde_json::Value as Json;
use tokio::time::Instant;

use super::catalog;
use super::node::SimulatedNode;
use super::options::{ApiFault, SimulationOptions};
use super::plan::{HousePlan, PlannedScene};
use super::radio::{PendingReply, RadioJob};
use super::runner::SimulatedChange;
use super::value::SimulatedValue;
use crate::topic::{HomeTopics, TopicStyle};
use crate::value::NodeId;
use toolgate_home::DeviceStatus;

// Bounds the radio's queue. It is never this long unless someone floods it.
pub(super) const MAX_WAITING: usize = 10_000;

// In bytes; longer payloads are not read.
const MAX_PAYLOAD: usize = 1024 * 1024;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct SimulatedPublish {
    pub topic: String,
    pub payload: Bytes,
    pub retain: bool,
}

#[derive(Debug)]
pub(super) enum ScheduledEvent {
    Radio,
    /// The gateway publishes the value that was sent to this target.
    Echo(NodeId, usize, Json, Option<PendingReply>),
    /// The gateway reads the device after a command to this target.
    ReadBack(NodeId, usize),
    Wake(NodeId),
    Sleep(NodeId),
    Tick,
    /// A temporary change, such as motion, is over, and the value becomes this one.
    Revert(NodeId, usize, Json),
    /// A plug reports its power some time after it was switched.
    ReportPower(NodeId),
}

#[derive(Debug)]
pub(super) struct SimulatedWorld {
    pub options: SimulationOptions,
    pub topics: HomeTopics,
    pub style: TopicStyle,
    pub gateway: String,
    pub nodes: BTreeMap<NodeId, SimulatedNode>,
    pub broadcast: Vec<SimulatedValue>,
    pub scenes: Vec<PlannedScene>,
    /// The writable values by topic, without prefix and `/set`.
    pub routes: HashMap<String, (NodeId, usize)>,
    pub queue: VecDeque<RadioJob>,
    pub sending: Option<RadioJob>,
    pub api: ApiFault,
    pub random: fastrand::Rng,
    pub now: Instant,
    pub out: Vec<SimulatedPublish>,
    pub changes: Vec<SimulatedChange>,
    pub has_observers: bool,
    dues: BTreeMap<(Instant, u64), ScheduledEvent>,
    count: u64,
    started: Instant,
    epoch: u64,
}

impl SimulatedWorld {
    pub(super) fn new(plan: HousePlan, options: SimulationOptions, now: Instant) -> Self {
        let epoch = options.epoch.unwrap_or_else(SystemTime::now);
        let epoch = epoch.duration_since(SystemTime::UNIX_EPOCH);
        let epoch = u64::try_from(epoch.unwrap_or_default().as_millis()).unwrap_or_default();
        let nodes = plan
            .nodes
            .into_iter()
            .map(|node| SimulatedNode::new(node, epoch));
        let nodes = nodes.chain([SimulatedNode::controller(epoch)]);
        let nodes: BTreeMap<_, _> = nodes.map(|node| (node.id, node)).collect();
        let mut broadcast = catalog::broadcast(nodes.values().flat_map(|node| &node.values));
        for value in &mut broadcast {
            value.updated = Some(epoch);
        }
        let mut world = Self {
            topics: HomeTopics::new(&options.prefix),
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
            has_observers: false,
            dues: BTreeMap::new(),
            count: 0,
            started: now,
            epoch,
        };
        world.schedule_first_events();
        world
    }

    fn schedule_first_events(&mut self) {
        let sleepers = self.nodes.values();
        let sleepers = sleepers.filter_map(|node| Some((node.id, node.sleeps?)));
        for (node, after) in sleepers.collect::<Vec<_>>() {
            self.after(after, ScheduledEvent::Wake(node));
        }
        if self.options.life {
            self.after(super::life::TICK, ScheduledEvent::Tick);
        }
    }

    /// The simulated time in milliseconds since 1970.
    pub(super) fn wall(&self) -> u64 {
        let since = self.now.saturating_duration_since(self.started);
        self.epoch + u64::try_from(since.as_millis()).unwrap_or_default()
    }

    pub(super) fn uptime(&self) -> f64 {
        let since = self.now.saturating_duration_since(self.started);
        since.as_secs_f64()
    }

    pub(super) fn after(&mut self, wait: Duration, due: ScheduledEvent) {
        self.count += 1;
        self.dues.insert((self.now + wait, self.count), due);
    }

    pub(super) fn cancel_read_back(&mut self, node: NodeId, value: usize) {
        self.dues.retain(|_, due| {
            !matches!(due, ScheduledEvent::ReadBack(n, target) if *n == node && *target == value)
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
            // Each event happens at its own time, even if we are called late.
            self.now = self.now.max(at);
            self.handle_event(due);
        }
        self.now = self.now.max(now);
    }

    fn handle_event(&mut self, due: ScheduledEvent) {
        match due {
            ScheduledEvent::Radio => self.finish_sending(),
            ScheduledEvent::Echo(node, target, sent, reply) => {
                self.publish_echo(node, target, &sent, reply);
            }
            ScheduledEvent::ReadBack(node, target) => self.read_back(node, target),
            ScheduledEvent::Wake(node) => self.wake(node),
            ScheduledEvent::Sleep(node) => self.set_status(node, DeviceStatus::Asleep),
            ScheduledEvent::Tick => self.tick(),
            ScheduledEvent::Revert(node, value, to) => self.report_value(node, value, to),
            ScheduledEvent::ReportPower(node) => self.report_power(node),
        }
    }

    pub(super) fn handle_message(&mut self, topic: &str, payload: &[u8]) {
        let prefix = self.topics.with_prefix("");
        let rest = topic.strip_prefix(&prefix);
        let rest = rest.and_then(|rest| rest.strip_suffix("/set"));
        let Some(rest) = rest.filter(|_| payload.len() <= MAX_PAYLOAD) else {
            return;
        };
        let payload = super::publishing::parse_payload(payload);
        let mine = format!("_CLIENTS/{}/", self.gateway);
        if let Some(action) = rest.strip_prefix(&mine) {
            return self.handle_action(rest, action, payload);
        }
        // Nothing listens on unknown topics.
        if let Some((node, value)) = self.routes.get(rest).copied() {
            self.command(node, value, &payload);
        }
    }

    fn handle_action(&mut self, topic: &str, action: &str, payload: Json) {
        if let Some(function) = action.strip_prefix("api/") {
            return self.answer_request(function, payload);
        }
        if let Some(suffix) = action.strip_prefix("broadcast/") {
            let suffix = format!("/{suffix}");
            let routes = self
                .routes
                .iter()
                .filter(|(topic, _)| topic.ends_with(&suffix));
            let all: BTreeSet<_> = routes.map(|(_, found)| *found).collect();
            self.publish(topic, &payload, true);
            for (node, value) in all {
                self.command(node, value, &payload);
            }
        } else if action == "multicast" {
            // The recorded network had no groups: nothing follows the echo.
            self.publish(topic, &payload, true);
        }
    }

    fn command(&mut self, node: NodeId, value: usize, payload: &Json) {
        let Some(found) = self.nodes.get(&node) else {
            return;
        };
        let times = if found.faults.receives_twice { 2 } else { 1 };
        let Some(requested) = super::device::parse_write(&found.values[value], payload) else {
            return;
        };
        for _ in 0..times {
            self.enqueue_write(node, value, requested.clone(), None);
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
        self.after(sleeps, ScheduledEvent::Wake(id));
        self.set_status(id, DeviceStatus::Awake);
        // As long as a real device stays awake without further messages.
        let stay = Duration::from_secs(2)
            + Duration::from_millis(200) * u32::try_from(waiting.len()).unwrap_or(0);
        self.after(stay, ScheduledEvent::Sleep(id));
        self.queue.extend(waiting);
        self.start_sending();
    }
}
