//! The interface of transports, which carry messages to a server and back. A transport handles
//! bytes and processes; the session interprets the messages.

use std::fmt;

use futures::future::BoxFuture;

use super::message::{OutgoingMessage, RpcMessage};
use crate::ProtocolEra;

/// Receives what a transport reads. The transport's tasks call it in order of arrival, so
/// it must not block.
// The session is the only implementation outside tests, which test transports without a session.
pub(crate) trait TransportInbox: Send + Sync + 'static {
    /// `request` is the request on whose response stream the message came, if it did.
    fn on_message(&self, message: RpcMessage, request: Option<u64>);
    /// A message was discarded, because it was too large or malformed. `id` is set if
    /// it could be read.
    fn on_unreadable(&self, id: Option<u64>, problem: UnreadableAnswer);
    fn on_request_failed(&self, id: u64, error: TransportError);
    fn on_closed(&self, end: SessionEnd);
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnreadableAnswer {
    TooLarge {
        bytes: u64,
        limit: u64,
    },
    /// It looked like a message but couldn't be parsed, or lacks what it must contain. A sentence
    /// that says what is wrong.
    Broken(String),
}

/// Why something failed. The technical cause is separate, because only operators need it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FailureReason {
    text: String,
    cause: Option<String>,
    rest: String,
}

impl FailureReason {
    pub(crate) fn new(text: &str, cause: String, rest: &str) -> Self {
        Self {
            text: text.to_owned(),
            cause: Some(cause),
            rest: rest.to_owned(),
        }
    }

    /// Puts text before and after the reason.
    pub(crate) fn wrap(&self, before: &str, after: &str) -> Self {
        let mut reason = self.clone();
        reason.text.insert_str(0, before);
        match reason.cause {
            Some(_) => reason.rest.push_str(after),
            None => reason.text.push_str(after),
        }
        reason
    }

    pub(crate) fn without_cause(&self) -> String {
        format!("{}{}", self.text, self.rest)
    }

    pub(crate) fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if let Some(cause) = &self.cause {
            write!(f, " [cause: {cause}]")?;
        }
        f.write_str(&self.rest)
    }
}

impl<T: Into<String>> From<T> for FailureReason {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SessionEnd {
    pub(crate) status: FailureReason,
    pub(crate) stderr: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TransportError {
    /// The server has not received the message, so a retry is safe.
    #[error("{0}")]
    NotSent(FailureReason),
    /// The server may have received the message.
    #[error("{0}")]
    Interrupted(FailureReason),
    #[error("{status}")]
    Refused {
        status: HttpStatus,
        body: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HttpStatus(pub(crate) u16);

impl fmt::Display for HttpStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meaning = match self.0 {
            401 => "the server requires a login: set its 'headers' in the configuration",
            403 => "the server denies access: check its 'headers' in the configuration",
            404 => "there is no MCP server at this address: check its 'url' in the configuration",
            429 => "the server received too many requests",
            500..=599 => "the server failed",
            _ => "the server refused the request",
        };
        write!(f, "{meaning} (HTTP {})", self.0)
    }
}

pub(crate) trait Transport: Send + Sync + 'static {
    /// Sends one message. Returns once it is on its way; responses arrive through the inbox.
    ///
    /// If the future is dropped while a message is half written, implementations must still send
    /// the next one intact.
    fn send(&self, message: OutgoingMessage) -> BoxFuture<'_, Result<(), TransportError>>;

    /// Releases resources of a cancelled request. The server has been notified if
    /// the era requires it.
    fn drop_request(&self, _id: u64) {}

    fn set_protocol(&self, _era: ProtocolEra, _revision: &str) {}

    fn close(&self) -> BoxFuture<'_, ()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_shown_in_brackets_and_can_be_left_out() {
        let reason = FailureReason::new("no", "http://[::1]:80".to_owned(), "; check it");
        let nested = reason.wrap("it stopped (", ")");
        let shown = "it stopped (no [cause: http://[::1]:80]; check it)";
        assert_eq!(nested.to_string(), shown);
        assert_eq!(nested.without_cause(), "it stopped (no; check it)");
        assert_eq!(nested.cause(), Some("http://[::1]:80"));
        let plain = FailureReason::from("gone");
        assert_eq!((plain.to_string().as_str(), plain.cause()), ("gone", None));
    }
}
