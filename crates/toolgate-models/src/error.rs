//! Why a model gave no answer, in sentences that tell the user what to do.

use std::time::Duration;

use crate::Provider;

// Values of `ModelError::TimedOut::what`.
pub(crate) const BEGIN_TO_ANSWER: &str = "begin to answer";
pub(crate) const FINISH: &str = "finish";

/// Why a model could not answer.
///
/// Texts from providers are bounded and escaped, and keys are removed from them.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    #[error("{provider} can't be reached at {url}: {reason}")]
    Unreachable {
        provider: Provider,
        /// The address, without any login.
        url: String,
        reason: String,
    },
    /// No key is set, or the provider refuses it.
    #[error("{provider} does not accept the key: {reason}")]
    Key { provider: Provider, reason: String },
    /// The model doesn't exist at this provider, or can't do what is needed.
    #[error("{reason}")]
    Model { reason: String },
    /// The provider refuses this request, and would refuse it again.
    #[error("{provider} refused the request: {reason}")]
    Refused { provider: Provider, reason: String },
    /// A rate limit or a budget is exhausted.
    #[error("{provider} asks to slow down: {reason}")]
    Limited {
        provider: Provider,
        reason: String,
        /// How long to wait before asking again; `None` if the provider didn't say.
        retry_after: Option<Duration>,
        /// False if waiting doesn't help, as with a spent budget.
        retryable: bool,
    },
    /// The provider reports an error of its own.
    #[error("{provider} failed: {reason}")]
    Failed {
        provider: Provider,
        reason: String,
        retry_after: Option<Duration>,
    },
    /// The connection ended before the answer did.
    #[error("the answer of {provider} was cut off: {reason}")]
    Truncated { provider: Provider, reason: String },
    /// The answer doesn't follow the provider's API.
    #[error("{provider} sent an unexpected answer: {reason}")]
    Malformed { provider: Provider, reason: String },
    #[error("{provider} did not {what} within {} s", seconds(*after))]
    TimedOut {
        provider: Provider,
        /// What the provider didn't do, such as `begin to answer`.
        what: &'static str,
        after: Duration,
    },
    /// The request exceeds the model's context window.
    #[error("the conversation is too long for {model}: {reason}")]
    TooLong { model: String, reason: String },
}

// Rounded to hundredths, for messages.
pub(crate) fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 100.0).round() / 100.0
}

impl ModelError {
    /// True if the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Failed { .. } | Self::Truncated { .. } => true,
            Self::Limited { retryable, .. } => *retryable,
            _ => false,
        }
    }

    /// A stable name for programs, such as `unreachable`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "unreachable",
            Self::Key { .. } => "key",
            Self::Model { .. } => "model",
            Self::Refused { .. } => "refused",
            Self::Limited { .. } => "limited",
            Self::Failed { .. } => "failed",
            Self::Truncated { .. } => "cut",
            Self::Malformed { .. } => "garbled",
            Self::TimedOut { .. } => "timed_out",
            Self::TooLong { .. } => "too_long",
        }
    }

    /// How long the provider wants to be left alone, if it said so.
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
    fn times_are_rounded_in_messages() {
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
