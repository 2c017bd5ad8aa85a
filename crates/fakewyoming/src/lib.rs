//! Fakes of Wyoming's speech services, for tests.
//!
//! ```text
//!  a client ─▶ frame ─▶ FakeAsr, FakeTts, FakeWake, FakeMic, FakeSatellite
//!                          │
//!                          └──▶ the answer as it should be, or with the next Fault: late, cut, garbage, giant, never
//! ```
//!
//! Each listens on a [`Port`] of the loopback, records every event, and can be killed and restarted
//! on the same port. What a client does wrong is recorded as a complaint and answered with `error`.
//! The fakes have their own codec, because they would share the mistakes of the one under test.

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
pub use client::WyomingTestClient;
pub use fake::Fake;
pub use fault::ServiceFault;
pub use frame::ReceivedEvent;
pub use mic::FakeMic;
pub use port::Port;
pub use satellite::FakeSatellite;
pub use tts::FakeTts;
pub use wake::FakeWake;

#[cfg(test)]
mod tests;
