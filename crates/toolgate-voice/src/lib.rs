//! The voice gateway: captures a spoken request, answers it with tools, and speaks the answer.
//!
//! ```text
//!  capture ──▶ segment ──▶ transcribe ──▶ turn ──▶ speak
//!  sound       wake word,  Wyoming ASR,   a        sentences,
//!  sources     VAD: an     filters,       Conver-  Wyoming TTS
//!              Utterance   a transcript   sation   or a command
//! ```
//!
//! [`run`] runs a gateway from its [`VoiceGatewayParts`] until its input ends or it is stopped. A
//! [`VoiceObserver`] receives a [`VoiceEvent`] for everything that happens meanwhile.
//! Speech-to-text (ASR), text-to-speech (TTS) and wake words come from engines: services that speak
//! the [`wyoming`] protocol, or local programs. Voice activity detection (VAD), which finds the end
//! of a request, needs no engine.
//!
//! To read the code, start in `gateway.rs`, which puts the parts together and keeps them alive.
//! `services` holds the Wyoming services that Toolgate itself offers. Captured sound is always
//! 16-bit mono at 16 kHz; synthesized speech keeps the format of its engine.

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

// Test code that is shared with `tests/` and `examples/` uses the crate's name, as they must.
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
pub use speak::VoiceVolume;
pub use turn::{DropReason, SpokenApprovals};
