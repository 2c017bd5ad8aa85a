//! What a device is for: by what it can do, by the class that it belongs to, and by its name.

use serde::Deserialize;
use toolgate_home::DeviceKind;

use crate::device::class;
use crate::node::Node;

/// What a node says it is, in the numbers of the standard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub(crate) struct DeviceClass {
    generic: Option<u8>,
    specific: Option<u8>,
}

/// The kind of a node, by what it can do; a lock with a battery is a lock.
pub(crate) fn kind(node: &Node) -> DeviceKind {
    const KINDS: [(u16, DeviceKind); 9] = [
        (class::LOCK, DeviceKind::Lock),
        (class::SETPOINT, DeviceKind::Thermostat),
        (class::MODE, DeviceKind::Thermostat),
        (class::DIMMER, DeviceKind::Dimmer),
        (class::SWITCH, DeviceKind::Switch),
        (class::SENSOR, DeviceKind::Sensor),
        (class::BINARY_SENSOR, DeviceKind::Sensor),
        (class::NOTIFICATION, DeviceKind::Sensor),
        (class::METER, DeviceKind::Meter),
    ];
    let found = KINDS.into_iter().find(|(class, _)| has(node, *class));
    match found.map_or(DeviceKind::Other, |(_, kind)| kind) {
        DeviceKind::Dimmer => with_level(node),
        kind => kind,
    }
}

fn has(node: &Node, class: u16) -> bool {
    node.values.keys().any(|id| id.command_class == class)
}

/// Lights, blinds and fans are the same command class: a motor says so in its device class, unless it hangs on a module that
/// is sold for lights; then only its name tells.
fn with_level(node: &Node) -> DeviceKind {
    const WINDOW_COVERING: u8 = 9;
    const MULTILEVEL_SWITCH: u8 = 17;
    let DeviceClass { generic, specific } = node.device_class;
    match (generic, specific) {
        _ if has(node, class::WINDOW_COVERING) => return DeviceKind::Blind,
        (Some(WINDOW_COVERING), _) => return DeviceKind::Blind,
        // A multiposition motor, and motor control of the classes A, B and C.
        (Some(MULTILEVEL_SWITCH), Some(3 | 5 | 6 | 7)) => return DeviceKind::Blind,
        (Some(MULTILEVEL_SWITCH), Some(8)) => return DeviceKind::Fan,
        _ => {}
    }
    DeviceKind::with_level(&node.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::DescribedNode;

    #[test]
    fn a_level_is_a_light_a_blind_or_a_fan_by_class_and_name() {
        use DeviceKind::{Blind, Dimmer, Fan};
        let level = r#"{"commandClass":38,"property":"currentValue"}"#;
        let covering = r#"{"commandClass":38,"property":"currentValue"},{"commandClass":106,"property":"currentValue"}"#;
        let of = |generic: u8, specific: u8| {
            format!(r#"{{"basic":4,"generic":{generic},"specific":{specific}}}"#)
        };
        let named = r#"{"generic":"Multilevel Switch"}"#;
        for (name, class, values, expected) in [
            ("Ceiling", of(17, 1).as_str(), level, Dimmer),
            ("Ceiling", "{}", level, Dimmer),
            ("Ceiling", named, level, Dimmer),
            ("South", &of(17, 7), level, Blind),
            ("South", &of(17, 3), level, Blind),
            ("South", &of(9, 1), level, Blind),
            ("South", "{}", covering, Blind),
            ("Ceiling", &of(17, 8), level, Fan),
            // A module for lights.
            ("Bedroom Blinds", &of(17, 1), level, Blind),
            ("Roller Shutter", "{}", level, Blind),
            ("Bathroom Fan", "null", level, Fan),
            ("Fan Light", &of(17, 1), level, Dimmer),
            ("Shade Lamp", "{}", level, Dimmer),
            ("Blinding", "{}", level, Dimmer),
        ] {
            let json =
                format!(r#"{{"id":2,"name":"{name}","deviceClass":{class},"values":[{values}]}}"#);
            let node: DescribedNode = serde_json::from_str(&json).unwrap();
            assert_eq!(kind(&node.into_node().unwrap()), expected, "{json}");
        }
    }
}
