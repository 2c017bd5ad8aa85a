//! What devices do with what they are told.

use serde_json::{Value as Json, json};

use super::catalog::short;
use super::node::Node;
use super::value::Value;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Effect {
    /// What the device is then.
    pub real: Vec<(usize, Json)>,
    /// What the gateway expects at once.
    pub expected: Vec<(usize, Json)>,
}

/// What the gateway understands from a payload for a value; `None` if nothing.
pub(super) fn wish(value: &Value, payload: &Json) -> Option<Json> {
    let wish = payload.get("value").unwrap_or(payload);
    match (value.kind, wish) {
        ("boolean", Json::Bool(_)) => Some(wish.clone()),
        ("number", Json::Number(number)) => number.as_f64().map(short),
        ("boolean", Json::String(text)) => match text.to_lowercase().as_str() {
            "on" | "true" => Some(json!(true)),
            "off" | "false" => Some(json!(false)),
            _ => None,
        },
        ("number", Json::String(text)) => text.trim().parse::<f64>().ok().map(short),
        _ => None,
    }
}

/// What comes of a wish; `None` if the gateway knows that the value can not be that.
pub(super) fn effect(node: &Node, target: usize, wish: &Json) -> Option<Effect> {
    let value = &node.values[target];
    let (class, property) = (value.id.command_class, value.id.property.as_str());
    let at = |property: &str| node.find(class, property);
    match (class, property) {
        (37, "targetValue") => {
            wish.as_bool()?;
            let current = at("currentValue")?;
            Some(Effect {
                real: vec![(current, wish.clone())],
                expected: vec![(target, wish.clone()), (current, wish.clone())],
            })
        }
        (38, "targetValue") => Some(dimmer(node, target, wish.as_u64()?)),
        (98, "targetMode") => {
            let bolt = match wish.as_u64()? {
                255 => "locked",
                0 => "unlocked",
                _ => return None,
            };
            let (current, bolt_at) = (at("currentMode")?, at("boltStatus")?);
            Some(Effect {
                real: vec![(current, wish.clone()), (bolt_at, json!(bolt))],
                expected: vec![(target, wish.clone()), (current, wish.clone())],
            })
        }
        (64, "mode") => {
            let known = value.states.iter().any(|state| state["value"] == *wish);
            known.then(|| itself(target, wish))
        }
        (67, "setpoint") => {
            let (low, high) = value.range?;
            let wished = wish.as_f64()?;
            (f64::from(low) <= wished && wished <= f64::from(high)).then(|| itself(target, wish))
        }
        (50, "reset") => Some(Effect {
            real: vec![(at("value")?, json!(0))],
            expected: Vec::new(),
        }),
        _ => None,
    }
}

fn itself(target: usize, wish: &Json) -> Effect {
    Effect {
        real: vec![(target, wish.clone())],
        expected: vec![(target, wish.clone())],
    }
}

fn dimmer(node: &Node, target: usize, level: u64) -> Effect {
    let echo = (target, json!(level));
    let Some(current) = node.find(38, "currentValue") else {
        return Effect {
            real: Vec::new(),
            expected: vec![echo],
        };
    };
    match level {
        0..=99 => Effect {
            real: vec![(current, json!(level))],
            expected: vec![echo, (current, json!(level))],
        },
        // As bright as before: the gateway does not know how bright that is.
        255 => Effect {
            real: vec![(current, json!(node.last_level))],
            expected: vec![echo],
        },
        // There is no such level: the device does nothing, and the gateway does not notice.
        _ => Effect {
            real: Vec::new(),
            expected: vec![echo],
        },
    }
}

/// What the gateway reads when it reads back a value that was written.
pub(super) fn verified(node: &Node, target: usize) -> Vec<usize> {
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

/// Moving is what is heard and worn out: not every value of a device.
pub(super) fn moves(value: &Value) -> bool {
    matches!(
        (value.id.command_class, value.id.property.as_str()),
        (37 | 38, "currentValue") | (98, "currentMode") | (64, "mode") | (67, "setpoint")
    )
}
