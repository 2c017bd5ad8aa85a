//! A voice gateway: it captures a request, uses tools, and speaks the answer.
//!
//! ```text
//!  capture ──▶ segment ──▶ transcribe ──▶ turn ──▶ speak
//!  sound       wake word,  Wyoming ASR,   a        sentences,
//!  sources     VAD: an     filters,       Conver-  Wyoming TTS
//!              Utterance   a transcript   sation   or a command
//! ```
//!
//! [`run`] runs a gateway from its [`VoiceGatewayParts`] until its input ends or it is stopped. A
//! [`VoiceObserver`] sees what happens. Speech-to-text, text-to-speech and wake words come from
//! engines: services that speak the [`wyoming`] protocol, or local programs. ASR is speech-to-text,
//! TTS text-to-speech, and VAD the detection of speech.
//!
//! To read the code, start in `gateway.rs`, which puts the parts together and keeps them alive.
//! `services` are the Wyoming services that this program offers itself. Captured sound is always
//! 16-bit mono at 16 kHz; speech keeps its engine's format.

mod audio;
mod capture;
mod checks;
mod engine;
mod event;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gateway;
mod mqtt_reporter;
mod segment;
mod services;
mod settings;
mod speak;
mod transcribe;
mod turn;
pub mod wyoming;

// Test code shared with `tests/` and `examples/` names the crate as they do.
#[cfg(test)]
extern crate self as toolgate_voice;

pub use audio::check_wav;
pub use capture::{AudioInput, AudioInputError};
pub use checks::{EngineCheck, check_asr, check_engines, is_wav};
pub use engine::{EngineError, EngineRole};
pub use event::{VoiceEvent, VoiceObserver, VoiceState};
pub use gateway::{
    ListenMode, ModelFinder, ToolServerStatus, VoiceGatewayError, VoiceGatewayParts, VoiceKey,
    VoiceSummary, run,
};
pub use settings::VoiceSettings;
pub use speak::Loudness;
pub use turn::{DropReason, SpokenApprovals};
