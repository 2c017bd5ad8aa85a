//! Whole turns, from what was heard to what was spoken, with engines and models that do what a test tells them to.

mod answers;
mod asks;
mod barge_in;
mod consent;
#[cfg(target_os = "linux")]
mod endurance;
mod engines;
mod fillers;
#[path = "../../examples/measure/mod.rs"]
mod measure;
mod names;
mod queue;
mod starting;
mod support;
mod voice_stages;
