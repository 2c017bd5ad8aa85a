//! Updates the state of devices, and what the simulated gateway knows of it.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::catalog::class_info;
use super::device::{is_movement, read_back_values, write_effect};
use super::radio::PendingReply;
use super::runner::SimulatedChange;
use super::world::{ScheduledEvent, SimulatedWorld};
use crate::value::NodeId;
use toolgate_home::DeviceStatus;

/// The gateway reads a device back after a command: at once, or for a dimmer once it has faded.
const READ_BACK: Duration = Duration::from_secs(1);
const READ_BACK_DIMMER: Duration = Duration::from_secs(5);
/// A `result.status` of `writeValue`: sent but not confirmed.
const SENT: u8 = 254;

impl SimulatedWorld {
    pub(super) fn set_actual(&mut self, id: NodeId, value: usize, real: Json) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        let simulated = &mut node.values[value];
        let before = simulated.real.replace(real.clone());
        if before.as_ref() == Some(&real) {
            return;
        }
        if is_movement(simulated) {
            node.count.moved += 1;
        }
        if simulated.is(38, "currentValue") && real != json!(0) {
            node.last_level = real.as_u64().unwrap_or(node.last_level);
        }
        let label = simulated.label.clone();
        if let Some(device) = node.device().filter(|_| self.has_observers) {
            self.changes.push(SimulatedChange {
                device,
                label,
                before,
                after: real,
            });
        }
    }

    pub(super) fn publish_echo(
        &mut self,
        id: NodeId,
        target: usize,
        sent: &Json,
        reply: Option<PendingReply>,
    ) {
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        let (faults, class) = (node.faults, node.values[target].id.command_class);
        let expected = write_effect(node, target, sent).map(|effect| effect.expected);
        for (value, expected) in expected.unwrap_or_default() {
            // As recorded, the target of a dimmer keeps its old timestamp.
            let dated = !(class == 38 && value == target);
            self.learn(id, value, &expected, dated);
        }
        self.answer(reply, Some(json!({ "status": SENT })));
        self.cancel_read_back(id, target);
        let usual = if class == 38 {
            READ_BACK_DIMMER
        } else {
            READ_BACK
        };
        let usual = self.options.scaled(usual);
        self.after(
            faults.read_back_delay.unwrap_or(usual),
            ScheduledEvent::ReadBack(id, target),
        );
    }

    pub(super) fn read_back(&mut self, id: NodeId, target: usize) {
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        let values = read_back_values(node, target);
        self.enqueue_read(id, vec![values], None);
    }

    pub(super) fn report_value(&mut self, id: NodeId, value: usize, real: Json) {
        self.set_actual(id, value, real);
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        if node.faults.dead || node.faults.loses_reports {
            return;
        }
        let alarm = node.values[value].id.command_class == 113;
        let old = ["alarmType", "alarmLevel"].map(|property| node.find(113, property));
        self.mark_active(id);
        for old in old.into_iter().flatten().filter(|_| alarm) {
            self.learn(id, old, &json!(0), true);
        }
        self.learn_actual(id, value);
    }

    pub(super) fn learn_actual(&mut self, id: NodeId, value: usize) {
        let node = self.nodes.get(&id);
        let real = node.and_then(|node| {
            let simulated = &node.values[value];
            if !simulated.is(38, "targetValue") {
                return simulated.real.clone();
            }
            // A dimmer that has finished fading is at its target.
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
        let simulated = &mut node.values[value];
        let before = simulated.known.replace(known.clone());
        if dated {
            simulated.updated = Some(wall);
        }
        let mut change = json!({
            "commandClassName": class_info(simulated.id.command_class).0,
            "commandClass": simulated.id.command_class, "endpoint": simulated.id.endpoint,
            "property": simulated.id.property, "newValue": known, "prevValue": before,
            "propertyName": simulated.property_name(),
        });
        if let Some(key) = simulated.id.json_key() {
            change["propertyKey"] = key;
            change["propertyKeyName"] = json!(simulated.key_name);
        }
        let summary = node.summary();
        self.publish_value(id, value);
        self.event("node", "node_value_updated", &json!([summary, change]));
    }

    pub(super) fn mark_active(&mut self, id: NodeId) {
        let wall = self.wall();
        if let Some(node) = self.nodes.get_mut(&id) {
            node.last_active = wall;
        }
        self.publish_active(id);
    }

    pub(super) fn set_status(&mut self, id: NodeId, status: DeviceStatus) {
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
