//! Z-Wave devices behind zwave-js-ui, over MQTT.
//!
//! ```text
//!  topics, payloads ─▶ House: nodes and their values, kept current ─▶ toolgate_home::Device
//!                         │
//!                         └─ command: one publish, then wait for its proof
//! ```
//!
//! [`House`] is a [`toolgate_home::Home`]. [`sim`] is a house that speaks the same dialect.

mod api;
mod device;
mod house;
mod kind;
mod node;
mod payload;
mod plan;
pub mod sim;
mod state;
mod topic;
mod value;

pub use house::{House, HouseSettings};
pub use value::{NodeId, ValueId};
