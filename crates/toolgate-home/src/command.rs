//! Commands to devices, and their outcomes.

use std::time::SystemTime;

use serde::Deserialize;

/// A command that can be sent to a device.
#[derive(Debug, Clone, PartialEq)]
pub enum DeviceCommand {
    /// A dimmer returns to its last level.
    On,
    Off,
    /// A level from 0 to 100.
    Dim(u8),
    Lock,
    Unlock,
    /// A thermostat mode by the device's own name for it, such as `heat` or `off`.
    Mode(String),
    /// A target temperature, in the thermostat's own unit unless one is given.
    Setpoint(f64, Option<TemperatureUnit>),
}

/// The unit of a target temperature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TemperatureUnit {
    Celsius,
    Fahrenheit,
}

/// The last known state of a device, for commands that were not confirmed.
#[derive(Debug, Clone, PartialEq)]
pub struct LastState {
    pub state: String,
    /// When it became known; `None` if the gateway did not say.
    pub at: Option<SystemTime>,
}

/// The outcome of a command. Whatever the outcome, the command was sent at most once.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandOutcome {
    /// The device confirmed it, and has this state now.
    Done { state: String },
    /// The device sleeps. The gateway keeps the command and sends it when the device wakes.
    Asleep { last: LastState },
    /// The network reports the device as dead.
    Dead { last: LastState },
    /// It failed for a known reason: it was impossible and not sent, or it was sent and the device
    /// did not follow it.
    Refused { reason: String },
    /// The command was sent, but not confirmed.
    Unknown { reason: String, last: LastState },
    /// The broker, gateway or radio is unavailable. Nothing was sent, and nothing will be sent
    /// later. The reason says what is missing and what to do about it.
    Offline { reason: String },
}
