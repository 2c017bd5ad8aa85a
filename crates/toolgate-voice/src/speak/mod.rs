//! From words to sound: sentences, engines and outputs.
//!
//! ```text
//!  push ──▶ sentences ──▶ speakable ──▶ SpeechSynthesizer ──▶ loudness ──▶ AudioOutput
//!  words    complete      words for     an engine makes       volume,      a program, a file,
//!           sentences     the ear       sound                 mute         a service, a satellite
//! ```
//!
//! Start reading in `speaker.rs`; `worker.rs` prepares one sentence while another is played.

mod backends;
mod engine;
mod loudness;
mod output;
mod pace;
mod player;
mod script;
mod sentences;
mod slices;
mod speakable;
mod speaker;
mod tone;
mod worker;

pub(crate) use backends::{
    AudioOutput, AudioPlayback, NoOutput, NoSpeech, OpenedPlayback, SoundStream, SpeechSynthesizer,
};
pub(crate) use engine::{CommandTts, engine};
pub use loudness::Loudness;
pub(crate) use output::{PlayerProgram, output};
pub(crate) use script::AnswerScript;
pub(crate) use sentences::{AnswerPiece, SentenceSplitter};
pub(crate) use speakable::speakable;
pub(crate) use speaker::{ActiveSpeech, Speaker, SpeechOutcome};
pub(crate) use tone::SignalTone;
