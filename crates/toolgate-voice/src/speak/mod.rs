//! From words to sound: sentences, engines and outputs.
//!
//! ```text
//!  push ──▶ sentences ──▶ speakable ──▶ SpeechSynthesizer ──▶ volume ──▶ AudioOutput
//!  words    complete      as it is      an engine makes       level,     a program, a file,
//!           sentences     pronounced    sound                 mute       a service, a satellite
//! ```
//!
//! Start reading in `speaker.rs`; `worker.rs` prepares one sentence while another is played.

mod backends;
mod engine;
mod output;
mod pace;
mod player;
mod script;
mod sentences;
mod slices;
mod speakable;
mod speaker;
mod tone;
mod volume;
mod worker;

pub(crate) use backends::{
    AudioOutput, AudioPlayback, NoOutput, NoSpeech, OpenedPlayback, SoundStream, SpeechSynthesizer,
};
pub(crate) use engine::{CommandTts, create_synthesizer};
pub(crate) use output::{PlayerProgram, create_output};
pub(crate) use script::AnswerScript;
pub(crate) use sentences::{AnswerPiece, SentenceSplitter};
pub(crate) use speakable::speakable;
pub(crate) use speaker::{ActiveSpeech, Speaker, SpeechOutcome};
pub(crate) use tone::SignalTone;
pub use volume::VoiceVolume;
