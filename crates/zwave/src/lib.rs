//! Z-Wave devices behind zwave-js-ui, over MQTT.
//!
//! ```text
//!  topics, payloads ─▶ House: nodes and their values, kept current ─▶ Device: what people talk about
//!                         │
//!                         └─ command: one publish, then wait for what was achieved
//! ```
//!
//! [`sim`] is a house that speaks the same dialect.

mod api;
mod command;
mod device;
mod house;
mod kind;
mod names;
mod node;
mod payload;
pub mod sim;
mod state;
mod topic;
mod value;

pub use command::{Achieved, Command, Last, Unit};
pub use device::{Device, Reading};
pub use house::{Health, House, HouseSettings, Readiness, Scene};
pub use kind::DeviceKind;
pub use names::{Unresolved, same_name};
pub use node::Source;
pub use value::{NodeId, NodeStatus, ValueId};
