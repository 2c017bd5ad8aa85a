//! A voice gateway: it hears a request, uses tools, and speaks the answer.
//!
//! ```text
//!  hear ──▶ listen ──▶ transcribe ──▶ turn ──▶ speak
//!  sound    wake,      Wyoming ASR,   a        sentences,
//!  comes    VAD: an    filters,       Conver-  Wyoming TTS
//!  in       Utterance  plain words    sation   or a command
//! ```
//!
//! Start reading in `gateway.rs`, which puts the rooms together and keeps them alive. `wyoming` is the protocol of the engines,
//! without a socket and with one; `services` are those that this program offers itself. Inside, sound is always 16-bit mono at
//! 16 kHz on its way in, and of the engine's format on its way out.

mod audio;
mod checks;
mod engine;
mod event;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gateway;
mod hear;
mod house;
mod listen;
mod services;
mod settings;
mod speak;
mod transcribe;
mod turn;
pub mod wyoming;

// What tests share with those of `tests/` and `examples/` names the crate as they do.
#[cfg(test)]
extern crate self as toolgate_voice;

pub use audio::check_wav;
pub use checks::{EngineCheck, check_asr, check_engines, is_wav};
pub use engine::{EngineError, Role};
pub use event::{Event, State, Watcher};
pub use gateway::{FindModel, GatewayError, Key, Mode, Parts, Reach, Summary, run};
pub use hear::{Input, InputError};
pub use settings::VoiceSettings;
pub use speak::Loudness;
pub use turn::{Reason, SpokenApprovals};
