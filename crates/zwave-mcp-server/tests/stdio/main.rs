//! Tests the program as clients start it: without a home, and with a simulated one behind the
//! embedded broker and a real Mosquitto.
//!
//! `./test.sh` installs Mosquitto and the MCP inspector. Without them their tests are skipped, and
//! with `CI=true` they fail.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on says where"
)]

mod acl;
mod broker_outages;
#[expect(
    dead_code,
    reason = "shared with the tests of the connection, which use more of it"
)]
#[path = "../../../toolgate-mqtt/tests/brokers/brokers.rs"]
mod brokers;
mod client;
mod exit;
mod fixture;
mod hostile;
mod inspector;
mod locks;
mod through_toolgate;
mod whole_run;
mod without_home;
