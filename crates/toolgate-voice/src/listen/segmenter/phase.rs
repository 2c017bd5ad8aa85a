//! What the segmenter is in the middle of.

use tokio::time::Instant;

use crate::listen::rules::FRAME;

/// The smallest piece of sound, with how much it is like speech and when it ended.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) samples: [i16; FRAME],
    pub(super) score: f32,
    pub(super) at: Instant,
}

/// What is counted in each phase are frames.
pub(super) enum Phase {
    Asleep,
    Waiting {
        /// Until the wake word is worth nothing any more; none: for ever.
        left: Option<usize>,
        start: Option<Start>,
    },
    Hearing {
        length: usize,
        quiet: usize,
        resumed: usize,
        began: Instant,
    },
    /// The beginning was missed: what is said until it is quiet is no request.
    Missed {
        quiet: usize,
    },
    /// The request was cut: what is said until it is quiet belongs to it.
    Overlong {
        quiet: usize,
        spoken: usize,
    },
}

#[derive(Clone, Copy)]
pub(super) struct Start {
    pub(super) began: Instant,
    pub(super) length: usize,
    /// Those that are speech, less those that are not.
    pub(super) spoken: usize,
}
