//! Which devices a house has, and how they are at first.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::node::is_device;
use crate::value::{NodeId, ValueId};

/// The largest network there is.
const MAX_NODES: usize = 4_000;

/// A house before it begins.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Its devices.
    pub nodes: Vec<PlannedNode>,
    /// What people arranged.
    #[serde(default)]
    pub scenes: Vec<PlannedScene>,
}

/// A device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedNode {
    /// From 2 on; 1 is the controller.
    pub id: NodeId,
    /// May be empty.
    #[serde(default)]
    pub name: String,
    /// The room or place; may be empty.
    #[serde(default)]
    pub location: String,
    /// What it can do.
    pub parts: Vec<PlannedPart>,
    /// Whether it listens.
    #[serde(default)]
    pub rest: Rest,
}

/// Whether a device listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rest {
    /// Always.
    #[default]
    Awake,
    /// For a moment, each time that so many seconds have gone by.
    WakesEvery(u32),
    /// Its battery is empty.
    Dead,
}

/// Something that a device can do, and how it is at first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PlannedPart {
    /// Goes on and off.
    Switch {
        /// Whether it is on.
        on: bool,
    },
    /// Has a level.
    Dimmer {
        /// 0 to 99.
        level: u8,
    },
    /// Measures.
    Sensor {
        /// `Air temperature`, `Humidity` or `Illuminance`.
        kind: String,
        /// In °C, % or lux.
        value: f64,
    },
    /// Notices, in the old way.
    BinarySensor {
        /// `Motion` or `Door/Window`.
        kind: String,
    },
    /// Notices motion.
    MotionAlarm,
    /// Notices a door.
    DoorAlarm {
        /// Whether it is open.
        open: bool,
    },
    /// Counts electricity.
    Meter {
        /// So far.
        kwh: f64,
        /// At the moment.
        watts: f64,
        /// When it is on.
        #[serde(default)]
        draws: f64,
    },
    /// Heats.
    Thermostat {
        /// 0 is off, 1 heats, 2 cools.
        mode: u8,
        /// In °C.
        setpoint: f64,
    },
    /// Locks a door.
    Lock {
        /// Whether it is locked.
        locked: bool,
    },
    /// Has a battery.
    Battery {
        /// In percent.
        level: u8,
    },
    /// Tells on and off in the oldest way.
    Basic,
}

/// Something people arranged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedScene {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub label: String,
    /// What it does.
    pub writes: Vec<PlannedWrite>,
}

/// One value that a scene sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlannedWrite {
    /// Of which device.
    pub node: NodeId,
    /// Such as 38.
    pub command_class: u16,
    /// Such as `targetValue`.
    pub property: String,
    /// Such as `1`.
    #[serde(default)]
    pub key: Option<String>,
    /// To what.
    pub value: Json,
}

impl PlannedWrite {
    pub(super) fn value_id(&self) -> ValueId {
        ValueId {
            key: self.key.clone(),
            ..ValueId::new(self.command_class, 0, self.property.as_str())
        }
    }
}

/// This is no plan of a house.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Not JSON, or not of this form.
    #[error("The plan of the house can not be read: {0}.")]
    Unreadable(#[from] serde_json::Error),
    /// A number that no device can have, or two have.
    #[error(
        "A house has every number from 2 to 4000 at most once, without 255; {0} is wrong or twice."
    )]
    Number(NodeId),
    /// Too many.
    #[error("A house has no more than {MAX_NODES} devices.")]
    TooMany,
}

impl Plan {
    /// The house of the demo: a dozen devices in several rooms.
    pub fn demo() -> Self {
        // A test reads it; were it broken, the house would be empty.
        Self::from_json(include_str!("demo.json")).unwrap_or_default()
    }

    /// Reads a plan.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let plan = serde_json::from_str::<Self>(text)?;
        let mut seen = BTreeSet::new();
        for node in &plan.nodes {
            if node.id < 2 || !is_device(node.id) || !seen.insert(node.id) {
                return Err(PlanError::Number(node.id));
            }
        }
        match plan.nodes.len() {
            ..=MAX_NODES => Ok(plan),
            _ => Err(PlanError::TooMany),
        }
    }

    /// A large building: so many switches, dimmers and sensors in turn, four to a room, called `Light 2`, `Lamp 3`, `Sensor 4`.
    pub fn building(devices: u16) -> Self {
        let nodes = (2..).filter(|id| is_device(*id)).take(devices.into());
        let nodes = nodes.map(|id| {
            let (name, part) = match id % 3 {
                2 => ("Light", PlannedPart::Switch { on: false }),
                0 => ("Lamp", PlannedPart::Dimmer { level: 0 }),
                _ => (
                    "Sensor",
                    PlannedPart::Sensor {
                        kind: "Air temperature".to_owned(),
                        value: 21.0,
                    },
                ),
            };
            PlannedNode {
                id,
                name: format!("{name} {id}"),
                location: format!("Room {}", id / 4),
                parts: vec![part],
                rest: Rest::Awake,
            }
        });
        Self {
            nodes: nodes.collect(),
            scenes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_has_what_it_promises() {
        let plan = Plan::from_json(include_str!("demo.json")).unwrap();
        assert_eq!(plan, Plan::demo());
        assert!((12..=16).contains(&plan.nodes.len()));
        let has = |wanted: fn(&PlannedPart) -> bool| {
            let parts = plan.nodes.iter().flat_map(|node| &node.parts);
            assert!(parts.into_iter().any(wanted));
        };
        has(|part| matches!(part, PlannedPart::Switch { .. }));
        has(|part| matches!(part, PlannedPart::Dimmer { .. }));
        has(|part| matches!(part, PlannedPart::Lock { .. }));
        has(|part| matches!(part, PlannedPart::Thermostat { .. }));
        has(|part| matches!(part, PlannedPart::Sensor { kind, .. } if kind == "Air temperature"));
        has(|part| matches!(part, PlannedPart::Sensor { kind, .. } if kind == "Humidity"));
        has(|part| matches!(part, PlannedPart::MotionAlarm));
        has(|part| matches!(part, PlannedPart::DoorAlarm { .. }));
        has(|part| matches!(part, PlannedPart::Meter { .. }));
        has(|part| matches!(part, PlannedPart::Battery { .. }));
        let rests = |wanted: fn(Rest) -> bool| plan.nodes.iter().any(|node| wanted(node.rest));
        assert!(rests(|rest| rest == Rest::Dead));
        assert!(rests(|rest| matches!(rest, Rest::WakesEvery(_))));
        let scenes = plan.scenes.iter().map(|scene| scene.label.as_str());
        assert_eq!(scenes.collect::<Vec<_>>(), ["Movie Night", "Good Night"]);
    }

    #[test]
    fn numbers_are_those_of_devices_and_each_once() {
        for ids in [vec![1], vec![0], vec![255], vec![4096], vec![2, 3, 2]] {
            let nodes = ids.iter().map(|id| format!(r#"{{"id":{id},"parts":[]}}"#));
            let nodes = nodes.collect::<Vec<_>>().join(",");
            let plan = Plan::from_json(&format!(r#"{{"nodes":[{nodes}]}}"#));
            assert!(matches!(plan, Err(PlanError::Number(_))), "{ids:?}");
        }
    }

    #[test]
    fn a_building_has_as_many_devices_as_asked_for() {
        let plan = Plan::building(1_000);
        assert_eq!(plan.nodes.len(), 1_000);
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(Plan::from_json(&text).unwrap(), plan);
    }
}
