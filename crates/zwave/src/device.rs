//! Converts a node to a device with its state in words.

use std::time::{Duration, SystemTime};

use serde_json::Value as Json;
use toolgate_home::{DeviceKind, DeviceReading, HomeDevice};

use crate::kind::device_kind;
use crate::node::{NodeValue, ZwaveNode};
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

pub(crate) fn to_device(node: &ZwaveNode, stale: bool) -> HomeDevice {
    let outline = to_outline(node, stale);
    let readings = readings(node);
    HomeDevice {
        state: state_text(node, outline.kind, &readings),
        readings,
        ..outline
    }
}

/// A device without state and readings, which is enough to find it by name.
pub(crate) fn to_outline(node: &ZwaveNode, stale: bool) -> HomeDevice {
    HomeDevice {
        id: node.id.into(),
        name: node.title(),
        location: node.location.clone(),
        kind: device_kind(node),
        status: node.status,
        stale,
        last_seen: node.last_active.map(time_from_millis),
        state: String::new(),
        readings: Vec::new(),
    }
}

pub(crate) fn find_value<'a>(
    node: &'a ZwaveNode,
    class: u16,
    property: &str,
) -> Option<(&'a ValueId, &'a NodeValue)> {
    let mut values = node.values.iter();
    values.find(|(id, _)| id.command_class == class && id.property == property)
}

fn known_value<'a>(node: &'a ZwaveNode, class: u16, property: &str) -> Option<&'a Json> {
    find_value(node, class, property)?.1.value.as_ref()
}

fn state_text(node: &ZwaveNode, kind: DeviceKind, readings: &[DeviceReading]) -> String {
    type Words = fn(&Json) -> Option<String>;
    let known = |class, property: &str, words: Words| words(known_value(node, class, property)?);
    let words = match kind {
        DeviceKind::Switch => known(class::SWITCH, "currentValue", switch_state),
        DeviceKind::Dimmer | DeviceKind::Fan => known(class::DIMMER, "currentValue", level_state),
        DeviceKind::Blind => known(class::DIMMER, "currentValue", blind_state),
        DeviceKind::Lock => known(class::LOCK, "currentMode", lock_state),
        DeviceKind::Thermostat => thermostat_state(node),
        DeviceKind::Sensor | DeviceKind::Meter => readings
            .iter()
            .find(|reading| reading.value.is_some())
            .map(|reading| reading.words.clone()),
        DeviceKind::Other => None,
    };
    words.unwrap_or_else(|| "unknown".to_owned())
}

/// `on` or `off`; `None` unless the value is a boolean.
pub(crate) fn switch_state(value: &Json) -> Option<String> {
    value
        .as_bool()
        .map(|on| if on { "on" } else { "off" }.to_owned())
}

/// `off` or `on at 60 %`. 99 is full, and 255 means "on" without a number.
pub(crate) fn level_state(value: &Json) -> Option<String> {
    match value.as_u64()? {
        0 => Some("off".to_owned()),
        99 | 100 => Some("on at 100 %".to_owned()),
        percent @ 1..99 => Some(format!("on at {percent} %")),
        255 => Some("on".to_owned()),
        _ => None,
    }
}

// `closed`, `open at 60 %` or `open`, because the level of a blind says how far it is open.
fn blind_state(value: &Json) -> Option<String> {
    match value.as_u64()? {
        0 => Some("closed".to_owned()),
        99 | 100 | 255 => Some("open".to_owned()),
        percent @ 1..99 => Some(format!("open at {percent} %")),
        _ => None,
    }
}

// `None` for 254 (unknown) and numbers outside the standard, because a lock whose state is unknown
// must not count as locked.
pub(crate) fn lock_state(value: &Json) -> Option<String> {
    match value.as_u64()? {
        255 => Some("locked".to_owned()),
        0 | 1 => Some("unlocked".to_owned()),
        // Locked from inside or outside only, with or without a timeout.
        16 | 17 | 32 | 33 => Some("partly locked".to_owned()),
        _ => None,
    }
}

fn thermostat_state(node: &ZwaveNode) -> Option<String> {
    let mode = find_value(node, class::MODE, "mode").and_then(|(_, value)| choice_text(value));
    let setpoint = setpoint(node).and_then(|(_, value)| {
        let number = value.value.as_ref()?.as_f64()?;
        let number = with_unit(number, value.unit.as_deref());
        Some(format!("set to {number}"))
    });
    match (mode, setpoint) {
        (Some(mode), Some(setpoint)) => Some(format!("{}, {setpoint}", mode.to_lowercase())),
        (Some(mode), None) => Some(mode.to_lowercase()),
        (None, setpoint) => setpoint,
    }
}

/// The setpoint of the current mode: heating and cooling have one each.
pub(crate) fn setpoint(node: &ZwaveNode) -> Option<(&ValueId, &NodeValue)> {
    let mode = known_value(node, class::MODE, "mode").and_then(Json::as_u64);
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

fn readings(node: &ZwaveNode) -> Vec<DeviceReading> {
    node.values
        .iter()
        .filter(|(id, _)| is_reading(id))
        .map(|(id, value)| DeviceReading {
            label: label(id, value),
            value: value.value.clone(),
            unit: value.unit.clone(),
            words: reading_text(id, value),
            at: value.updated.map(time_from_millis),
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

fn label(id: &ValueId, value: &NodeValue) -> String {
    match (id.command_class, id.property.as_str()) {
        (class::BATTERY, "level") => "Battery".to_owned(),
        (class::BATTERY, _) => "Battery low".to_owned(),
        (class::BINARY_SENSOR, property) => property.replace('_', " "),
        _ if value.label.is_empty() => id.key.as_ref().unwrap_or(&id.property).replace('_', " "),
        // The unit in `Electric Consumption [kWh]` is shown beside the value anyway.
        _ => match value.label.split_once(" [") {
            Some((label, _)) if value.unit.is_some() => label.to_owned(),
            _ => value.label.clone(),
        },
    }
}

fn reading_text(id: &ValueId, value: &NodeValue) -> String {
    let words = match (&value.value, id.command_class) {
        (None, _) => None,
        (Some(Json::Bool(on)), class::BINARY_SENSOR) => {
            Some(sensor_state(&id.property, *on).to_owned())
        }
        (Some(Json::Bool(on)), _) => Some(if *on { "yes" } else { "no" }.to_owned()),
        (Some(Json::Number(number)), _) => choice_text(value).or_else(|| {
            let number = number.as_f64()?;
            Some(with_unit(number, value.unit.as_deref()))
        }),
        (Some(Json::String(text)), _) => Some(text.clone()),
        _ => None,
    };
    words.unwrap_or_else(|| "unknown".to_owned())
}

fn sensor_state(property: &str, on: bool) -> &'static str {
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

pub(crate) fn choice_text(value: &NodeValue) -> Option<String> {
    let now = value.value.as_ref()?.as_f64()?;
    value
        .states
        .iter()
        .find(|choice| choice.value.as_f64() == Some(now))
        .map(|choice| choice.text.clone())
}

pub(crate) fn with_unit(number: f64, unit: Option<&str>) -> String {
    match unit {
        Some(unit) => format!("{number} {unit}"),
        None => number.to_string(),
    }
}

fn time_from_millis(milliseconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH
        // The number comes from the network and may be out of range.
        .checked_add(Duration::from_millis(milliseconds))
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nonstandard_values_never_mean_locked_or_on() {
        for odd in [
            json!(254),
            json!("255"),
            json!(true),
            json!(-1),
            json!(1e20),
            json!(2),
        ] {
            assert_eq!(lock_state(&odd), None, "{odd}");
        }
        for odd in [json!(150), json!("on"), json!(true), json!(50.5)] {
            assert_eq!(level_state(&odd), None, "{odd}");
            assert_eq!(blind_state(&odd), None, "{odd}");
        }
        for odd in [json!(1), json!("true"), json!("on")] {
            assert_eq!(switch_state(&odd), None, "{odd}");
        }
    }

    #[test]
    fn states_are_put_into_words() {
        for (value, words) in [
            (0, "off"),
            (1, "on at 1 %"),
            (60, "on at 60 %"),
            (99, "on at 100 %"),
            (255, "on"),
        ] {
            assert_eq!(level_state(&json!(value)).as_deref(), Some(words));
        }
        for (value, words) in [(0, "closed"), (60, "open at 60 %"), (99, "open")] {
            assert_eq!(blind_state(&json!(value)).as_deref(), Some(words));
        }
        assert_eq!(lock_state(&json!(255)).as_deref(), Some("locked"));
        assert_eq!(lock_state(&json!(0)).as_deref(), Some("unlocked"));
        assert_eq!(with_unit(21.0, Some("°C")), "21 °C");
        assert_eq!(sensor_state("Door/Window", true), "open");
        assert_eq!(sensor_state("Motion", false), "not detected");
    }
}
