//! Why a model gave no answer, in sentences for a person that say what to do.

use std::time::Duration;

use crate::Provider;

/// What a model did not do that was silent up to its limit.
pub(crate) const NOT_BEGUN: &str = "begin to answer";
/// What it did not do until the end of the turn.
pub(crate) const NOT_FINISHED: &str = "finish";

/// A model could not answer.
///
/// Texts of providers are bounded and escaped before they get here, and keys are taken out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Nobody answers at the address.
    #[error("{provider} can not be reached at {url}: {reason}")]
    Unreachable {
        /// Whose model.
        provider: Provider,
        /// Where, without a login.
        url: String,
        /// Why.
        reason: String,
    },
    /// The key is missing or not accepted.
    #[error("{provider} does not accept the key: {reason}")]
    Key {
        /// Whose model.
        provider: Provider,
        /// What it said, and what to do.
        reason: String,
    },
    /// There is no such model there, or it can not do what is needed.
    #[error("{reason}")]
    Model {
        /// What is missing, and the command that gets it.
        reason: String,
    },
    /// The request was not understood, or is not allowed: asking again would not help.
    #[error("{provider} refused the request: {reason}")]
    Refused {
        /// Whose model.
        provider: Provider,
        /// What it said.
        reason: String,
    },
    /// Too many requests, or nothing left to spend.
    #[error("{provider} asks to slow down: {reason}")]
    Limited {
        /// Whose model.
        provider: Provider,
        /// What it said, and when to try again.
        reason: String,
        /// When it may be asked again; `None`: not told.
        retry_after: Option<Duration>,
        /// False where waiting does not help, as with a spent budget.
        retryable: bool,
    },
    /// The provider is in trouble.
    #[error("{provider} failed: {reason}")]
    Failed {
        /// Whose model.
        provider: Provider,
        /// What it said.
        reason: String,
        /// When it may be asked again, where it told.
        retry_after: Option<Duration>,
    },
    /// The stream ended before the answer did.
    #[error("the answer of {provider} was cut off: {reason}")]
    Cut {
        /// Whose model.
        provider: Provider,
        /// How it ended.
        reason: String,
    },
    /// What came back is not what this provider sends.
    #[error("{provider} sent something else than an answer: {reason}")]
    Garbled {
        /// Whose model.
        provider: Provider,
        /// What it was.
        reason: String,
    },
    /// It took too long.
    #[error("{provider} did not {what} within {} s", seconds(*after))]
    TimedOut {
        /// Whose model.
        provider: Provider,
        /// `begin to answer`, or `finish`.
        what: &'static str,
        /// The limit.
        after: Duration,
    },
    /// More was said than the model can hold.
    #[error("the conversation is too long for {model}: {reason}")]
    TooLong {
        /// Which model.
        model: String,
        /// How long, and what to do.
        reason: String,
    },
}

/// Without decimals that nobody reads.
pub(crate) fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 100.0).round() / 100.0
}

impl ModelError {
    /// True if the same request may succeed a moment later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Failed { .. } | Self::Cut { .. } => true,
            Self::Limited { retryable, .. } => *retryable,
            _ => false,
        }
    }

    /// In one word, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "unreachable",
            Self::Key { .. } => "key",
            Self::Model { .. } => "model",
            Self::Refused { .. } => "refused",
            Self::Limited { .. } => "limited",
            Self::Failed { .. } => "failed",
            Self::Cut { .. } => "cut",
            Self::Garbled { .. } => "garbled",
            Self::TimedOut { .. } => "timed_out",
            Self::TooLong { .. } => "too_long",
        }
    }

    /// When the provider wants to be asked again, where it told.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Limited { retry_after, .. } | Self::Failed { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_without_decimals_that_nobody_reads() {
        for (micros, expected) in [
            (300_000_000, "300 s"),
            (2_999_099, "3 s"),
            (2_396_877, "2.4 s"),
            (50_000, "0.05 s"),
        ] {
            let error = ModelError::TimedOut {
                provider: Provider::Ollama,
                what: "finish",
                after: Duration::from_micros(micros),
            };
            let expected = format!("ollama did not finish within {expected}");
            assert_eq!(error.to_string(), expected);
        }
    }
}
