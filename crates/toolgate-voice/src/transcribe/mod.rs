//! From an utterance to words: an engine, with filters before and after it.
//!
//! ```text
//!  Utterance ──▶ sound_check ──▶ SpeechToText ──▶ transcript ──▶ hallucination ──▶ words
//!                too short,      WyomingAsr       cleaned up     what engines
//!                too quiet                                       write for silence
//! ```

mod asr;
mod hallucination;
mod remnant;
mod sound_check;
mod transcript;

use futures::future::BoxFuture;

pub(crate) use asr::WyomingAsr;
pub(crate) use hallucination::is_hallucination;
pub(crate) use remnant::requests_behind_remnant;
pub(crate) use sound_check::check_sound;
pub(crate) use transcript::tidy_transcript;
pub(crate) use transcript::{is_cancel, is_no, is_yes, without_wake_word};

use crate::EngineError;
use crate::segment::Utterance;

pub(crate) trait SpeechToText: Send + Sync {
    /// The transcript as the engine writes it. Empty without words. Enforces its own time limit.
    fn transcribe<'a>(
        &'a self,
        utterance: &'a Utterance,
    ) -> BoxFuture<'a, Result<String, EngineError>>;
}
