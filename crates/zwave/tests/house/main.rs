//! The home against recordings of the real zwave-js-ui, over a broker in memory. Time is paused.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod gateway_double;
mod hostile;
mod outcomes;
mod recorded;
mod traps;
