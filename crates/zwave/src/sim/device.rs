//! The simulated reactions of devices to commands.

use serde_json::{Value as Json, json};

use super::node::SimulatedNode;
use super::value::SimulatedValue;
use crate::value::short_number;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct WriteEffect {
    pub real: Vec<(usize, Json)>,
    /// The values that the gateway expects at once.
    pub expected: Vec<(usize, Json)>,
}

pub(super) fn parse_write(value: &SimulatedValue, payload: &Json) -> Option<Json> {
    let requested = payload.get("value").unwrap_or(payload);
    match (value.kind.as_str(), requested) {
        ("boolean", Json::Bool(_)) => Some(requested.clone()),
        ("number", Json::Number(number)) => number.as_f64().map(short_number),
        ("boolean", Json::String(text)) => match text.to_lowercase().as_str() {
            "on" | "true" => Some(json!(true)),
            "off" | "false" => Some(json!(false)),
            _ => None,
        },
        ("number", Json::String(text)) => text.trim().parse::<f64>().ok().map(short_number),
        _ => None,
    }
}

pub(super) fn write_effect(
    node: &SimulatedNode,
    target: usize,
    requested: &Json,
) -> Option<WriteEffect> {
    let value = &node.values[target];
    let (class, property) = (value.id.command_class, value.id.property.as_str());
    let at = |property: &str| node.find(class, property);
    match (class, property) {
        (37, "targetValue") => {
            requested.as_bool()?;
            let current = at("currentValue")?;
            Some(WriteEffect {
                real: vec![(current, requested.clone())],
                expected: vec![(target, requested.clone()), (current, requested.clone())],
            })
        }
        (38, "targetValue") => Some(dimmer_effect(node, target, requested.as_u64()?)),
        (98, "targetMode") => {
            let bolt = match requested.as_u64()? {
                255 => "locked",
                0 => "unlocked",
                _ => return None,
            };
            let (current, bolt_at) = (at("currentMode")?, at("boltStatus")?);
            Some(WriteEffect {
                real: vec![(current, requested.clone()), (bolt_at, json!(bolt))],
                expected: vec![(target, requested.clone()), (current, requested.clone())],
            })
        }
        (64, "mode") => {
            let known = value
                .states
                .iter()
                .any(|state| state["value"] == *requested);
            known.then(|| same_value_effect(target, requested))
        }
        (67, "setpoint") => {
            let (low, high) = value.range?;
            let wished = requested.as_f64()?;
            (f64::from(low) <= wished && wished <= f64::from(high))
                .then(|| same_value_effect(target, requested))
        }
        (50, "reset") => Some(WriteEffect {
            real: vec![(at("value")?, json!(0))],
            expected: Vec::new(),
        }),
        _ => None,
    }
}

fn same_value_effect(target: usize, requested: &Json) -> WriteEffect {
    WriteEffect {
        real: vec![(target, requested.clone())],
        expected: vec![(target, requested.clone())],
    }
}

fn dimmer_effect(node: &SimulatedNode, target: usize, level: u64) -> WriteEffect {
    let echo = (target, json!(level));
    let Some(current) = node.find(38, "currentValue") else {
        return WriteEffect {
            real: Vec::new(),
            expected: vec![echo],
        };
    };
    match level {
        0..=99 => WriteEffect {
            real: vec![(current, json!(level))],
            expected: vec![echo, (current, json!(level))],
        },
        // The previous level, which the gateway does not know.
        255 => WriteEffect {
            real: vec![(current, json!(node.last_level))],
            expected: vec![echo],
        },
        // The device ignores an invalid level, and the gateway does not notice.
        _ => WriteEffect {
            real: Vec::new(),
            expected: vec![echo],
        },
    }
}

pub(super) fn read_back_values(node: &SimulatedNode, target: usize) -> Vec<usize> {
    let value = &node.values[target];
    let class = value.id.command_class;
    let refused = class == 38
        && value
            .known
            .as_ref()
            .and_then(Json::as_u64)
            .is_some_and(|level| (100..255).contains(&level));
    let all: &[&str] = match class {
        37 => &["currentValue"],
        38 if refused => &["duration"],
        38 => &["currentValue", "duration", "targetValue"],
        98 => &["currentMode", "boltStatus"],
        50 => &["value"],
        _ => return vec![target],
    };
    all.iter()
        .filter_map(|property| node.find(class, property))
        .collect()
}

pub(super) fn is_movement(value: &SimulatedValue) -> bool {
    matches!(
        (value.id.command_class, value.id.property.as_str()),
        (37 | 38, "currentValue") | (98, "currentMode") | (64, "mode") | (67, "setpoint")
    )
}
