//! From words to sound: sentences, engines, and where sound is played.
//!
//! ```text
//!  Speech::push ──▶ sentences ──▶ speakable ──▶ Synthesize ──▶ loudness ──▶ Output
//!  words as they    whole         what can      an engine      volume,      a program, a file,
//!  come             sentences     be said       makes sound    mute         a service, a satellite
//! ```
//!
//! Start reading in `speaker.rs`; `worker.rs` prepares one sentence while another is played.

mod engine;
mod loudness;
mod output;
mod pace;
mod player;
mod script;
mod sentences;
mod slices;
mod sound;
mod speakable;
mod speaker;
mod tone;
mod worker;

pub(crate) use engine::{CommandTts, engine};
pub use loudness::Loudness;
pub(crate) use output::{Program, output};
pub(crate) use script::Script;
pub(crate) use sentences::{Piece, Sentences};
pub(crate) use sound::{NoOutput, NoSpeech, Output, Playing, SoundStream, Synthesize};
pub(crate) use speakable::speakable;
pub(crate) use speaker::{Speaker, Speech, Spoken};
pub(crate) use tone::Tone;
