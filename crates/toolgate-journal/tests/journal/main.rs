//! Tests the journal from outside, with a real executor, a real file and, where
//! it matters, real processes.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod chain;
mod damage;
mod disk;
mod documented;
mod evict;
mod export;
mod foreign;
mod formats;
mod forward;
mod kill;
mod opening;
mod reading;
mod recent;
mod recording;
mod required_records;
mod retention;
#[path = "../../../toolgate-core/tests/contract/scripted.rs"]
mod scripted;
mod secrets;
mod sharing;
mod spool;
mod support;
mod tasks;
mod turns;
