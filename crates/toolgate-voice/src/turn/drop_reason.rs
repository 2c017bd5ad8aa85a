//! The reasons why an utterance is not answered.

use std::fmt;

/// Why an utterance isn't answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    TooShort,
    TooQuiet,
    NoWords,
    /// Speech-to-text made words out of silence.
    Hallucination,
    Cancel,
    /// Interrupted before its answer, or dropped at shutdown.
    GivenUp,
    /// The queue is full.
    QueueFull,
    /// It answered the gateway's own question.
    Reply,
    InternalError,
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooShort => "too short to be speech",
            Self::TooQuiet => "too quiet to be speech",
            Self::NoWords => "no words in it",
            Self::Hallucination => "likely a transcription of silence",
            Self::Cancel => "a request to stop",
            Self::GivenUp => "cancelled before it was answered",
            Self::QueueFull => "the queue is full",
            Self::Reply => "the answer to a question",
            Self::InternalError => "an internal error",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the queue is full ({waiting} requests); this one is dropped")]
pub(crate) struct QueueFullError {
    pub(crate) waiting: usize,
}
