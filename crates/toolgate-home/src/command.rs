//! Commands, and their outcomes.

use std::time::SystemTime;

use serde::Deserialize;

/// What a device is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// On; a dimmer goes to its last level.
    On,
    /// Off.
    Off,
    /// To a level from 0 to 100.
    Dim(u8),
    /// Lock the door.
    Lock,
    /// Unlock the door.
    Unlock,
    /// The mode of a thermostat, by the name that the device has for it: `heat`, `off`.
    Mode(String),
    /// The temperature of a thermostat, in its own unit unless one is given.
    Setpoint(f64, Option<TemperatureUnit>),
}

/// Of a temperature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TemperatureUnit {
    /// °C
    Celsius,
    /// °F
    Fahrenheit,
}

/// The last that is known of a device.
#[derive(Debug, Clone, PartialEq)]
pub struct LastState {
    /// In words.
    pub state: String,
    /// When it became known; `None` if nobody told.
    pub at: Option<SystemTime>,
}

/// The outcome of a command. It was sent at most once, whatever came of it.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandOutcome {
    /// The device is as it was told to be, verified.
    Done {
        /// How it is now, in words.
        state: String,
    },
    /// The device sleeps; the gateway keeps the command and sends it when the device wakes.
    Asleep {
        /// The last that is known.
        last: LastState,
    },
    /// The device does not answer.
    Dead {
        /// The last that is known.
        last: LastState,
    },
    /// It can not be done and nothing was sent, or the device did not do it.
    Refused {
        /// Why, for a person.
        reason: String,
    },
    /// It was sent, and nobody knows what came of it.
    Unknown {
        /// What happened, for a person.
        reason: String,
        /// The last that is known.
        last: LastState,
    },
    /// Broker, gateway or radio is away. Nothing was sent, and nothing will be.
    Offline {
        /// What is missing and what to do, for a person.
        reason: String,
    },
}
