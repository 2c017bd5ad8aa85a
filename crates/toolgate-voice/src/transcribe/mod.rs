//! From an utterance to words: an engine, and filters before and behind it.
//!
//! ```text
//!  Utterance ──▶ worth ──▶ Transcribe ──▶ plain ──▶ is_hallucination ──▶ words
//!                too short,  WyomingAsr   tidied     what engines write
//!                too quiet                           for silence
//! ```

mod asr;
mod hallucination;
mod plain;
mod remnant;
mod worth;

use futures::future::BoxFuture;

pub(crate) use asr::WyomingAsr;
pub(crate) use hallucination::is_hallucination;
pub(crate) use plain::plain;
pub(crate) use plain::{is_cancel, is_no, is_yes, without_wake_word};
pub(crate) use remnant::behind_remnant;
pub(crate) use worth::worth;

use crate::EngineError;
use crate::listen::Utterance;

pub(crate) trait Transcribe: Send + Sync {
    /// What was said, as the engine writes it; empty if it heard no words. It bounds its own time.
    fn transcribe<'a>(
        &'a self,
        utterance: &'a Utterance,
    ) -> BoxFuture<'a, Result<String, EngineError>>;
}
