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

pub use engine::{CommandTts, WyomingTts, engine};
pub use loudness::Loudness;
pub use output::{Program, WavFile, WyomingSnd, output};
pub use script::Script;
pub use sentences::{Piece, Sentences};
pub use sound::{NoOutput, NoSpeech, Output, Playing, SoundStream, Synthesize};
pub use speakable::speakable;
pub use speaker::{Speaker, Speech, Spoken};
pub use tone::Tone;
