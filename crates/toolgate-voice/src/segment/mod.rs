//! From sound to utterances: wake words, and the start and end of speech.

mod rules;
mod segmenter;
mod wake_client;

use std::sync::Arc;

use tokio::time::Instant;

pub(crate) use self::segmenter::{ArmingMode, SegmentNotice, Segmenter};
pub(crate) use self::wake_client::{WakeNotice, WakeWordClient};

/// A spoken request: 16-bit mono at 16 kHz, with a little of what came before.
#[derive(Debug, Clone)]
pub(crate) struct Utterance {
    pub(crate) samples: Arc<[i16]>,
    /// When the wake word was heard, or when speech started if none was needed.
    pub(crate) began: Instant,
    pub(crate) wake_word: Option<String>,
    /// True if the request followed the wake word without a pause. Part of the word may
    /// be in the sound.
    pub(crate) in_one_breath: bool,
    pub(crate) ended: Instant,
    pub(crate) room: Option<String>,
}
