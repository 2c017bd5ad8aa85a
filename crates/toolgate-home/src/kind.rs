//! The kinds of devices.

use std::fmt;

use serde::Serialize;

use crate::names::name_words;

/// What a device is, which decides the commands that it accepts.
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

// A device with one of these words in its name is a light.
pub(crate) const LIGHT_WORDS: [&str; 2] = ["light", "lamp"];

impl DeviceKind {
    pub fn has_level(self) -> bool {
        matches!(self, Self::Dimmer | Self::Blind | Self::Fan)
    }

    /// Guesses the kind of a device that has a level from its name.
    pub fn guess_with_level(name: &str) -> Self {
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
        // First, because a "fan light" is a light.
        if has_word(&LIGHT_WORDS) {
            Self::Dimmer
        } else if has_word(&BLINDS) {
            Self::Blind
        } else if has_word(&FANS) {
            Self::Fan
        } else {
            Self::Dimmer
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
