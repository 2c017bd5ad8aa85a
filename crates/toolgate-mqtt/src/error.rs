//! The error of publishing a message.

/// Why a message may not have reached the broker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The broker is not connected. Nothing was sent, and nothing will be sent later.
    #[error("{reason}")]
    Offline { reason: String },
    /// The topic or payload is invalid, or the broker refused it.
    #[error("{reason}")]
    Refused { reason: String },
    /// The message was sent but not confirmed, so it may have arrived.
    #[error("{reason}")]
    Unknown { reason: String },
}
