//! Why a message was not published.

/// A message was not published, or nobody knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// There is no broker. Nothing was sent, and nothing will be.
    #[error("{reason}")]
    Offline {
        /// Why, for a person.
        reason: String,
    },
    /// The topic or the payload can not be sent. Nothing was sent.
    #[error("{reason}")]
    Refused {
        /// Why, for a person.
        reason: String,
    },
    /// It was sent, and the broker did not confirm it: it may have arrived.
    #[error("{reason}")]
    Unknown {
        /// What happened, for a person.
        reason: String,
    },
}
