//! The program itself, as a client starts it: without a house, and in a simulated one behind the embedded broker and real Mosquitto.
//!
//! Mosquitto and the MCP inspector are installed by `./test.sh`; without them their tests are skipped, and with `CI=true` they fail.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can not go on says where"
)]

mod acl;
mod away;
#[expect(
    dead_code,
    reason = "shared with the tests of the connection, which use more of it"
)]
#[path = "../../../toolgate-mqtt/tests/brokers/brokers.rs"]
mod brokers;
mod client;
mod ends;
mod hostile;
mod inspector;
mod locks;
mod stage;
mod through_toolgate;
mod whole_run;
mod without_a_house;
