//! The gateway as a process, seen from outside: by a browser, by clients, by a fuzzer,
//! and through `kill -9`.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and a panic says where"
)]

mod browser;
mod clients;
mod conformance;
mod crowds;
mod ending;
mod endurance;
mod fuzzing;
mod health;
mod killing;
mod notifications;
mod pressure;
mod resource_use;
mod support;
mod suspended;
mod tasks;
mod voice;
