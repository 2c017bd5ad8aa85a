//! A simulated home that speaks zwave-js-ui's MQTT protocol with all its quirks.
//!
//! ```text
//!  messages ─▶ SimulatedWorld: gateway, radio, devices ─▶ messages
//!                ▲  has no clock and no network: the runner passes in the time
//!  time, life ───┘
//! ```
//!
//! `tests/sim` compares its messages and their times with a recording of the real program. As
//! with the real one:
//! - a new value is published ~80 ms after a command, before the device was read; it is read back
//!   1 s later (dimmers: 5 s);
//! - an invalid level is published as the target and nowhere else;
//! - a command to a dead device takes ~4 s, and only the device's status is published; a sleeping
//!   device carries out commands when it wakes;
//! - the radio sends one message at a time, and a newer command for a value replaces a waiting one;
//! - commands that the broker retained are carried out like any other;
//! - after a node is renamed, its topics change when its values are next published, and the old
//!   topics stay on the broker.

mod api;
mod catalog;
mod device;
mod knowledge;
mod life;
mod node;
mod options;
mod plan;
mod publishing;
mod radio;
mod runner;
mod value;
mod world;

pub use crate::topic::TopicForm;
pub use options::{ApiFault, DeviceFaults, PayloadForm, SimulationOptions};
pub use plan::{
    HousePlan, HousePlanError, PlannedNode, PlannedPart, PlannedScene, PlannedWrite, SleepMode,
};
pub use runner::{CommandCount, SimulatedChange, SimulatedHouse};
