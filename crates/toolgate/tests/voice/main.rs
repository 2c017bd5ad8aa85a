//! The voice gateway as a separate process with third-party engines: espeak-ng speaks, Whisper
//! transcribes, openWakeWord detects the wake word, Mosquitto connects the house.
//!
//! They are installed by `./test.sh`; without them these tests are skipped, and
//! with `CI=true` they fail.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where"
)]

#[expect(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "shared with the tests of the connection, which use more of it"
)]
#[path = "../../../toolgate-mqtt/tests/brokers/brokers.rs"]
mod brokers;
mod degraded;
mod engines;
mod house;
mod names;
mod program;
mod requests;
mod servers;
mod starting;
