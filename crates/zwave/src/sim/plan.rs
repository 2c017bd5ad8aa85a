//! The description of a simulated home: its devices and their initial state.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::node::is_device;
use crate::value::{NodeId, ValueId};

const MAX_NODES: usize = 4_000;

/// The devices and scenes of a simulated home, as in `demo.json`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HousePlan {
    pub nodes: Vec<PlannedNode>,
    #[serde(default)]
    pub scenes: Vec<PlannedScene>,
}

/// A device of a [`HousePlan`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedNode {
    /// At least 2; 1 is the controller.
    pub id: NodeId,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub location: String,
    pub parts: Vec<PlannedPart>,
    #[serde(default, rename = "rest")]
    pub sleep_mode: SleepMode,
}

/// When a simulated device listens to commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SleepMode {
    #[default]
    Awake,
    /// Wakes briefly at this interval, in seconds.
    WakesEvery(u32),
    Dead,
}

/// A function of a simulated device, with its first value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PlannedPart {
    Switch {
        on: bool,
    },
    Dimmer {
        level: u8,
    },
    Sensor {
        /// `Air temperature`, `Humidity` or `Illuminance`.
        kind: String,
        /// In °C, % or lux.
        value: f64,
    },
    /// A sensor of the old binary kind.
    BinarySensor {
        kind: String,
    },
    MotionAlarm,
    DoorAlarm {
        open: bool,
    },
    Meter {
        kwh: f64,
        watts: f64,
        /// The power in watts while it is switched on.
        #[serde(default)]
        draws: f64,
    },
    Thermostat {
        /// 0 is off, 1 heats, 2 cools.
        mode: u8,
        setpoint: f64,
    },
    Lock {
        locked: bool,
    },
    Battery {
        level: u8,
    },
    /// On and off through the oldest command class.
    Basic,
}

/// A scene of a [`HousePlan`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedScene {
    pub id: u64,
    pub label: String,
    pub writes: Vec<PlannedWrite>,
}

/// A value that a scene writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlannedWrite {
    pub node: NodeId,
    pub command_class: u16,
    pub property: String,
    #[serde(default)]
    pub key: Option<String>,
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

/// Why a [`HousePlan`] can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HousePlanError {
    #[error("The plan of the simulated home is invalid: {0}.")]
    Unreadable(#[from] serde_json::Error),
    #[error(
        "Node numbers go from 2 to 4000 without 255, each at most once; {0} is invalid or used twice."
    )]
    Number(NodeId),
    #[error("A simulated home has at most {MAX_NODES} devices.")]
    TooMany,
}

impl HousePlan {
    /// The demo home: a dozen devices in several rooms.
    pub fn demo() -> Self {
        // A test parses the file, so the fallback to an empty home is never used.
        Self::from_json(include_str!("demo.json")).unwrap_or_default()
    }

    pub fn from_json(text: &str) -> Result<Self, HousePlanError> {
        let plan = serde_json::from_str::<Self>(text)?;
        let mut seen = BTreeSet::new();
        for node in &plan.nodes {
            if node.id < 2 || !is_device(node.id) || !seen.insert(node.id) {
                return Err(HousePlanError::Number(node.id));
            }
        }
        match plan.nodes.len() {
            ..=MAX_NODES => Ok(plan),
            _ => Err(HousePlanError::TooMany),
        }
    }

    /// A large building with alternating switches, dimmers and sensors, four to a room, named
    /// `Light 2`, `Lamp 3`, `Sensor 4`.
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
                sleep_mode: SleepMode::Awake,
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
    fn the_demo_has_every_kind_of_device() {
        let plan = HousePlan::from_json(include_str!("demo.json")).unwrap();
        assert_eq!(plan, HousePlan::demo());
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
        let has_mode =
            |wanted: fn(SleepMode) -> bool| plan.nodes.iter().any(|node| wanted(node.sleep_mode));
        assert!(has_mode(|mode| mode == SleepMode::Dead));
        assert!(has_mode(|mode| matches!(mode, SleepMode::WakesEvery(_))));
        let scenes = plan.scenes.iter().map(|scene| scene.label.as_str());
        assert_eq!(scenes.collect::<Vec<_>>(), ["Movie Night", "Good Night"]);
    }

    #[test]
    fn invalid_and_repeated_node_numbers_are_refused() {
        for ids in [vec![1], vec![0], vec![255], vec![4096], vec![2, 3, 2]] {
            let nodes = ids.iter().map(|id| format!(r#"{{"id":{id},"parts":[]}}"#));
            let nodes = nodes.collect::<Vec<_>>().join(",");
            let plan = HousePlan::from_json(&format!(r#"{{"nodes":[{nodes}]}}"#));
            assert!(matches!(plan, Err(HousePlanError::Number(_))), "{ids:?}");
        }
    }

    #[test]
    fn a_building_has_as_many_devices_as_asked_for() {
        let plan = HousePlan::building(1_000);
        assert_eq!(plan.nodes.len(), 1_000);
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(HousePlan::from_json(&text).unwrap(), plan);
    }
}
