//! The house against what the real zwave-js-ui was recorded to say, over a broker in memory. Time is paused.

mod hostile;
mod memory;
mod outcomes;
mod recorded;
mod traps;
