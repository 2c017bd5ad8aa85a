//! What a device is for.

use std::fmt;

use serde::Serialize;

use crate::names::words;

/// What a device is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// On or off.
    Switch,
    /// A light with a level.
    Dimmer,
    /// A blind, shutter, curtain or awning, with a level that says how far it is open.
    Blind,
    /// A fan with a speed.
    Fan,
    /// Locks a door.
    Lock,
    /// Heats or cools to a temperature.
    Thermostat,
    /// Measures or notices.
    Sensor,
    /// Counts what is used.
    Meter,
    /// Anything else: remotes, repeaters, and devices that were not asked yet.
    Other,
}

/// What people call a light.
pub(crate) const LIGHTS: [&str; 2] = ["light", "lamp"];

impl DeviceKind {
    /// True if it can be set to a level from 0 to 100.
    pub fn has_level(self) -> bool {
        matches!(self, Self::Dimmer | Self::Blind | Self::Fan)
    }

    /// The kind of a device with a level, by its name: a motor may hang on a module that is sold
    /// for lights, and then nothing else tells.
    pub fn with_level(name: &str) -> Self {
        const BLINDS: [&str; 5] = ["blind", "shade", "shutter", "curtain", "awning"];
        const FANS: [&str; 2] = ["fan", "ventilator"];
        let name = words(name);
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
