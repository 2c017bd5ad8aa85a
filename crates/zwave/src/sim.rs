//! A simulated home that speaks zwave-js-ui's MQTT protocol with all its quirks.
//!
//! ```text
//!  messages ─▶ World: gateway, radio, devices ─▶ messages
//!                ▲  knows no clock and no network: it is told the time
//!  time, life ───┘
//! ```
//!
//! `tests/sim` compares what it publishes, and when, with a recording of the
//! real program. As there:
//! - a new value is shown ~80 ms after a command, before anybody asked the device; it is read back
//!   1 s later (dimmers: 5 s);
//! - a level that does not exist is shown as the target and nowhere else;
//! - a dead device costs ~4 s and says nothing but its status; a sleeping one carries out when it
//!   wakes;
//! - the radio sends one message at a time, and drops a command that waits when a newer one for the
//!   same value comes;
//! - commands that the broker kept are carried out like any other;
//! - after a new name, topics change as values are next published, and the old ones stay with the
//!   broker.

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
