//! Determines a device's kind from its command classes, its device class, and its name.

use serde::Deserialize;
use toolgate_home::DeviceKind;

use crate::device::class;
use crate::node::ZwaveNode;

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub(crate) struct DeviceClass {
    generic: Option<u8>,
    specific: Option<u8>,
}

/// The first match decides, so a lock with a battery or a sensor is still a lock.
pub(crate) fn device_kind(node: &ZwaveNode) -> DeviceKind {
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
    let found = KINDS.into_iter().find(|(class, _)| has_class(node, *class));
    match found.map_or(DeviceKind::Other, |(_, kind)| kind) {
        DeviceKind::Dimmer => guess_with_level(node),
        kind => kind,
    }
}

fn has_class(node: &ZwaveNode, class: u16) -> bool {
    node.values.keys().any(|id| id.command_class == class)
}

/// Lights, blinds and fans share a command class. A motor differs in its device class, unless it is
/// attached to a module for lights; then only its name helps.
fn guess_with_level(node: &ZwaveNode) -> DeviceKind {
    const WINDOW_COVERING: u8 = 9;
    const MULTILEVEL_SWITCH: u8 = 17;
    let DeviceClass { generic, specific } = node.device_class;
    match (generic, specific) {
        _ if has_class(node, class::WINDOW_COVERING) => return DeviceKind::Blind,
        (Some(WINDOW_COVERING), _) => return DeviceKind::Blind,
        // Multiposition motor, and motor control classes A, B and C.
        (Some(MULTILEVEL_SWITCH), Some(3 | 5 | 6 | 7)) => return DeviceKind::Blind,
        (Some(MULTILEVEL_SWITCH), Some(8)) => return DeviceKind::Fan,
        _ => {}
    }
    DeviceKind::guess_with_level(&node.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::DescribedNode;

    #[test]
    fn class_and_name_tell_lights_blinds_and_fans_apart() {
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
            assert_eq!(device_kind(&node.into_node().unwrap()), expected, "{json}");
        }
    }
}
