//! What the gateway knows of the devices, and how it comes to know it.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::catalog::class;
use super::device::{effect, moves, verified};
use super::house::Change;
use super::radio::{Job, Reply, Work};
use super::world::{Due, World};
use crate::value::NodeId;
use toolgate_home::DeviceStatus;

/// After a command the gateway reads the device back: most at once, dimmers when they have faded.
const VERIFY: Duration = Duration::from_secs(1);
const VERIFY_DIMMER: Duration = Duration::from_secs(5);
/// `result.status` of `writeValue`: nobody confirmed it.
const SENT: u8 = 254;

impl World {
    pub(super) fn become_real(&mut self, id: NodeId, value: usize, real: Json) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        let told = &mut node.values[value];
        let before = told.real.replace(real.clone());
        if before.as_ref() == Some(&real) {
            return;
        }
        if moves(told) {
            node.count.moved += 1;
        }
        if told.is(38, "currentValue") && real != json!(0) {
            node.last_level = real.as_u64().unwrap_or(node.last_level);
        }
        let label = told.label.clone();
        if let Some(device) = node.device().filter(|_| self.watched) {
            self.changes.push(Change {
                device,
                label,
                before,
                after: real,
            });
        }
    }

    /// The gateway shows what it expects of a command, and will look later.
    pub(super) fn echo(&mut self, id: NodeId, target: usize, sent: &Json, reply: Option<Reply>) {
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        let (faults, class) = (node.faults, node.values[target].id.command_class);
        let expected = effect(node, target, sent).map(|effect| effect.expected);
        for (value, expected) in expected.unwrap_or_default() {
            // The target of a dimmer keeps its old time.
            let dated = !(class == 38 && value == target);
            self.learn(id, value, &expected, dated);
        }
        self.answer(reply, Some(json!({ "status": SENT })));
        self.forget_verify(id, target);
        let usual = if class == 38 { VERIFY_DIMMER } else { VERIFY };
        let usual = self.options.scaled(usual);
        self.after(
            faults.verifies_after.unwrap_or(usual),
            Due::Verify { node: id, target },
        );
    }

    pub(super) fn verify(&mut self, id: NodeId, target: usize) {
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        let rest = vec![verified(node, target)];
        self.enqueue(Job {
            node: id,
            work: Work::Read { rest },
            reply: None,
        });
    }

    pub(super) fn report(&mut self, id: NodeId, value: usize, real: Json) {
        self.become_real(id, value, real);
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        if node.faults.dead || node.faults.loses_reports {
            return;
        }
        let alarm = node.values[value].id.command_class == 113;
        let old = ["alarmType", "alarmLevel"].map(|property| node.find(113, property));
        self.heard(id);
        for old in old.into_iter().flatten().filter(|_| alarm) {
            self.learn(id, old, &json!(0), true);
        }
        self.learn_real(id, value);
    }

    pub(super) fn learn_real(&mut self, id: NodeId, value: usize) {
        let node = self.nodes.get(&id);
        let real = node.and_then(|node| {
            let told = &node.values[value];
            if !told.is(38, "targetValue") {
                return told.real.clone();
            }
            // A dimmer that has faded is where it was going.
            node.values[node.find(38, "currentValue")?].real.clone()
        });
        if let Some(real) = real {
            self.learn(id, value, &real, true);
        }
    }

    fn learn(&mut self, id: NodeId, value: usize, known: &Json, dated: bool) {
        let wall = self.wall();
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        let told = &mut node.values[value];
        let before = told.known.replace(known.clone());
        if dated {
            told.updated = Some(wall);
        }
        let mut change = json!({
            "commandClassName": class(told.id.command_class).0,
            "commandClass": told.id.command_class, "endpoint": told.id.endpoint,
            "property": told.id.property, "newValue": known, "prevValue": before,
            "propertyName": told.property_name,
        });
        if let Some(key) = told.json_key() {
            change["propertyKey"] = key;
            change["propertyKeyName"] = json!(told.key_name);
        }
        let summary = node.summary();
        self.publish_value(id, value);
        self.event("node", "node_value_updated", &json!([summary, change]));
    }

    pub(super) fn heard(&mut self, id: NodeId) {
        let wall = self.wall();
        if let Some(node) = self.nodes.get_mut(&id) {
            node.last_active = wall;
        }
        self.publish_active(id);
    }

    pub(super) fn status(&mut self, id: NodeId, status: DeviceStatus) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        node.status = status;
        let summary = node.summary();
        let event = match status {
            DeviceStatus::Dead => "node_dead",
            DeviceStatus::Asleep => "node_sleep",
            DeviceStatus::Awake => "node_wakeup",
            DeviceStatus::Alive | DeviceStatus::Unknown => "node_alive",
        };
        self.publish_status(id, status);
        self.event("node", event, &json!([summary]));
    }
}
