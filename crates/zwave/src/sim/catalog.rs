//! Which values the parts of a device have, as zwave-js describes them.

use serde_json::json;

use super::plan::PlannedPart;
use super::value::Value;

const MOTION: &[(&str, u16)] = &[
    ("idle", 0),
    ("Motion detection (location provided)", 7),
    ("Motion detection", 8),
];
const DOOR: &[(&str, u16)] = &[("Window/door is open", 22), ("Window/door is closed", 23)];
const MODES: &[(&str, u16)] = &[("Off", 0), ("Heat", 1), ("Cool", 2)];
const LOCK_MODES: &[(&str, u16)] = &[
    ("Unsecured", 0),
    ("UnsecuredWithTimeout", 1),
    ("Unknown", 254),
    ("Secured", 255),
];
const START_STOP: &[(&str, bool)] = &[("Start", true), ("Stop", false)];
const LIBRARIES: &[(&str, u16)] = &[
    ("Unknown", 0),
    ("Static Controller", 1),
    ("Controller", 2),
    ("Enhanced Slave", 3),
    ("Slave", 4),
    ("Installer", 5),
    ("Routing Slave", 6),
    ("Bridge Controller", 7),
    ("Device under Test", 8),
    ("N/A", 9),
    ("AV Remote", 10),
    ("AV Device", 11),
];

/// What a command class is called in descriptions, and in which version our devices have it.
pub(super) fn class(number: u16) -> (&'static str, u8) {
    match number {
        32 => ("Basic", 1),
        37 => ("Binary Switch", 2),
        38 => ("Multilevel Switch", 4),
        48 => ("Binary Sensor", 2),
        49 => ("Multilevel Sensor", 11),
        50 => ("Meter", 4),
        64 => ("Thermostat Mode", 3),
        67 => ("Thermostat Setpoint", 3),
        98 => ("Door Lock", 4),
        113 => ("Notification", 8),
        114 => ("Manufacturer Specific", 1),
        128 => ("Battery", 1),
        134 => ("Version", 1),
        _ => ("Unknown", 1),
    }
}

pub(super) fn values(part: &PlannedPart) -> Vec<Value> {
    match part {
        PlannedPart::Switch { on } => vec![
            Value::new(37, "currentValue", "boolean", "Current value").at_first(*on),
            Value::new(37, "duration", "duration", "Remaining duration")
                .at_first(json!({ "unit": "seconds" })),
            Value::new(37, "targetValue", "boolean", "Target value").writeable(),
        ],
        PlannedPart::Dimmer { level } => dimmer((*level).min(99)),
        PlannedPart::Sensor { kind, value } => vec![sensor(kind, *value)],
        PlannedPart::BinarySensor { kind } => {
            let label = format!("Sensor state ({kind})");
            let number = if kind == "Motion" { 12 } else { 10 };
            let sensor = Value::new(48, kind, "boolean", &label);
            vec![
                sensor
                    .specific(json!({ "sensorType": number }))
                    .at_first(false),
            ]
        }
        PlannedPart::MotionAlarm => alarm(
            Value::new(113, "Home Security", "number", "Motion sensor status")
                .key("Motion sensor status", "Motion sensor status")
                .specific(json!({ "notificationType": 7 }))
                .states(MOTION)
                .at_first(0),
        ),
        PlannedPart::DoorAlarm { open } => alarm(
            Value::new(113, "Access Control", "number", "Door state (simple)")
                .key("Door state (simple)", "Door state (simple)")
                .specific(json!({ "notificationType": 6 }))
                .states(DOOR)
                .at_first(if *open { 22 } else { 23 }),
        ),
        PlannedPart::Meter { kwh, watts, .. } => meter(*kwh, *watts),
        PlannedPart::Thermostat { mode, setpoint } => thermostat(*mode, *setpoint),
        PlannedPart::Lock { locked } => lock(*locked),
        PlannedPart::Battery { level } => vec![
            Value::new(128, "level", "number", "Battery level")
                .range(0, 100)
                .unit("%")
                .at_first((*level).min(100)),
            Value::new(128, "isLow", "boolean", "Low battery level").at_first(*level <= 10),
        ],
        PlannedPart::Basic => basic(),
    }
}

fn dimmer(level: u8) -> Vec<Value> {
    let change = |way: &str| {
        let label = format!("Perform a level change ({way})");
        Value::new(38, way, "boolean", &label)
            .only_writeable()
            .specific(json!({ "switchType": 2 }))
            .states(START_STOP)
    };
    vec![
        Value::new(38, "currentValue", "number", "Current value")
            .range(0, 99)
            .at_first(level),
        Value::new(38, "duration", "duration", "Remaining duration")
            .at_first(json!({ "value": 0, "unit": "seconds" })),
        Value::new(38, "targetValue", "number", "Target value")
            .range(0, 99)
            .writeable()
            .at_first(level),
        change("Up"),
        change("Down"),
        restore(38),
    ]
}

fn restore(class: u16) -> Value {
    Value::new(
        class,
        "restorePrevious",
        "boolean",
        "Restore previous value",
    )
    .only_writeable()
    .states(&[("Restore", true)])
}

fn sensor(kind: &str, value: f64) -> Value {
    let (number, scale, unit) = match kind {
        "Humidity" => (5, 0, "%"),
        "Illuminance" => (3, 1, "Lux"),
        _ => (1, 0, "°C"),
    };
    Value::new(49, kind, "number", kind)
        .specific(json!({ "sensorType": number, "scale": scale }))
        .unit(unit)
        .at_first(short(value))
}

/// Old-style values follow the new ones, always.
fn alarm(status: Value) -> Vec<Value> {
    vec![
        status.range(0, 255),
        Value::new(113, "alarmType", "number", "Alarm Type").range(0, 255),
        Value::new(113, "alarmLevel", "number", "Alarm Level").range(0, 255),
    ]
}

fn meter(kwh: f64, watts: f64) -> Vec<Value> {
    let reading = |label: &str, scale: u8, value: f64| {
        Value::new(50, "value", "number", label)
            .specific(json!({ "meterType": 1, "scale": scale, "rateType": 1 }))
            .at_first(short(value))
    };
    vec![
        reading("Electric Consumption [kWh]", 0, kwh)
            .key("65537", "Electric_kWh_Consumed")
            .unit("kWh"),
        reading("Electric Consumption [W]", 2, watts)
            .key("66049", "Electric_W_Consumed")
            .unit("W"),
        Value::new(50, "reset", "boolean", "Reset accumulated values")
            .only_writeable()
            .states(&[("Reset", true)]),
    ]
}

fn thermostat(mode: u8, setpoint: f64) -> Vec<Value> {
    let mut data = Value::new(64, "manufacturerData", "buffer", "Manufacturer data");
    (data.published, data.dated) = (false, false);
    vec![
        Value::new(64, "mode", "number", "Thermostat mode")
            .range(0, 255)
            .writeable()
            .states(MODES)
            .at_first(mode),
        data,
        Value::new(67, "setpoint", "number", "Setpoint (Heating)")
            .key("1", "Heating")
            .specific(json!({ "setpointType": 1 }))
            .range(5, 35)
            .unit("°C")
            .writeable()
            .at_first(short(setpoint)),
    ]
}

fn lock(locked: bool) -> Vec<Value> {
    let mode = if locked { 255 } else { 0 };
    let bolt = if locked { "locked" } else { "unlocked" };
    vec![
        Value::new(98, "currentMode", "number", "Current lock mode")
            .range(0, 255)
            .states(LOCK_MODES)
            .at_first(mode),
        Value::new(98, "targetMode", "number", "Target lock mode")
            .range(0, 255)
            .writeable()
            .states(LOCK_MODES),
        Value::new(98, "boltStatus", "any", "Current status of the bolt").at_first(bolt),
        Value::new(98, "doorStatus", "any", "Current status of the door").at_first("closed"),
    ]
}

fn basic() -> Vec<Value> {
    let mut current = Value::new(32, "currentValue", "number", "Current value")
        .range(0, 99)
        .at_first(0);
    current.dated = false;
    let mut target = Value::new(32, "targetValue", "number", "Target value")
        .range(0, 255)
        .writeable();
    // Read, and the device did not know.
    target.known = Some(json!(null));
    vec![current, target, restore(32)]
}

pub(super) fn identity() -> Vec<Value> {
    let number = |property: &str, label: &str, value: u16| {
        Value::new(114, property, "number", label)
            .range(0, 65535)
            .at_first(value)
    };
    let version = |property: &str, kind, label: &str| Value::new(134, property, kind, label);
    vec![
        number("productId", "Product ID", 65534),
        number("productType", "Product type", 65535),
        number("manufacturerId", "Manufacturer ID", 65535),
        version(
            "firmwareVersions",
            "string[]",
            "Z-Wave chip firmware versions",
        )
        .at_first(json!(["1.0"])),
        version("protocolVersion", "string", "Z-Wave protocol version").at_first("7.0"),
        version("libraryType", "number", "Library type")
            .states(LIBRARIES)
            .at_first(3),
    ]
}

/// What can be told to everybody at once: what any device can be told, each thing once.
pub(super) fn broadcast<'a>(all: impl Iterator<Item = &'a Value>) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::new();
    for value in all {
        let id = &value.id;
        let told = value.writeable && [37, 38, 64, 67, 98].contains(&id.command_class);
        if told && !values.iter().any(|known| known.id == *id) {
            let mut value = value.clone();
            (value.readable, value.real, value.known) = (false, None, None);
            values.push(value);
        }
    }
    if !values.is_empty() {
        let mut basic = Value::new(32, "targetValue", "number", "Target value")
            .only_writeable()
            .range(0, 255);
        "Target value".clone_into(&mut basic.property_name);
        values.push(basic);
    }
    values
}

/// Whole numbers without a point, as JavaScript writes them.
pub(super) fn short(number: f64) -> serde_json::Value {
    #[expect(clippy::cast_possible_truncation, reason = "a whole number below 1e9")]
    if number.fract() == 0.0 && number.abs() < 1e9 {
        json!(number as i64)
    } else {
        json!(number)
    }
}
