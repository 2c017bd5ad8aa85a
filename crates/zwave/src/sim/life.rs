//! What happens by itself.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::catalog::short;
use super::node::Node;
use super::plan::PlannedPart;
use super::world::{Due, World};
use crate::value::NodeId;

pub(super) const TICK: Duration = Duration::from_secs(10);
const MOTION_LASTS: Duration = Duration::from_secs(20);
const DOOR_STAYS: Duration = Duration::from_secs(15);

impl World {
    pub(super) fn tick(&mut self) {
        self.after(TICK, Due::Tick);
        let ids = self.nodes.keys().copied().collect::<Vec<_>>();
        for id in ids {
            let count = self.nodes.get(&id).map_or(0, |node| node.values.len());
            for value in 0..count {
                self.live(id, value);
            }
        }
    }

    fn live(&mut self, id: NodeId, at: usize) {
        let Some(node) = self.nodes.get(&id).filter(|node| !node.faults.dead) else {
            return;
        };
        let value = &node.values[at];
        let number = value
            .real
            .as_ref()
            .and_then(Json::as_f64)
            .unwrap_or_default();
        let key = value.id.key.as_deref();
        match (value.id.command_class, value.id.property.as_str(), key) {
            (49, "Humidity", _) => self.drift(id, at, 20, 1.0),
            (49, "Illuminance", _) => self.drift(id, at, 12, 5.0),
            (49, ..) => self.drift(id, at, 6, 0.1),
            (113, "Home Security", _) if number == 0.0 && self.random.u32(..40) == 0 => {
                self.report(id, at, json!(8));
                self.after(
                    MOTION_LASTS,
                    Due::Calm {
                        node: id,
                        value: at,
                        to: json!(0),
                    },
                );
            }
            (113, "Access Control", _) if number == 23.0 && self.random.u32(..90) == 0 => {
                self.report(id, at, json!(22));
                self.after(
                    DOOR_STAYS,
                    Due::Calm {
                        node: id,
                        value: at,
                        to: json!(23),
                    },
                );
            }
            (50, "value", Some("66049")) if number > 0.0 && self.random.u32(..6) == 0 => {
                self.draw(id);
            }
            (50, "value", Some("65537")) => self.count_energy(id, at, number),
            (128, "level", _) if number > 1.0 && self.random.u32(..3_000) == 0 => {
                self.report(id, at, short(number - 1.0));
            }
            _ => {}
        }
    }

    /// Once in a while a step up or down; the farther from home, the likelier back.
    fn drift(&mut self, id: NodeId, at: usize, once_in: u32, step: f64) {
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        let value = &node.values[at];
        let home = at_first(node, &value.id.property);
        let now = value.real.as_ref().and_then(Json::as_f64).unwrap_or(home);
        if self.random.u32(..once_in) != 0 {
            return;
        }
        let back = 0.5 + ((now - home) / step).clamp(-8.0, 8.0) / 20.0;
        let back = self.random.f64() < back;
        let next = if back { now - step } else { now + step };
        self.report(id, at, short(tenths(next)));
    }

    /// A plug tells what it draws: nothing when it is off.
    pub(super) fn draw(&mut self, id: NodeId) {
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
        let watts = if is_on {
            tenths(draws * (0.97 + 0.06 * self.random.f64()))
        } else {
            0.0
        };
        self.report(id, at, short(watts));
    }

    /// The meter goes on, and tells by the hundredth.
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
            self.report(id, at, short(((kwh + more) * 100.0).round() / 100.0));
        }
    }
}

fn at_first(node: &Node, wanted: &str) -> f64 {
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
