//! Whole turns, from what was heard to what was spoken, with engines and models that do what a test tells them to.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod answers;
mod asks;
mod barge_in;
mod consent;
#[cfg(target_os = "linux")]
mod endurance;
mod engines;
mod fillers;
mod names;
mod queue;
mod starting;
mod support;
