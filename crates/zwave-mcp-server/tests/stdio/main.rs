//! The program itself, as a client starts it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can not go on says where"
)]

mod client;
mod ends;
mod without_a_house;
