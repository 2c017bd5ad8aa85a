//! Why something that was heard is not answered, and how often that happened.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why an utterance is no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// It is shorter than a word.
    TooShort,
    /// It is quieter than speech.
    TooQuiet,
    /// The engine found no words in it.
    NoWords,
    /// The engine found words that nobody said.
    Imagined,
    /// It only said that nothing shall be done.
    Cancel,
    /// Somebody spoke, or pressed a key, before it was its turn; or the program ends.
    GivenUp,
    /// Too many requests waited.
    Overrun,
    /// It answered a question that was asked aloud.
    Reply,
    /// Something broke that is not to blame on anybody outside.
    Broken,
}

impl Reason {
    pub(crate) const ALL: [Self; 9] = [
        Self::TooShort,
        Self::TooQuiet,
        Self::NoWords,
        Self::Imagined,
        Self::Cancel,
        Self::GivenUp,
        Self::Overrun,
        Self::Reply,
        Self::Broken,
    ];
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooShort => "too short to be speech",
            Self::TooQuiet => "too quiet to be speech",
            Self::NoWords => "no words in it",
            Self::Imagined => "only what engines write for silence",
            Self::Cancel => "a request to stop",
            Self::GivenUp => "given up before it was answered",
            Self::Overrun => "too many requests wait",
            Self::Reply => "the answer to a question",
            Self::Broken => "an error inside of the gateway",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{waiting} requests wait already; this one is dropped")]
pub(crate) struct Overrun {
    pub(crate) waiting: usize,
}

#[derive(Debug, Default)]
pub(super) struct Counts([AtomicU64; Reason::ALL.len()]);

impl Counts {
    pub(super) fn add(&self, reason: Reason) -> u64 {
        self.0[reason as usize].fetch_add(1, Ordering::Relaxed) + 1
    }

    #[cfg(test)]
    pub(super) fn get(&self, reason: Reason) -> u64 {
        self.0[reason as usize].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_counted_by_itself() {
        let counts = Counts::default();
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index, "{reason}");
            for count in 0..=index as u64 {
                assert_eq!(counts.add(reason), count + 1);
            }
        }
        let all = Reason::ALL.map(|reason| counts.get(reason));
        assert_eq!(all, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }
}
