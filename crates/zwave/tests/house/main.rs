//! The house against what the real zwave-js-ui was recorded to say, over a broker in memory. Time is paused.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod hostile;
mod memory;
mod outcomes;
mod recorded;
mod traps;
