//! One message after the other.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value as Json;
use toolgate_mqtt::Message;

use super::bases::can_have;
use super::{Now, State};
use crate::node::{DescribedNode, MAX_NODES, Node, is_device};
use crate::payload::{self, MAX_PAYLOAD, Report};
use crate::topic::{self, About, UNNAMED};
use crate::value::{NodeId, ValueId};
use toolgate_home::{DeviceStatus, ReadingSource};

/// The payload of a node's status, if it is more than yes or no.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    value: Option<bool>,
    #[serde(default)]
    status: Option<DeviceStatus>,
    #[serde(default)]
    node_id: Option<NodeId>,
}

impl State {
    /// The function that a reply answers, if the message is one.
    pub(crate) fn take<'a>(&mut self, message: &'a Message, now: Now) -> Option<&'a str> {
        let topics = self.topics.clone();
        match topics.about(&message.topic) {
            About::GatewayStatus { gateway } => self.take_gateway(gateway, message),
            About::GatewayVersion { gateway } => {
                let version = payload::report(&message.payload).value;
                let version = version.and_then(|version| version.as_str().map(str::to_owned));
                self.gateways.take_version(gateway, version);
            }
            About::Event {
                gateway,
                source: "node" | "driver",
                event,
            } if !message.retained => {
                self.ask_again |= self.gateways.heard(gateway);
                self.take_event(event, &message.payload);
            }
            About::DriverStatus => {
                let ready = payload::flag(&message.payload);
                self.ask_again |= ready == Some(true) && self.driver == Some(false);
                self.driver = ready;
            }
            About::Node { rest } => match self.routes.get_key_value(rest) {
                Some((topic, (node, id))) => {
                    let (topic, node, id) = (Arc::clone(topic), *node, id.clone());
                    let report = payload::report(&message.payload);
                    self.take_report(node, &id, &report, &topic, message.retained, now);
                }
                None => self.take_new_topic(rest, message, now),
            },
            // Answers are never kept by a broker.
            About::Reply { gateway, function } if !message.retained => {
                self.ask_again |= self.gateways.heard(gateway);
                return Some(function);
            }
            About::Event { .. } | About::Reply { .. } | About::Set | About::Other => {}
        }
        None
    }

    fn take_gateway(&mut self, gateway: &str, message: &Message) {
        let told = payload::report(&message.payload);
        // What can not be read tells nothing, least of all that somebody is there.
        let alive = told.value.as_ref().and_then(Json::as_bool) == Some(true);
        self.ask_again |= self.gateways.take_status(gateway, alive, told.time);
    }

    fn take_event(&mut self, event: &str, payload: &[u8]) {
        match event {
            "node_ready"
            | "node_added"
            | "node_found"
            | "node_interview_completed"
            | "all_nodes_ready"
            | "driver_ready" => self.ask_again = true,
            "node_removed" => {
                self.ask_again = true;
                if let Some((id, _)) = subject(payload) {
                    self.nodes.remove(&id);
                    self.bases.forget(id);
                    self.routes.retain(|_, (node, _)| *node != id);
                }
            }
            "node_alive" | "node_dead" | "node_sleep" | "node_wake_up" => {
                if let Some((id, Some(status))) = subject(payload) {
                    self.take_status(id, status);
                }
            }
            _ => {}
        }
    }

    fn take_status(&mut self, id: NodeId, status: DeviceStatus) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.status = status;
            self.tell_status(id, status);
        }
    }

    pub(super) fn take_report(
        &mut self,
        node: NodeId,
        id: &ValueId,
        report: &Report,
        topic: &Arc<str>,
        retained: bool,
        now: Now,
    ) {
        let Some(known) = self.nodes.get_mut(&node) else {
            return;
        };
        self.ask_again |= take_name(known, report, retained);
        let Some(value) = known.values.get_mut(id) else {
            return;
        };
        // Where it is published now is where it listens: after a renaming, a gateway goes on listening at the old place.
        if !retained || value.topic.is_none() {
            value.topic = Some(Arc::clone(topic));
        }
        // What was kept may be older than what the gateway told since.
        let told = value.source != ReadingSource::Retained && value.value.is_some();
        if retained && told && report.time <= value.updated {
            return;
        }
        value.updated = match (report.time, retained) {
            (Some(time), _) => Some(time),
            (None, true) => None,
            (None, false) => Some(now.wall),
        };
        value.source = if retained {
            ReadingSource::Retained
        } else {
            ReadingSource::Report
        };
        value.value.clone_from(&report.value);
        if retained {
            return;
        }
        if report.value.is_some() {
            known.last_active = known.last_active.max(report.time);
        }
        for watched in self.watched.iter_mut().filter(|one| one.node == node) {
            // A value that is its own target is a report, not an echo.
            if watched.current == *id {
                watched
                    .proof
                    .take_report(report.value.as_ref(), report.time, now.instant);
            } else if watched.target == *id {
                watched.proof.take_echo(now.instant);
            }
        }
    }

    fn take_new_topic(&mut self, rest: &str, message: &Message, now: Now) {
        // A value may be called `status`, so the topics of values come first.
        if topic::split(rest).is_some() {
            return self.take_value(rest, message, now);
        }
        match rest.rsplit_once('/') {
            Some((base, "status")) => self.take_node_status(base, message),
            Some((base, "nodeinfo")) => self.take_node_info(base, message),
            Some((base, "lastActive")) => {
                let at = payload::report(&message.payload).value;
                let at = at.as_ref().and_then(Json::as_u64);
                if let Some(node) = self.bases.node(base).and_then(|id| self.nodes.get_mut(&id)) {
                    node.last_active = node.last_active.max(at);
                }
            }
            _ => self.take_value(rest, message, now),
        }
    }

    fn take_node_status(&mut self, base: &str, message: &Message) {
        if message.payload.len() > MAX_PAYLOAD {
            return;
        }
        let told = serde_json::from_slice::<Status>(&message.payload).ok();
        let id = match told.as_ref().and_then(|told| told.node_id) {
            Some(id) => self.learn(base, id, message).then_some(id),
            None => self.bases.node(base),
        };
        let Some(id) = id else {
            return;
        };
        let there = told
            .as_ref()
            .map_or_else(|| payload::flag(&message.payload), |told| told.value);
        let was = self
            .nodes
            .get(&id)
            .map_or(DeviceStatus::Unknown, |node| node.status);
        let status = match (there, told.and_then(|told| told.status)) {
            (Some(false), _) => DeviceStatus::Dead,
            (_, Some(status)) => status,
            // A bare `true` is also said of nodes that sleep.
            (Some(true), None) if matches!(was, DeviceStatus::Dead | DeviceStatus::Unknown) => {
                DeviceStatus::Alive
            }
            _ => was,
        };
        self.take_status(id, status);
    }

    fn take_node_info(&mut self, base: &str, message: &Message) {
        if message.payload.len() > MAX_PAYLOAD {
            return;
        }
        let Ok(told) = serde_json::from_slice::<DescribedNode>(&message.payload) else {
            return;
        };
        let id = told.id;
        let Some(told) = told.into_node() else {
            if let Some(id) = id {
                self.left_out.insert(id);
                self.nodes.remove(&id);
            }
            return;
        };
        if !self.learn(base, told.id, message) {
            return;
        }
        if let Some(node) = self.nodes.get_mut(&told.id) {
            if !node.described {
                (node.name, node.location) = (told.name.clone(), told.location.clone());
                node.device_class = told.device_class;
            } else if !message.retained {
                self.ask_again |= (&node.name, &node.location) != (&told.name, &told.location);
            }
            node.last_active = node.last_active.max(told.last_active);
        }
        self.take_status(told.id, told.status);
    }

    /// Takes in whose base it is, and the node, if that is new. False if the message is of no use: after a renaming, what
    /// the broker kept under the old name stays behind for ever.
    pub(super) fn learn(&mut self, base: &str, id: NodeId, message: &Message) -> bool {
        if !is_device(id) || self.left_out.contains(&id) {
            return false;
        }
        match self.nodes.get(&id) {
            Some(node) if node.described => {
                let own = can_have(node, base);
                if !own && message.retained {
                    return false;
                }
                // Perhaps it was renamed; but it is no use to ask twice for the same reason.
                if !own && self.odd.len() < MAX_NODES && self.odd.insert(base.to_owned()) {
                    self.ask_again = true;
                }
            }
            Some(_) => {}
            None if self.answered.is_some() && !message.retained => {
                self.ask_again = true;
                return false;
            }
            None if self.answered.is_some() || self.nodes.len() >= MAX_NODES => return false,
            None => {
                self.nodes.insert(id, guess(base, id));
            }
        }
        self.bases.learn(base, id, !message.retained);
        self.take_pending(base);
        true
    }
}

/// Takes the name that stands beside a value. True if the node seems to have another one than the gateway's list says.
fn take_name(node: &mut Node, report: &Report, retained: bool) -> bool {
    let (name, location) = (&report.node_name, &report.node_location);
    if node.described {
        let differs =
            |told: &Option<String>, known: &String| told.as_ref().is_some_and(|told| told != known);
        return !retained && (differs(name, &node.name) || differs(location, &node.location));
    }
    if let Some(name) = name.as_ref().filter(|name| !name.is_empty()) {
        node.name.clone_from(name);
        node.location = location.clone().unwrap_or_default();
    }
    false
}

/// What a base tells of a node that nobody described.
fn guess(base: &str, id: NodeId) -> Node {
    let (location, name) = base.rsplit_once('/').unwrap_or(("", base));
    let unnamed = name.starts_with(UNNAMED) || name == id.to_string();
    Node {
        id,
        name: if unnamed {
            String::new()
        } else {
            name.replace('_', " ")
        },
        location: location.replace('_', " "),
        ..Node::default()
    }
}

/// The node of an event, and its status.
fn subject(payload: &[u8]) -> Option<(NodeId, Option<DeviceStatus>)> {
    #[derive(Deserialize)]
    struct Event {
        data: Vec<Json>,
    }
    if payload.len() > MAX_PAYLOAD {
        return None;
    }
    let event = serde_json::from_slice::<Event>(payload).ok()?;
    let node = event.data.first()?;
    let id = NodeId::try_from(node.get("id")?.as_u64()?).ok()?;
    let status = match node.get("status").and_then(Json::as_u64) {
        Some(1) => Some(DeviceStatus::Asleep),
        Some(2) => Some(DeviceStatus::Awake),
        Some(3) => Some(DeviceStatus::Dead),
        Some(4) => Some(DeviceStatus::Alive),
        _ => None,
    };
    Some((id, status))
}
