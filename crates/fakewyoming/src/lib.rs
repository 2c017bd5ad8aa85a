//! Fake Wyoming services for tests: speech-to-text, text-to-speech, wake
//! words, microphones and satellites.
//!
//! ```text
//!  a client ─▶ frame ─▶ FakeAsr, FakeTts, FakeWake, FakeMic, FakeSatellite
//!                          │
//!                          └──▶ the correct answer, or the next ServiceFault: late, cut, garbage
//! ```
//!
//! Each listens on a [`Port`] of the loopback, records every event, and can be killed and
//! restarted on the same port. Protocol errors of a client are recorded as complaints and
//! answered with `error`. The fakes have a codec of their own, so that they don't share the bugs
//! of the one under test.

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
