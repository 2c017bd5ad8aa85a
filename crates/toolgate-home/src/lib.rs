//! Shared parts of the home-automation servers: devices, commands, and the MCP tools for them.
//!
//! A protocol crate (today only Z-Wave) implements [`Home`]: it lists [`HomeDevice`]s and sends
//! [`DeviceCommand`]s, each of which ends in a [`CommandOutcome`]. [`CommandConfirmation`] decides
//! from the device's reports whether a command worked. [`home_tools`] turns any `Home`, wrapped in
//! a [`HomeAccess`], into tools.
//!
//! To add a protocol, also add it to [`PROTOCOLS`]. The built-in sentences and messages then work
//! with it, because they refer to these tools.

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
