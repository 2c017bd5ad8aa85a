//! Z-Wave devices behind zwave-js-ui, over MQTT.
//!
//! ```text
//!  topics, payloads ─▶ House: nodes and their values, kept current ─▶ Device: what people talk about
//!                         │
//!                         └─ command: one publish, then wait for what was achieved
//! ```
//!
//! `sim` is a house that speaks the same dialect.

mod node;
mod payload;
mod topic;
mod value;

pub use node::Source;
pub use value::{NodeId, NodeStatus, ValueId};
