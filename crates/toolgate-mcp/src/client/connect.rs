//! From settings to a connection that is ready for calls.

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct ConnectError {
    /// For a person, with what to do.
    pub(crate) reason: String,
    /// The tail of stderr, redacted.
    pub(crate) stderr: Vec<String>,
    /// Trying again will not help until something is changed: 401, 403, 404.
    pub(crate) hopeless: bool,
}
