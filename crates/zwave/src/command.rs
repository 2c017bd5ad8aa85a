//! Commands, and what came of them.
//!
//! ```text
//!  plan ─▶ one publish on the value's own `…/set` topic ─▶ watch the value ─▶ done
//!                                                              │
//!                                                              └─ nothing more comes: ask the gateway to read the device once
//! ```
//!
//! A gateway shows the new value as soon as the radio has sent the command (~80 ms), and reads the device later: a switch
//! after ~1 s, a dimmer after ~7 s, a device that confirms its commands never. So the first value that fits proves
//! nothing; a later one does, and so does a reading that we ask for.

mod plan;
mod watch;

pub(crate) use plan::{Plan, plan};
pub(crate) use watch::{Step, Watch};

use std::fmt;
use std::time::SystemTime;

/// What a device is told.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
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
    Setpoint(f64, Option<Unit>),
}

/// Of a temperature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// °C
    Celsius,
    /// °F
    Fahrenheit,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Celsius => "°C",
            Self::Fahrenheit => "°F",
        })
    }
}

/// The last that is known of a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Last {
    /// In words.
    pub state: String,
    /// When it became known; `None` if nobody told.
    pub at: Option<SystemTime>,
}

/// What came of a command. It was sent at most once, whatever came of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Achieved {
    /// The device is as it was told to be, verified.
    Done {
        /// How it is now, in words.
        state: String,
    },
    /// The device sleeps; the gateway keeps the command and sends it when the device wakes.
    Asleep {
        /// The last that is known.
        last: Last,
    },
    /// The device does not answer.
    Dead {
        /// The last that is known.
        last: Last,
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
        last: Last,
    },
    /// Broker, gateway or radio is away. Nothing was sent, and nothing will be.
    Offline {
        /// What is missing and what to do, for a person.
        reason: String,
    },
}
