//! Doubles of Wyoming's voice engines, for tests.
//!
//! ```text
//!  a client ─▶ frame ─▶ FakeAsr, FakeTts, FakeWake, FakeMic, FakeSatellite
//!                          │
//!                          └──▶ the answer as it should be, or with the next Fault: late, cut, garbage, giant, never
//! ```
//!
//! Each listens on a [`Port`] of the loopback, keeps every event it got, and can be killed and started again on the same port. What
//! a client does wrong is kept as a complaint and answered with `error`. The doubles have a codec of their own: with the one that is
//! tested they would share its mistakes.

mod asr;
mod client;
mod fake;
mod fault;
mod frame;
mod mic;
mod port;
mod satellite;
mod tts;
mod wake;

pub use asr::FakeAsr;
pub use client::Client;
pub use fake::Fake;
pub use fault::Fault;
pub use frame::Got;
pub use mic::FakeMic;
pub use port::Port;
pub use satellite::FakeSatellite;
pub use tts::FakeTts;
pub use wake::FakeWake;

#[cfg(test)]
mod tests;
