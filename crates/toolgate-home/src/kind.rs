//! The kinds of devices.

use std::fmt;

use serde::Serialize;

use crate::names::name_words;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    Switch,
    Dimmer,
    /// A blind, shutter, curtain or awning. Its level says how far it is open.
    Blind,
    Fan,
    Lock,
    Thermostat,
    Sensor,
    Meter,
    /// Anything else: remotes, repeaters, and devices whose capabilities are not known yet.
    Other,
}

pub(crate) const LIGHTS: [&str; 2] = ["light", "lamp"];

impl DeviceKind {
    pub fn has_level(self) -> bool {
        matches!(self, Self::Dimmer | Self::Blind | Self::Fan)
    }

    pub fn with_level(name: &str) -> Self {
        // A motor may be attached to a module that is sold for lights; then only the name shows it.
        const BLINDS: [&str; 5] = ["blind", "shade", "shutter", "curtain", "awning"];
        const FANS: [&str; 2] = ["fan", "ventilator"];
        let name = name_words(name);
        let has_word = |known: &[&str]| {
            name.iter().any(|word| {
                let singular = word.strip_suffix('s').unwrap_or(word);
                known.contains(&singular)
            })
        };
        match () {
            () if has_word(&LIGHTS) => Self::Dimmer,
            () if has_word(&BLINDS) => Self::Blind,
            () if has_word(&FANS) => Self::Fan,
            () => Self::Dimmer,
        }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Switch => "switch",
            Self::Dimmer => "dimmer",
            Self::Blind => "blind",
            Self::Fan => "fan",
            Self::Lock => "lock",
            Self::Thermostat => "thermostat",
            Self::Sensor => "sensor",
            Self::Meter => "meter",
            Self::Other => "device",
        })
    }
}
