//! The whole gateway over real sockets, with scripted engines.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed, and a panic says where"
)]

#[expect(
    dead_code,
    reason = "shared with the tests of turns, which use more of it"
)]
#[path = "../../src/turn/tests/support/event_recorder.rs"]
mod event_recorder;
#[expect(
    dead_code,
    reason = "shared with the tests of turns, which use more of it"
)]
#[path = "../../src/turn/tests/support/model.rs"]
mod model;

mod barge_in;
mod consent;
mod endurance;
mod engines;
mod hostile;
mod hostile_proxy;
#[path = "../../src/turn/tests/support/isolated_test.rs"]
mod isolated_test;
mod killed;
mod requests;
mod stage;
mod start;
#[path = "../../src/turn/tests/support/starting_server.rs"]
mod starting_server;
