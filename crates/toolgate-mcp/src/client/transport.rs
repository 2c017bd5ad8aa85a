//! What carries messages to a server and back. A transport knows bytes and processes; what messages mean, the session knows.

use std::fmt;

use futures::future::BoxFuture;

use super::message::{Message, Outgoing};
use crate::Era;

/// Where a transport delivers what arrives. Called from the transport's own tasks, in the order of arrival; never blocks.
// A trait although only a session has one: transports are tested without a session above them.
pub(crate) trait Inbox: Send + Sync + 'static {
    fn message(&self, message: Message);
    /// A message that was thrown away: too large, or broken beyond reading. `id` if it could be made out.
    fn lost(&self, id: Option<u64>, problem: Lost);
    /// One of our requests will get no answer, for a reason of its own: the rest of the connection is as it was.
    fn failed(&self, id: u64, error: TransportError);
    /// The connection is over. Nothing is delivered after this.
    fn closed(&self, end: End);
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lost {
    TooLarge {
        bytes: u64,
        limit: u64,
    },
    /// It began as a message, and is none: the reason.
    Broken(String),
}

/// Why something failed, for a person. What only an operator wants to know is a field of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Reason {
    text: String,
    /// An address, or what the system said.
    cause: Option<String>,
    /// What follows the cause where all of it is shown.
    rest: String,
}

impl Reason {
    pub(crate) fn new(text: &str, cause: String, rest: &str) -> Self {
        Self {
            text: text.to_owned(),
            cause: Some(cause),
            rest: rest.to_owned(),
        }
    }

    /// In the middle of another sentence.
    pub(crate) fn within(&self, before: &str, after: &str) -> Self {
        let mut reason = self.clone();
        reason.text.insert_str(0, before);
        match reason.cause {
            Some(_) => reason.rest.push_str(after),
            None => reason.text.push_str(after),
        }
        reason
    }

    /// Without the cause, for whoever calls a tool.
    pub(crate) fn without_cause(&self) -> String {
        format!("{}{}", self.text, self.rest)
    }

    pub(crate) fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if let Some(cause) = &self.cause {
            write!(f, " [cause: {cause}]")?;
        }
        f.write_str(&self.rest)
    }
}

impl<T: Into<String>> From<T> for Reason {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct End {
    /// For a person: `exit status 3`, `signal 9 (killed)`, `connection closed`, `session expired`.
    pub(crate) status: Reason,
    /// The tail of stderr, redacted; empty for HTTP.
    pub(crate) stderr: Vec<String>,
}

/// Why something could not be sent, or will not be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TransportError {
    /// The server has certainly not seen the message: sending it again is safe.
    #[error("{0}")]
    NotSent(Reason),
    /// The server may have seen it.
    #[error("{0}")]
    Interrupted(Reason),
    #[error("{status}")]
    Refused {
        status: Status,
        body: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) u16);

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meaning = match self.0 {
            401 => "the server wants a login: set its 'headers' in the configuration",
            403 => "the server refuses us: check its 'headers' in the configuration",
            404 => "there is no MCP server at this address: check its 'url' in the configuration",
            429 => "the server is asked too often",
            500..=599 => "the server failed",
            _ => "the server refused the request",
        };
        write!(f, "{meaning} (HTTP {})", self.0)
    }
}

pub(crate) trait Transport: Send + Sync + 'static {
    /// Hands one message over. `Ok` means that it is on its way, not that it arrived; answers come through the inbox.
    ///
    /// Dropping the future may leave a message half written: an implementation sees to it that the next one is still whole.
    fn send(&self, message: Outgoing) -> BoxFuture<'_, Result<(), TransportError>>;

    /// Nobody waits for this answer any more, and the server has been told if the era wants it told.
    fn forget(&self, _id: u64) {}

    fn agreed(&self, _era: Era, _revision: &str) {}

    /// Ends the connection in an orderly way: returns when nothing of it is left.
    fn close(&self) -> BoxFuture<'_, ()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_shown_in_brackets_and_can_be_left_out() {
        let reason = Reason::new("no", "http://[::1]:80".to_owned(), "; check it");
        let nested = reason.within("it stopped (", ")");
        let shown = "it stopped (no [cause: http://[::1]:80]; check it)";
        assert_eq!(nested.to_string(), shown);
        assert_eq!(nested.without_cause(), "it stopped (no; check it)");
        assert_eq!(nested.cause(), Some("http://[::1]:80"));
        let plain = Reason::from("gone");
        assert_eq!((plain.to_string().as_str(), plain.cause()), ("gone", None));
    }
}
