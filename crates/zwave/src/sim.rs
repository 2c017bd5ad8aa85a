//! A simulated house that speaks zwave-js-ui's MQTT dialect, with everything that is awkward about it.
//!
//! ```text
//!  messages ─▶ World: gateway, radio, devices ─▶ messages
//!                ▲  knows no clock and no network: it is told the time
//!  time, life ───┘
//! ```
//!
//! What it publishes, and when, is compared with a recording of the real program in `tests/sim`. As there:
//! - a new value is shown ~80 ms after a command, before anybody asked the device; it is read back 1 s later (dimmers: 5 s);
//! - a level that does not exist is shown as the target and nowhere else;
//! - a dead device costs ~4 s and says nothing but its status; a sleeping one carries out when it wakes;
//! - the radio sends one message at a time, and drops a command that waits when a newer one for the same value comes;
//! - commands that the broker kept are carried out like any other;
//! - after a new name, topics change as values are next published, and the old ones stay with the broker.

mod api;
mod catalog;
mod device;
mod dialect;
mod house;
mod knowledge;
mod life;
mod node;
mod options;
mod plan;
mod radio;
mod value;
mod world;

pub use house::{Change, Count, House};
pub use options::{ApiFault, Faults, Options, Payloads, TopicForm};
pub use plan::{Plan, PlanError, PlannedNode, PlannedPart, PlannedScene, PlannedWrite, Rest};
