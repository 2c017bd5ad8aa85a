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

pub mod audio;
mod engine;
mod event;
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

pub use engine::{EngineError, Problem, Role};
pub use event::{Event, State, Watcher};
pub use gateway::{FindModel, GatewayError, Key, Mode, Parts, Reach, Summary, run};
pub use hear::{Heard, Input, InputError, Opened, Recorder, SatelliteLink, Source, open, paced};
pub use listen::{Listening, Notice, Segmenter, Utterance, Wake, WakeNotice};
pub use services::{Answered, Asked, HandleService, Respond, TtsService};
pub use settings::VoiceSettings;
pub use speak::{
    CommandTts, Loudness, NoOutput, NoSpeech, Output, Piece, Playing, Program, Script, Sentences,
    SoundStream, Speaker, Speech, Spoken, Synthesize, Tone, WavFile, WyomingSnd, WyomingTts,
    engine, output, speakable,
};
pub use transcribe::{Transcribe, WyomingAsr, is_hallucination, plain, worth};
pub use turn::{BackgroundTranscriber, Equipment, Overrun, Question, Reason, SpokenApprovals};
