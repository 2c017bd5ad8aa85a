//! What people talk about: a node as a device, with its state in words.

use std::time::{Duration, SystemTime};

use serde_json::Value as Json;
use toolgate_home::{Device, DeviceKind, Reading};

use crate::kind::kind;
use crate::node::{Node, Value};
use crate::value::ValueId;

pub(crate) mod class {
    pub(crate) const SWITCH: u16 = 37;
    pub(crate) const DIMMER: u16 = 38;
    pub(crate) const BINARY_SENSOR: u16 = 48;
    pub(crate) const SENSOR: u16 = 49;
    pub(crate) const METER: u16 = 50;
    pub(crate) const MODE: u16 = 64;
    pub(crate) const OPERATING_STATE: u16 = 66;
    pub(crate) const SETPOINT: u16 = 67;
    pub(crate) const LOCK: u16 = 98;
    pub(crate) const WINDOW_COVERING: u16 = 106;
    pub(crate) const NOTIFICATION: u16 = 113;
    pub(crate) const BATTERY: u16 = 128;
}

pub(crate) fn device(node: &Node, stale: bool) -> Device {
    let outline = outline(node, stale);
    let readings = readings(node);
    Device {
        state: state(node, outline.kind, &readings),
        readings,
        ..outline
    }
}

/// What a device is, without what it measures: enough to find it by its name.
pub(crate) fn outline(node: &Node, stale: bool) -> Device {
    Device {
        id: node.id.into(),
        name: node.title(),
        location: node.location.clone(),
        kind: kind(node),
        status: node.status,
        stale,
        last_seen: node.last_active.map(moment),
        state: String::new(),
        readings: Vec::new(),
    }
}

/// The value of a class and property on the lowest endpoint that has it.
pub(crate) fn find<'a>(
    node: &'a Node,
    class: u16,
    property: &str,
) -> Option<(&'a ValueId, &'a Value)> {
    node.values
        .iter()
        .find(|(id, _)| id.command_class == class && id.property == property)
}

fn known(node: &Node, class: u16, property: &str) -> Option<Json> {
    find(node, class, property)?.1.value.clone()
}

fn state(node: &Node, kind: DeviceKind, readings: &[Reading]) -> String {
    let words = match kind {
        DeviceKind::Switch => known(node, class::SWITCH, "currentValue").and_then(|v| switched(&v)),
        DeviceKind::Dimmer | DeviceKind::Fan => {
            known(node, class::DIMMER, "currentValue").and_then(|v| level(&v))
        }
        DeviceKind::Blind => known(node, class::DIMMER, "currentValue").and_then(|v| position(&v)),
        DeviceKind::Lock => known(node, class::LOCK, "currentMode").and_then(|v| locked(&v)),
        DeviceKind::Thermostat => thermostat(node),
        DeviceKind::Sensor | DeviceKind::Meter => readings
            .iter()
            .find(|reading| reading.value.is_some())
            .map(|reading| reading.words.clone()),
        DeviceKind::Other => None,
    };
    words.unwrap_or_else(|| "unknown".to_owned())
}

/// `on` or `off`; anything but a truth value tells nothing.
pub(crate) fn switched(value: &Json) -> Option<String> {
    value
        .as_bool()
        .map(|on| if on { "on" } else { "off" }.to_owned())
}

/// `off` or `on at 60 %`. 99 is all there is, and 255 is "on" without a number.
pub(crate) fn level(value: &Json) -> Option<String> {
    match value.as_u64()? {
        0 => Some("off".to_owned()),
        99 | 100 => Some("on at 100 %".to_owned()),
        percent @ 1..99 => Some(format!("on at {percent} %")),
        255 => Some("on".to_owned()),
        _ => None,
    }
}

/// `closed`, `open at 60 %` or `open`: the level of a blind says how far it is open.
fn position(value: &Json) -> Option<String> {
    match value.as_u64()? {
        0 => Some("closed".to_owned()),
        99 | 100 | 255 => Some("open".to_owned()),
        percent @ 1..99 => Some(format!("open at {percent} %")),
        _ => None,
    }
}

/// Never `locked` by default: 254 and what is not in the standard tell nothing.
pub(crate) fn locked(value: &Json) -> Option<String> {
    match value.as_u64()? {
        255 => Some("locked".to_owned()),
        0 | 1 => Some("unlocked".to_owned()),
        // Locked on one side only: from inside or outside, with or without a timeout.
        16 | 17 | 32 | 33 => Some("partly locked".to_owned()),
        _ => None,
    }
}

fn thermostat(node: &Node) -> Option<String> {
    let mode = find(node, class::MODE, "mode").and_then(|(_, value)| chosen(value));
    let setpoint = setpoint(node).and_then(|(_, value)| {
        let number = value.value.as_ref()?.as_f64()?;
        Some(format!("set to {}", amount(number, value.unit.as_deref())))
    });
    match (mode, setpoint) {
        (Some(mode), Some(setpoint)) => Some(format!("{}, {setpoint}", mode.to_lowercase())),
        (Some(mode), None) => Some(mode.to_lowercase()),
        (None, setpoint) => setpoint,
    }
}

/// The setpoint that counts in the present mode: heating and cooling have one each.
pub(crate) fn setpoint(node: &Node) -> Option<(&ValueId, &Value)> {
    let mode = known(node, class::MODE, "mode").and_then(|mode| mode.as_u64());
    let wanted = match mode {
        Some(2) => "2",
        _ => "1",
    };
    let mut all = node
        .values
        .iter()
        .filter(|(id, _)| id.command_class == class::SETPOINT && id.property == "setpoint");
    let first = all.clone().next();
    all.find(|(id, _)| id.key.as_deref() == Some(wanted))
        .or(first)
}

fn readings(node: &Node) -> Vec<Reading> {
    node.values
        .iter()
        .filter(|(id, _)| is_reading(id))
        .map(|(id, value)| Reading {
            label: label(id, value),
            value: value.value.clone(),
            unit: value.unit.clone(),
            words: words(id, value),
            at: value.updated.map(moment),
            source: value.source,
        })
        .collect()
}

fn is_reading(id: &ValueId) -> bool {
    match id.command_class {
        class::SENSOR | class::BINARY_SENSOR => true,
        class::METER => id.property == "value",
        class::NOTIFICATION => id.key.is_some(),
        class::BATTERY => ["level", "isLow"].contains(&id.property.as_str()),
        class::OPERATING_STATE => id.property == "state",
        class::LOCK => id.property == "doorStatus",
        _ => false,
    }
}

fn label(id: &ValueId, value: &Value) -> String {
    match (id.command_class, id.property.as_str()) {
        (class::BATTERY, "level") => "Battery".to_owned(),
        (class::BATTERY, _) => "Battery low".to_owned(),
        (class::BINARY_SENSOR, property) => property.replace('_', " "),
        _ if value.label.is_empty() => id.key.as_ref().unwrap_or(&id.property).replace('_', " "),
        // `Electric Consumption [kWh]`: the unit is told beside it.
        _ => match value.label.split_once(" [") {
            Some((label, _)) if value.unit.is_some() => label.to_owned(),
            _ => value.label.clone(),
        },
    }
}

fn words(id: &ValueId, value: &Value) -> String {
    let words = match (&value.value, id.command_class) {
        (None, _) => None,
        (Some(Json::Bool(on)), class::BINARY_SENSOR) => Some(noticed(&id.property, *on).to_owned()),
        (Some(Json::Bool(on)), _) => Some(if *on { "yes" } else { "no" }.to_owned()),
        (Some(Json::Number(number)), _) => chosen(value).or_else(|| {
            let number = number.as_f64()?;
            Some(amount(number, value.unit.as_deref()))
        }),
        (Some(Json::String(text)), _) => Some(text.clone()),
        _ => None,
    };
    words.unwrap_or_else(|| "unknown".to_owned())
}

fn noticed(property: &str, on: bool) -> &'static str {
    let opens = ["door", "window", "tilt"]
        .iter()
        .any(|part| property.to_lowercase().contains(part));
    match (opens, on) {
        (true, true) => "open",
        (true, false) => "closed",
        (false, true) => "detected",
        (false, false) => "not detected",
    }
}

pub(crate) fn chosen(value: &Value) -> Option<String> {
    let now = value.value.as_ref()?.as_f64()?;
    value
        .states
        .iter()
        .find(|choice| choice.value.as_f64() == Some(now))
        .map(|choice| choice.text.clone())
}

pub(crate) fn amount(number: f64, unit: Option<&str>) -> String {
    match unit {
        Some(unit) => format!("{number} {unit}"),
        None => number.to_string(),
    }
}

/// From milliseconds since 1970.
fn moment(milliseconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH
        .checked_add(Duration::from_millis(milliseconds))
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_in_the_standard_is_never_locked_or_on() {
        for odd in [
            json!(254),
            json!("255"),
            json!(true),
            json!(-1),
            json!(1e20),
            json!(2),
        ] {
            assert_eq!(locked(&odd), None, "{odd}");
        }
        for odd in [json!(150), json!("on"), json!(true), json!(50.5)] {
            assert_eq!(level(&odd), None, "{odd}");
            assert_eq!(position(&odd), None, "{odd}");
        }
        for odd in [json!(1), json!("true"), json!("on")] {
            assert_eq!(switched(&odd), None, "{odd}");
        }
    }

    #[test]
    fn states_are_said_in_words() {
        for (value, words) in [
            (0, "off"),
            (1, "on at 1 %"),
            (60, "on at 60 %"),
            (99, "on at 100 %"),
            (255, "on"),
        ] {
            assert_eq!(level(&json!(value)).as_deref(), Some(words));
        }
        for (value, words) in [(0, "closed"), (60, "open at 60 %"), (99, "open")] {
            assert_eq!(position(&json!(value)).as_deref(), Some(words));
        }
        assert_eq!(locked(&json!(255)).as_deref(), Some("locked"));
        assert_eq!(locked(&json!(0)).as_deref(), Some("unlocked"));
        assert_eq!(amount(21.0, Some("°C")), "21 °C");
        assert_eq!(noticed("Door/Window", true), "open");
        assert_eq!(noticed("Motion", false), "not detected");
    }
}
