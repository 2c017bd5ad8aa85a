//! From sound to an utterance: wake words, and the beginning and end of speech.

pub(crate) mod backoff;
mod rules;
mod segmenter;
mod wake;

use std::sync::Arc;

use tokio::time::Instant;

pub(crate) use self::segmenter::{Listening, Notice, Segmenter};
pub(crate) use self::wake::{Wake, WakeNotice};

/// Something somebody said: 16-bit mono at 16 kHz, with what came just before.
#[derive(Debug, Clone)]
pub(crate) struct Utterance {
    pub(crate) samples: Arc<[i16]>,
    /// When the wake word was heard, if one was needed, else when speech began.
    pub(crate) began: Instant,
    pub(crate) wake_word: Option<String>,
    /// True if the wake word and the request were one breath: something of the word may be left in the sound.
    pub(crate) in_one_breath: bool,
    pub(crate) ended: Instant,
    pub(crate) room: Option<String>,
}
