//! Plans a command: the value to write, and the value that proves it.

use serde_json::{Value as Json, json};

use toolgate_home::{DeviceCommand, DeviceKind, TemperatureUnit, WantedState};

use crate::device::{class, find_value, setpoint, with_unit};
use crate::kind::device_kind;
use crate::node::{NodeValue, ValueChoice, ZwaveNode};
use crate::value::{ValueId, short_number};

/// Turns on at the previous level.
const LAST_LEVEL: u64 = 255;
/// Fully open: levels end at 99 on the radio.
const FULL_LEVEL: u64 = 99;
const LOCKED: u64 = 255;
// Without and with a timeout.
const UNLOCKED: [u64; 2] = [0, 1];

/// Standard modes, for thermostats that did not list theirs.
const MODES: [(&str, u64); 4] = [("off", 0), ("heat", 1), ("cool", 2), ("auto", 3)];

// One value to write, and the report that proves it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CommandPlan {
    pub target: ValueId,
    pub current: ValueId,
    pub send: Json,
    pub wanted: WantedState,
}

pub(crate) fn plan_command(
    node: &ZwaveNode,
    command: &DeviceCommand,
) -> Result<CommandPlan, String> {
    let kind = device_kind(node);
    let plan = match (command, kind) {
        (DeviceCommand::Dim(101..), _) => {
            return Err("A level goes from 0 to 100.".to_owned());
        }
        (DeviceCommand::On | DeviceCommand::Off, DeviceKind::Switch) => {
            let on = *command == DeviceCommand::On;
            target_value_plan(node, class::SWITCH, json!(on), WantedState::Is(on))
        }
        (DeviceCommand::On, DeviceKind::Blind) => {
            target_value_plan(node, class::DIMMER, json!(FULL_LEVEL), WantedState::On)
        }
        (DeviceCommand::On, kind) if kind.has_level() => {
            target_value_plan(node, class::DIMMER, json!(LAST_LEVEL), WantedState::On)
        }
        (DeviceCommand::Off, kind) if kind.has_level() => {
            target_value_plan(node, class::DIMMER, json!(0), WantedState::Level(0))
        }
        (DeviceCommand::Dim(level), kind) if kind.has_level() => {
            // Levels end at 99 on the radio.
            let level = u64::from(*level).min(99);
            target_value_plan(node, class::DIMMER, json!(level), WantedState::Level(level))
        }
        (DeviceCommand::Lock, DeviceKind::Lock) => {
            lock_plan(node, LOCKED, WantedState::Bolt(&[LOCKED]))
        }
        (DeviceCommand::Unlock, DeviceKind::Lock) => {
            lock_plan(node, UNLOCKED[0], WantedState::Bolt(&UNLOCKED))
        }
        (DeviceCommand::Mode(mode), DeviceKind::Thermostat) => mode_plan(node, mode)?,
        (DeviceCommand::Setpoint(number, unit), DeviceKind::Thermostat) => {
            setpoint_plan(node, *number, *unit)?
        }
        _ => return Err(unsupported(node, kind, command)),
    };
    let target = node.values.get(&plan.target);
    match target.and_then(|value| value.writeable) {
        Some(false) => Err(format!("'{}' can only be read.", node.title())),
        _ => Ok(plan),
    }
}

fn unsupported(node: &ZwaveNode, kind: DeviceKind, command: &DeviceCommand) -> String {
    let name = node.title();
    let what = match command {
        DeviceCommand::On | DeviceCommand::Off => "can't be turned on or off",
        DeviceCommand::Dim(_) => "can't be dimmed",
        DeviceCommand::Lock | DeviceCommand::Unlock => "can't be locked or unlocked",
        DeviceCommand::Mode(_) | DeviceCommand::Setpoint(..) => "has no temperature to set",
    };
    let hint = match (command, kind) {
        (DeviceCommand::Dim(_), DeviceKind::Switch) => " It can be turned on or off.",
        (DeviceCommand::On | DeviceCommand::Off, DeviceKind::Thermostat) => {
            " Set its mode or temperature."
        }
        (DeviceCommand::On | DeviceCommand::Off, DeviceKind::Lock) => {
            " It can be locked or unlocked."
        }
        _ => "",
    };
    match kind {
        DeviceKind::Other => format!("'{name}' {what}."),
        _ => format!("'{name}' is a {kind} and {what}.{hint}"),
    }
}

fn target_value_plan(node: &ZwaveNode, class: u16, send: Json, wanted: WantedState) -> CommandPlan {
    write_plan(node, class, ["targetValue", "currentValue"], send, wanted)
}

fn lock_plan(node: &ZwaveNode, mode: u64, wanted: WantedState) -> CommandPlan {
    let names = ["targetMode", "currentMode"];
    write_plan(node, class::LOCK, names, json!(mode), wanted)
}

fn write_plan(
    node: &ZwaveNode,
    class: u16,
    [target, current]: [&str; 2],
    send: Json,
    wanted: WantedState,
) -> CommandPlan {
    let endpoint = find_value(node, class, target)
        .or_else(|| find_value(node, class, current))
        .map_or(0, |(id, _)| id.endpoint);
    CommandPlan {
        target: ValueId::new(class, endpoint, target),
        current: ValueId::new(class, endpoint, current),
        send,
        wanted,
    }
}

/// For a value without a separate target: the written value itself is watched.
fn single_value_plan(id: &ValueId, number: f64) -> CommandPlan {
    CommandPlan {
        target: id.clone(),
        current: id.clone(),
        send: short_number(number),
        wanted: WantedState::Number(number),
    }
}

fn mode_plan(node: &ZwaveNode, mode: &str) -> Result<CommandPlan, String> {
    let Some((id, value)) = find_value(node, class::MODE, "mode") else {
        let name = node.title();
        return Err(format!("'{name}' has no modes, only a temperature."));
    };
    let known = |choice: &ValueChoice| Some((choice.text.to_lowercase(), choice.value.as_f64()?));
    let mut choices = value.states.iter().filter_map(known).collect::<Vec<_>>();
    if choices.is_empty() {
        #[expect(clippy::cast_precision_loss, reason = "0 to 3")]
        choices.extend(MODES.map(|(text, number)| (text.to_owned(), number as f64)));
    }
    let wanted = mode.trim().to_lowercase();
    match choices.iter().find(|(text, _)| *text == wanted) {
        Some((_, number)) => Ok(single_value_plan(id, *number)),
        None => {
            let all = choices.iter().map(|(text, _)| text.as_str());
            let all = all.collect::<Vec<_>>().join(", ");
            let name = node.title();
            Err(format!("'{name}' has no such mode. It has: {all}."))
        }
    }
}

fn setpoint_plan(
    node: &ZwaveNode,
    number: f64,
    unit: Option<TemperatureUnit>,
) -> Result<CommandPlan, String> {
    let Some((id, value)) = setpoint(node) else {
        return Err(format!("'{}' has no temperature to set.", node.title()));
    };
    if !number.is_finite() {
        return Err("A temperature is a number.".to_owned());
    }
    let number = convert_temperature(number, unit, value);
    let (low, high) = (value.min.unwrap_or(f64::MIN), value.max.unwrap_or(f64::MAX));
    if number < low || number > high {
        let (name, unit) = (node.title(), value.unit.as_deref());
        let (low, high) = (with_unit(low, unit), with_unit(high, unit));
        return Err(format!("'{name}' can be set from {low} to {high}."));
    }
    Ok(single_value_plan(id, number))
}

fn convert_temperature(number: f64, unit: Option<TemperatureUnit>, value: &NodeValue) -> f64 {
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
