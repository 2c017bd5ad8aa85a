//! Updates the state with one message.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value as Json;
use toolgate_mqtt::MqttMessage;

use super::bases::is_base_of;
use super::{HomeState, MessageTime};
use crate::node::{DescribedNode, MAX_NODES, ZwaveNode, is_device};
use crate::payload::{self, MAX_PAYLOAD, ValueReport};
use crate::topic::{self, TopicSubject, UNNAMED_PREFIX};
use crate::value::{NodeId, ValueId};
use toolgate_home::{DeviceStatus, ReadingSource};

/// A node's status, in the payload formats that are objects.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeStatusPayload {
    #[serde(default)]
    value: Option<bool>,
    #[serde(default)]
    status: Option<DeviceStatus>,
    #[serde(default)]
    node_id: Option<NodeId>,
}

impl HomeState {
    /// Returns the API function if the message is a reply.
    pub(crate) fn apply_message<'a>(
        &mut self,
        message: &'a MqttMessage,
        now: MessageTime,
    ) -> Option<&'a str> {
        let topics = self.topics.clone();
        match topics.subject(&message.topic) {
            TopicSubject::GatewayStatus(gateway) => self.apply_gateway_status(gateway, message),
            TopicSubject::GatewayVersion(gateway) => {
                let version = payload::parse_report(&message.payload).value;
                let version = version.and_then(|version| version.as_str().map(str::to_owned));
                self.gateways.set_version(gateway, version);
            }
            TopicSubject::Event(gateway, "node" | "driver", event) if !message.retained => {
                self.needs_nodes |= self.gateways.note_activity(gateway);
                self.apply_event(event, &message.payload);
            }
            TopicSubject::DriverStatus => {
                let ready = payload::parse_flag(&message.payload);
                self.needs_nodes |= ready == Some(true) && self.driver_ready == Some(false);
                self.driver_ready = ready;
            }
            TopicSubject::Node(rest) => match self.routes.get_key_value(rest) {
                Some((topic, (node, id))) => {
                    let (topic, node, id) = (Arc::clone(topic), *node, id.clone());
                    let report = payload::parse_report(&message.payload);
                    self.apply_report(node, &id, &report, &topic, message.retained, now);
                }
                None => self.apply_new_topic(rest, message, now),
            },
            // Gateways never publish replies as retained, so a retained one answers nobody.
            TopicSubject::Reply(gateway, function) if !message.retained => {
                self.needs_nodes |= self.gateways.note_activity(gateway);
                return Some(function);
            }
            TopicSubject::Event(..)
            | TopicSubject::Reply(..)
            | TopicSubject::Set
            | TopicSubject::Other => {}
        }
        None
    }

    fn apply_gateway_status(&mut self, gateway: &str, message: &MqttMessage) {
        let reported = payload::parse_report(&message.payload);
        // An unreadable status must not count as online.
        let alive = reported.value.as_ref().and_then(Json::as_bool) == Some(true);
        self.needs_nodes |= self.gateways.update_status(gateway, alive, reported.time);
    }

    fn apply_event(&mut self, event: &str, payload: &[u8]) {
        match event {
            "node_ready"
            | "node_added"
            | "node_found"
            | "node_interview_completed"
            | "all_nodes_ready"
            | "driver_ready" => self.needs_nodes = true,
            "node_removed" => {
                self.needs_nodes = true;
                if let Some((id, _)) = event_subject(payload) {
                    self.nodes.remove(&id);
                    self.bases.forget(id);
                    self.routes.retain(|_, (node, _)| *node != id);
                }
            }
            "node_alive" | "node_dead" | "node_sleep" | "node_wake_up" => {
                if let Some((id, Some(status))) = event_subject(payload) {
                    self.update_status(id, status);
                }
            }
            _ => {}
        }
    }

    fn update_status(&mut self, id: NodeId, status: DeviceStatus) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.status = status;
            self.report_status(id, status);
        }
    }

    pub(super) fn apply_report(
        &mut self,
        node: NodeId,
        id: &ValueId,
        report: &ValueReport,
        topic: &Arc<str>,
        retained: bool,
        now: MessageTime,
    ) {
        let Some(known) = self.nodes.get_mut(&node) else {
            return;
        };
        self.needs_nodes |= update_name(known, report, retained);
        let Some(value) = known.values.get_mut(id) else {
            return;
        };
        // The latest topic wins: after a rename, a gateway keeps listening on the old topic until
        // it publishes on the new one.
        if !retained || value.topic.is_none() {
            value.topic = Some(Arc::clone(topic));
        }
        // A retained message may be older than the gateway's list.
        let reported = value.source != ReadingSource::Retained && value.value.is_some();
        if retained && reported && report.time <= value.updated {
            return;
        }
        value.updated = match (report.time, retained) {
            (Some(time), _) => Some(time),
            (None, true) => None,
            (None, false) => Some(now.wall),
        };
        value.source = match retained {
            true => ReadingSource::Retained,
            false => ReadingSource::Report,
        };
        value.value.clone_from(&report.value);
        if retained {
            return;
        }
        if report.value.is_some() {
            known.last_active = known.last_active.max(report.time);
        }
        let pending = self.pending_commands.iter_mut();
        for command in pending.filter(|one| one.node == node) {
            // If target and current value are the same, a message is a report rather than an echo.
            if command.current == *id {
                let value = report.value.as_ref();
                command
                    .confirmation
                    .record_report(value, report.time, now.instant);
            } else if command.target == *id {
                command.confirmation.record_echo(now.instant);
            }
        }
    }

    fn apply_new_topic(&mut self, rest: &str, message: &MqttMessage, now: MessageTime) {
        // A value may be named `status`, so value topics are tried first.
        if topic::split_topic(rest).is_some() {
            return self.apply_value(rest, message, now);
        }
        match rest.rsplit_once('/') {
            Some((base, "status")) => self.apply_node_status(base, message),
            Some((base, "nodeinfo")) => self.apply_node_info(base, message),
            Some((base, "lastActive")) => {
                let at = payload::parse_report(&message.payload).value;
                let at = at.as_ref().and_then(Json::as_u64);
                if let Some(node) = self.bases.node(base).and_then(|id| self.nodes.get_mut(&id)) {
                    node.last_active = node.last_active.max(at);
                }
            }
            _ => self.apply_value(rest, message, now),
        }
    }

    fn apply_node_status(&mut self, base: &str, message: &MqttMessage) {
        if message.payload.len() > MAX_PAYLOAD {
            return;
        }
        let reported = serde_json::from_slice::<NodeStatusPayload>(&message.payload).ok();
        let id = match reported.as_ref().and_then(|reported| reported.node_id) {
            Some(id) => self.learn_base(base, id, message).then_some(id),
            None => self.bases.node(base),
        };
        let Some(id) = id else {
            return;
        };
        let flag = || payload::parse_flag(&message.payload);
        let there = reported
            .as_ref()
            .map_or_else(flag, |reported| reported.value);
        let was = self
            .nodes
            .get(&id)
            .map_or(DeviceStatus::Unknown, |node| node.status);
        let status = match (there, reported.and_then(|reported| reported.status)) {
            (Some(false), _) => DeviceStatus::Dead,
            (_, Some(status)) => status,
            // A bare `true` is published for sleeping nodes too, so it only corrects dead and
            // unknown.
            (Some(true), None) if matches!(was, DeviceStatus::Dead | DeviceStatus::Unknown) => {
                DeviceStatus::Alive
            }
            _ => was,
        };
        self.update_status(id, status);
    }

    fn apply_node_info(&mut self, base: &str, message: &MqttMessage) {
        if message.payload.len() > MAX_PAYLOAD {
            return;
        }
        let Ok(reported) = serde_json::from_slice::<DescribedNode>(&message.payload) else {
            return;
        };
        let id = reported.id;
        let Some(reported) = reported.into_node() else {
            if let Some(id) = id {
                self.ignored_nodes.insert(id);
                self.nodes.remove(&id);
            }
            return;
        };
        if !self.learn_base(base, reported.id, message) {
            return;
        }
        if let Some(node) = self.nodes.get_mut(&reported.id) {
            if !node.described {
                (node.name, node.location) = (reported.name.clone(), reported.location.clone());
                node.device_class = reported.device_class;
            } else if !message.retained {
                self.needs_nodes |=
                    (&node.name, &node.location) != (&reported.name, &reported.location);
            }
            node.last_active = node.last_active.max(reported.last_active);
        }
        self.update_status(reported.id, reported.status);
    }

    /// Learns the node of a base, and the node itself if it is new. Returns false if the
    /// message should be ignored.
    pub(super) fn learn_base(&mut self, base: &str, id: NodeId, message: &MqttMessage) -> bool {
        if !is_device(id) || self.ignored_nodes.contains(&id) {
            return false;
        }
        match self.nodes.get(&id) {
            Some(node) if node.described => {
                let own = is_base_of(node, base);
                // After a rename, retained messages stay under the old name for good.
                if !own && message.retained {
                    return false;
                }
                // It may have been renamed.
                if !own {
                    self.note_unexpected(base);
                }
            }
            Some(_) => {}
            None if self.nodes_listed_at.is_some() && !message.retained => {
                self.needs_nodes = true;
                return false;
            }
            None if self.nodes_listed_at.is_some() || self.nodes.len() >= MAX_NODES => {
                return false;
            }
            None => {
                self.nodes.insert(id, guess_node(base, id));
            }
        }
        self.bases.learn(base, id, !message.retained);
        self.apply_postponed(base);
        true
    }
}

fn update_name(node: &mut ZwaveNode, report: &ValueReport, retained: bool) -> bool {
    let (name, location) = (&report.node_name, &report.node_location);
    if node.described {
        let differs = |reported: &Option<String>, known: &String| {
            reported.as_ref().is_some_and(|reported| reported != known)
        };
        return !retained && (differs(name, &node.name) || differs(location, &node.location));
    }
    if let Some(name) = name.as_ref().filter(|name| !name.is_empty()) {
        node.name.clone_from(name);
        node.location = location.clone().unwrap_or_default();
    }
    false
}

fn guess_node(base: &str, id: NodeId) -> ZwaveNode {
    let (location, name) = base.rsplit_once('/').unwrap_or(("", base));
    let unnamed = name.starts_with(UNNAMED_PREFIX) || name == id.to_string();
    ZwaveNode {
        id,
        name: if unnamed {
            String::new()
        } else {
            name.replace('_', " ")
        },
        location: location.replace('_', " "),
        ..ZwaveNode::default()
    }
}

fn event_subject(payload: &[u8]) -> Option<(NodeId, Option<DeviceStatus>)> {
    #[derive(Deserialize)]
    struct NodeEvent {
        data: Vec<Json>,
    }
    if payload.len() > MAX_PAYLOAD {
        return None;
    }
    let event = serde_json::from_slice::<NodeEvent>(payload).ok()?;
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
