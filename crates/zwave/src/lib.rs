//! Z-Wave devices behind zwave-js-ui, over MQTT.
//!
//! ```text
//!  topics, payloads ─▶ House: nodes and their values, kept current ─▶ toolgate_home::HomeDevice
//!                         │
//!                         └─ command: one publish, then wait for its confirmation
//! ```
//!
//! [`House`] implements [`toolgate_home::Home`], so the tools of that crate work with it. [`sim`]
//! simulates a home that speaks the same protocol.

mod api;
mod command_plan;
mod device;
mod house;
mod kind;
mod node;
mod payload;
pub mod sim;
mod state;
mod topic;
mod value;

pub use house::{House, HouseSettings};
pub use value::{NodeId, ValueId};
