//! What all home protocols share: devices, commands, names, and the tools of a home server.
//!
//! ```text
//!  names      which device people mean          command  what a device is told, and the outcome
//!  kind       what a device is for              proof    whether a command worked
//!  home       what a protocol must be able to do
//!  tools/     the tools of a home server, over any `Home`
//!  dialect    the protocols there are, one entry each
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
pub use device::{DeviceId, DeviceReading, DeviceStatus, HomeDevice, ReadingSource, one_line};
pub use dialect::{DIALECTS, HomeDialect, HomeTool, ZWAVE};
pub use home::{Home, HomeHealth, HomeReadiness, HomeScene};
pub use kind::DeviceKind;
pub use proof::{CommandProof, ProofStep, WantedState};
pub use tools::home_tools;
