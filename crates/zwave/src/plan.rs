//! What to send, and what proves that it was done.

use serde_json::{Value as Json, json};

use toolgate_home::{Command, DeviceKind, TemperatureUnit, WantedState};

use crate::device::{amount, class, find, setpoint};
use crate::kind::kind;
use crate::node::{Node, Value};
use crate::value::ValueId;

/// On, at the level it had before.
const LAST_LEVEL: u64 = 255;
/// All the way: there is no 100 on the air.
const OPEN: u64 = 99;
const LOCKED: u64 = 255;
/// With and without a timeout.
const UNLOCKED: [u64; 2] = [0, 1];

/// The modes that every thermostat knows, for those that did not tell theirs.
const MODES: [(&str, u64); 4] = [("off", 0), ("heat", 1), ("cool", 2), ("auto", 3)];

/// One write, and the value that must follow.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub target: ValueId,
    pub current: ValueId,
    pub send: Json,
    pub wanted: WantedState,
}

pub(crate) fn plan(node: &Node, command: &Command) -> Result<Plan, String> {
    let kind = kind(node);
    let plan = match (command, kind) {
        (Command::Dim(101..), _) => {
            return Err("A level goes from 0 to 100.".to_owned());
        }
        (Command::On | Command::Off, DeviceKind::Switch) => {
            let on = *command == Command::On;
            target(node, class::SWITCH, json!(on), WantedState::Is(on))
        }
        (Command::On, DeviceKind::Blind) => {
            target(node, class::DIMMER, json!(OPEN), WantedState::On)
        }
        (Command::On, kind) if kind.has_level() => {
            target(node, class::DIMMER, json!(LAST_LEVEL), WantedState::On)
        }
        (Command::Off, kind) if kind.has_level() => {
            target(node, class::DIMMER, json!(0), WantedState::Level(0))
        }
        (Command::Dim(level), kind) if kind.has_level() => {
            // There is no 100 on the air.
            let level = u64::from(*level).min(99);
            target(node, class::DIMMER, json!(level), WantedState::Level(level))
        }
        (Command::Lock, DeviceKind::Lock) => lock(node, LOCKED, WantedState::Bolt(&[LOCKED])),
        (Command::Unlock, DeviceKind::Lock) => {
            lock(node, UNLOCKED[0], WantedState::Bolt(&UNLOCKED))
        }
        (Command::Mode(mode), DeviceKind::Thermostat) => thermostat_mode(node, mode)?,
        (Command::Setpoint(number, unit), DeviceKind::Thermostat) => {
            temperature(node, *number, *unit)?
        }
        _ => return Err(cannot(node, kind, command)),
    };
    match node
        .values
        .get(&plan.target)
        .and_then(|value| value.writeable)
    {
        Some(false) => Err(format!("'{}' can only be read.", node.title())),
        _ => Ok(plan),
    }
}

fn cannot(node: &Node, kind: DeviceKind, command: &Command) -> String {
    let (name, article) = (
        node.title(),
        if kind == DeviceKind::Other {
            "no device that"
        } else {
            ""
        },
    );
    let what = match command {
        Command::On | Command::Off => "can not be turned on or off",
        Command::Dim(_) => "can not be dimmed",
        Command::Lock | Command::Unlock => "can not be locked or unlocked",
        Command::Mode(_) | Command::Setpoint(..) => "has no temperature to set",
    };
    let hint = match (command, kind) {
        (Command::Dim(_), DeviceKind::Switch) => " It can be turned on or off.",
        (Command::On | Command::Off, DeviceKind::Thermostat) => " Set its mode or temperature.",
        (Command::On | Command::Off, DeviceKind::Lock) => " It can be locked or unlocked.",
        _ => "",
    };
    if article.is_empty() {
        format!("'{name}' is a {kind} and {what}.{hint}")
    } else {
        format!("'{name}' {what}.")
    }
}

fn target(node: &Node, class: u16, send: Json, wanted: WantedState) -> Plan {
    pair(node, class, ["targetValue", "currentValue"], send, wanted)
}

fn lock(node: &Node, mode: u64, wanted: WantedState) -> Plan {
    pair(
        node,
        class::LOCK,
        ["targetMode", "currentMode"],
        json!(mode),
        wanted,
    )
}

/// The value to write and the value to watch, on one endpoint.
fn pair(
    node: &Node,
    class: u16,
    [target, current]: [&str; 2],
    send: Json,
    wanted: WantedState,
) -> Plan {
    let endpoint = find(node, class, target)
        .or_else(|| find(node, class, current))
        .map_or(0, |(id, _)| id.endpoint);
    Plan {
        target: ValueId::new(class, endpoint, target),
        current: ValueId::new(class, endpoint, current),
        send,
        wanted,
    }
}

/// A value that is written and watched itself.
fn itself(id: &ValueId, number: f64) -> Plan {
    let send = if number.fract() == 0.0 && number.abs() < 1e9 {
        #[expect(clippy::cast_possible_truncation, reason = "a whole number below 1e9")]
        let whole = number as i64;
        json!(whole)
    } else {
        json!(number)
    };
    Plan {
        target: id.clone(),
        current: id.clone(),
        send,
        wanted: WantedState::Number(number),
    }
}

fn thermostat_mode(node: &Node, mode: &str) -> Result<Plan, String> {
    let Some((id, value)) = find(node, class::MODE, "mode") else {
        return Err(format!(
            "'{}' has no modes, only a temperature.",
            node.title()
        ));
    };
    let choices = value
        .states
        .iter()
        .filter_map(|choice| Some((choice.text.to_lowercase(), choice.value.as_f64()?)));
    let mut choices = choices.collect::<Vec<_>>();
    if choices.is_empty() {
        #[expect(clippy::cast_precision_loss, reason = "0 to 3")]
        choices.extend(MODES.map(|(text, number)| (text.to_owned(), number as f64)));
    }
    let wanted = mode.trim().to_lowercase();
    match choices.iter().find(|(text, _)| *text == wanted) {
        Some((_, number)) => Ok(itself(id, *number)),
        None => {
            let all = choices.iter().map(|(text, _)| text.as_str());
            let all = all.collect::<Vec<_>>().join(", ");
            Err(format!(
                "'{}' has no such mode. It has: {all}.",
                node.title()
            ))
        }
    }
}

fn temperature(node: &Node, number: f64, unit: Option<TemperatureUnit>) -> Result<Plan, String> {
    let Some((id, value)) = setpoint(node) else {
        return Err(format!("'{}' has no temperature to set.", node.title()));
    };
    if !number.is_finite() {
        return Err("A temperature is a number.".to_owned());
    }
    let number = converted(number, unit, value);
    let (low, high) = (value.min.unwrap_or(f64::MIN), value.max.unwrap_or(f64::MAX));
    if number < low || number > high {
        let unit = value.unit.as_deref();
        return Err(format!(
            "'{}' can be set from {} to {}.",
            node.title(),
            amount(low, unit),
            amount(high, unit)
        ));
    }
    Ok(itself(id, number))
}

/// In the unit of the device, to a tenth.
fn converted(number: f64, unit: Option<TemperatureUnit>, value: &Value) -> f64 {
    let own = value.unit.as_deref().unwrap_or_default();
    let number = match unit {
        Some(TemperatureUnit::Fahrenheit) if own.contains('C') => (number - 32.0) / 1.8,
        Some(TemperatureUnit::Celsius) if own.contains('F') => number * 1.8 + 32.0,
        _ => number,
    };
    (number * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests;
