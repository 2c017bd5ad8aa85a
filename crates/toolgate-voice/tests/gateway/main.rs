//! The whole gateway over real sockets, with scripted engines.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can not go on has failed, and a panic says where"
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

#[path = "../../src/turn/tests/support/alone.rs"]
mod alone;
mod barge_in;
mod consent;
mod endurance;
mod engines;
mod hostile;
mod hostile_proxy;
mod killed;
mod requests;
mod stage;
mod start;
#[path = "../../src/turn/tests/support/starting_server.rs"]
mod starting_server;
