//! Everything that all home protocols share: devices, commands, names, and the tools of a home
//! server.
//!
//! ```text
//!  names      finds the device that a person names
//!  kind       kinds of devices
//!  command    commands and their outcomes
//!  proof      decides whether a command worked
//!  home       the trait that a protocol implements
//!  tools/     the tools of a home server, for any `Home`
//!  dialect    the known protocols, one entry each
//! ```
//!
//! A protocol is a crate that implements [`Home`] and serves [`home_tools`], and an entry in
//! [`DIALECTS`]. It needs no sentences or texts of its own, because those refer to the tools here.

mod access;
mod command;
mod device;
mod dialect;
mod home;
mod kind;
mod names;
mod outcome_text;
mod proof;
mod tools;

pub use access::HomeAccess;
pub use command::{CommandOutcome, DeviceCommand, LastState, TemperatureUnit};
pub use device::{DeviceId, DeviceReading, DeviceStatus, HomeDevice, ReadingSource, to_one_line};
pub use dialect::{DIALECTS, HomeDialect, HomeTool, ZWAVE};
pub use home::{Home, HomeHealth, HomeReadiness, HomeScene};
pub use kind::DeviceKind;
pub use proof::{CommandProof, ProofStep, WantedState};
pub use tools::home_tools;
