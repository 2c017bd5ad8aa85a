//! Lets things happen in the simulated home: temperatures drift, people move.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::node::SimulatedNode;
use super::plan::PlannedPart;
use super::world::{ScheduledEvent, SimulatedWorld};
use crate::value::{NodeId, short_number};

pub(super) const TICK: Duration = Duration::from_secs(10);
const MOTION_LASTS: Duration = Duration::from_secs(20);
const DOOR_STAYS_OPEN: Duration = Duration::from_secs(15);

impl SimulatedWorld {
    pub(super) fn tick(&mut self) {
        self.after(TICK, ScheduledEvent::Tick);
        let ids = self.nodes.keys().copied().collect::<Vec<_>>();
        for id in ids {
            let count = self.nodes.get(&id).map_or(0, |node| node.values.len());
            for value in 0..count {
                self.simulate_value(id, value);
            }
        }
    }

    fn simulate_value(&mut self, id: NodeId, at: usize) {
        let Some(node) = self.nodes.get(&id).filter(|node| !node.faults.dead) else {
            return;
        };
        let value = &node.values[at];
        let number = value.real.as_ref().and_then(Json::as_f64);
        let number = number.unwrap_or_default();
        let key = value.id.key.as_deref();
        match (value.id.command_class, value.id.property.as_str(), key) {
            (49, "Humidity", _) => self.drift(id, at, 20, 1.0),
            (49, "Illuminance", _) => self.drift(id, at, 12, 5.0),
            (49, ..) => self.drift(id, at, 6, 0.1),
            (113, "Home Security", _) if number == 0.0 && self.random.u32(..40) == 0 => {
                self.report_for(MOTION_LASTS, id, at, [8, 0]);
            }
            (113, "Access Control", _) if number == 23.0 && self.random.u32(..90) == 0 => {
                self.report_for(DOOR_STAYS_OPEN, id, at, [22, 23]);
            }
            (50, "value", Some("66049")) if number > 0.0 && self.random.u32(..6) == 0 => {
                self.report_power(id);
            }
            (50, "value", Some("65537")) => self.count_energy(id, at, number),
            (128, "level", _) if number > 1.0 && self.random.u32(..3_000) == 0 => {
                self.report_value(id, at, short_number(number - 1.0));
            }
            _ => {}
        }
    }

    fn report_for(&mut self, time: Duration, node: NodeId, value: usize, [now, then]: [u8; 2]) {
        self.report_value(node, value, json!(now));
        let to = json!(then);
        self.after(time, ScheduledEvent::Revert(node, value, to));
    }

    fn drift(&mut self, id: NodeId, at: usize, once_in: u32, step: f64) {
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        let value = &node.values[at];
        let home = initial_sensor_value(node, &value.id.property);
        let now = value.real.as_ref().and_then(Json::as_f64).unwrap_or(home);
        if self.random.u32(..once_in) != 0 {
            return;
        }
        let back = 0.5 + ((now - home) / step).clamp(-8.0, 8.0) / 20.0;
        let back = self.random.f64() < back;
        let next = if back { now - step } else { now + step };
        self.report_value(id, at, short_number(tenths(next)));
    }

    pub(super) fn report_power(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        let mut values = node.values.iter();
        let Some(at) = values.position(|value| value.id.key.as_deref() == Some("66049")) else {
            return;
        };
        let is_on = node.find(37, "currentValue");
        let is_on = is_on.is_none_or(|on| node.values[on].real == Some(json!(true)));
        let draws = node.parts.iter().find_map(|part| match part {
            PlannedPart::Meter { draws, .. } => Some(*draws),
            _ => None,
        });
        let draws = draws.unwrap_or_default();
        let watts = match is_on {
            true => tenths(draws * (0.97 + 0.06 * self.random.f64())),
            false => 0.0,
        };
        self.report_value(id, at, short_number(watts));
    }

    fn count_energy(&mut self, id: NodeId, at: usize, kwh: f64) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        let mut values = node.values.iter();
        let watts = values.find(|value| value.id.key.as_deref() == Some("66049"));
        let watts = watts.and_then(|value| value.real.as_ref()?.as_f64());
        node.energy += watts.unwrap_or_default() * TICK.as_secs_f64() / 3_600_000.0;
        if node.energy >= 0.01 {
            let more = (node.energy * 100.0).floor() / 100.0;
            node.energy -= more;
            self.report_value(id, at, short_number(((kwh + more) * 100.0).round() / 100.0));
        }
    }
}

fn initial_sensor_value(node: &SimulatedNode, wanted: &str) -> f64 {
    let parts = node.parts.iter();
    let mut values = parts.filter_map(|part| match part {
        PlannedPart::Sensor { kind, value } if kind == wanted => Some(*value),
        _ => None,
    });
    values.next().unwrap_or_default()
}

fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}
