//! Everything that all home protocols share: devices, commands, names, and the tools
//! of a home server.
//!
//! ```text
//!  names         finds the device that a person names
//!  kind          kinds of devices
//!  command       commands and their outcomes
//!  confirmation  decides whether a command worked
//!  home          the trait that a protocol implements
//!  tools/        the tools of a home server, for any `Home`
//!  protocol      the known protocols, one entry each
//! ```
//!
//! A protocol is a crate that implements [`Home`] and serves [`home_tools`], and an entry in
//! [`PROTOCOLS`]. It needs no intent templates or messages of its own; the shared
//! ones refer to these tools.

mod access;
mod command;
mod confirmation;
mod device;
mod home;
mod kind;
mod names;
mod outcome_text;
mod protocol;
mod tools;

pub use access::HomeAccess;
pub use command::{CommandOutcome, DeviceCommand, LastState, TemperatureUnit};
pub use confirmation::{CommandConfirmation, ConfirmationStep, WantedState};
pub use device::{DeviceId, DeviceReading, DeviceStatus, HomeDevice, ReadingSource, to_one_line};
pub use home::{Home, HomeHealth, HomeReadiness, HomeScene};
pub use kind::DeviceKind;
pub use protocol::{HomeProtocol, HomeTool, PROTOCOLS, ZWAVE};
pub use tools::home_tools;
