//! The whole gateway over real sockets, with engines that do what a test tells them to.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can not go on has failed, and a panic says where"
)]

#[expect(
    dead_code,
    reason = "shared with the tests of turns, which use more of it"
)]
#[path = "../../src/turn/tests/support/model.rs"]
mod model;
#[expect(
    dead_code,
    reason = "shared with the tests of turns, which use more of it"
)]
#[path = "../../src/turn/tests/support/watch.rs"]
mod watch;

#[path = "../../src/turn/tests/support/alone.rs"]
mod alone;
mod barge_in;
#[path = "../../src/turn/tests/support/coming.rs"]
mod coming;
mod consent;
mod endurance;
mod engines;
mod hostile;
mod killed;
mod requests;
mod stage;
mod start;
mod villain;
