//! How zwave-js describes each part of a device. The texts are in `catalog.json`, as recorded.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::plan::PlannedPart;
use super::value::SimulatedValue;
use crate::value::short_number;

/// A number of the standard, and the name for it.
type NamedClass = (u8, String);

#[derive(Default, Deserialize)]
pub(super) struct Catalog {
    /// By number, with name and version.
    command_classes: BTreeMap<u16, (String, u8)>,
    /// The constant fields of a node's description: those of every node, and of one kind.
    pub node: Map<String, Json>,
    pub controller: Map<String, Json>,
    pub device: Map<String, Json>,
    /// The constant fields of a node in events.
    pub summary: Map<String, Json>,
    parts: BTreeMap<String, PartDescription>,
    identity: Vec<SimulatedValue>,
    broadcast: SimulatedValue,
}

#[derive(Default, Deserialize)]
struct PartDescription {
    /// Generic and specific.
    device_class: [NamedClass; 2],
    values: Vec<SimulatedValue>,
}

// The tests compare the parsed file with a recording, so the fallback is never used.
pub(super) static CATALOG: LazyLock<Catalog> =
    LazyLock::new(|| serde_json::from_str(include_str!("catalog.json")).unwrap_or_default());

pub(super) fn class_info(number: u16) -> (&'static str, u8) {
    let class = CATALOG.command_classes.get(&number);
    class.map_or(("Unknown", 1), |(name, version)| (name, *version))
}

fn description(part: &PlannedPart) -> Option<&'static PartDescription> {
    CATALOG.parts.get(match part {
        PlannedPart::Switch { .. } => "switch",
        PlannedPart::Dimmer { .. } => "dimmer",
        PlannedPart::Sensor { kind, .. } => match kind.as_str() {
            "Humidity" => "humidity",
            "Illuminance" => "illuminance",
            _ => "temperature",
        },
        PlannedPart::BinarySensor { kind } if kind == "Motion" => "motion_sensor",
        PlannedPart::BinarySensor { .. } => "contact_sensor",
        PlannedPart::MotionAlarm => "motion_alarm",
        PlannedPart::DoorAlarm { .. } => "door_alarm",
        PlannedPart::Meter { .. } => "meter",
        PlannedPart::Thermostat { .. } => "thermostat",
        PlannedPart::Lock { .. } => "lock",
        PlannedPart::Battery { .. } => "battery",
        PlannedPart::Basic => "basic",
    })
}

pub(super) fn device_class(part: &PlannedPart) -> Option<[(u8, &'static str); 2]> {
    let [generic, specific] = &description(part)?.device_class;
    Some([(generic.0, &generic.1), (specific.0, &specific.1)])
}

pub(super) fn values(part: &PlannedPart) -> Vec<SimulatedValue> {
    let mut values = description(part).map_or_else(Vec::new, |part| part.values.clone());
    for (value, initial) in values.iter_mut().zip(initial_values(part)) {
        if !initial.is_null() {
            value.known = Some(initial.clone());
            value.real = Some(initial);
        }
    }
    match (part, values.as_mut_slice()) {
        (PlannedPart::Sensor { kind, .. }, [sensor]) => {
            sensor.id.property.clone_from(kind);
            sensor.label.clone_from(kind);
        }
        (PlannedPart::BinarySensor { kind }, [sensor]) => {
            sensor.id.property.clone_from(kind);
            sensor.label = format!("Sensor state ({kind})");
        }
        // Null, because the real device was read and had no value.
        (PlannedPart::Basic, [_, target, ..]) => target.known = Some(Json::Null),
        _ => {}
    }
    values
}

/// The values of a part when the simulation starts, in the order of the catalog. Null leaves
/// what the catalog has.
fn initial_values(part: &PlannedPart) -> Vec<Json> {
    match part {
        PlannedPart::Switch { on } => vec![json!(on)],
        PlannedPart::Dimmer { level } => {
            let level = json!((*level).min(99));
            vec![level.clone(), Json::Null, level]
        }
        PlannedPart::Sensor { value, .. } => vec![short_number(*value)],
        PlannedPart::BinarySensor { .. } => vec![json!(false)],
        PlannedPart::MotionAlarm => vec![json!(0)],
        PlannedPart::DoorAlarm { open } => vec![json!(if *open { 22 } else { 23 })],
        PlannedPart::Meter { kwh, watts, .. } => vec![short_number(*kwh), short_number(*watts)],
        PlannedPart::Thermostat { mode, setpoint } => {
            vec![json!(mode), Json::Null, short_number(*setpoint)]
        }
        PlannedPart::Lock { locked: true } => vec![json!(255), Json::Null, json!("locked")],
        PlannedPart::Lock { locked: false } => vec![json!(0), Json::Null, json!("unlocked")],
        PlannedPart::Battery { level } => vec![json!((*level).min(100)), json!(*level <= 10)],
        PlannedPart::Basic => Vec::new(),
    }
}

pub(super) fn identity() -> Vec<SimulatedValue> {
    CATALOG.identity.clone()
}

/// The broadcast values: each writable value that any device has, once.
pub(super) fn broadcast<'a>(all: impl Iterator<Item = &'a SimulatedValue>) -> Vec<SimulatedValue> {
    let mut values: Vec<SimulatedValue> = Vec::new();
    for value in all {
        let id = &value.id;
        let is_writable = value.writeable && [37, 38, 64, 67, 98].contains(&id.command_class);
        if is_writable && !values.iter().any(|known| known.id == *id) {
            let mut value = value.clone();
            (value.write_only, value.real, value.known) = (true, None, None);
            values.push(value);
        }
    }
    if !values.is_empty() {
        values.push(CATALOG.broadcast.clone());
    }
    values
}
