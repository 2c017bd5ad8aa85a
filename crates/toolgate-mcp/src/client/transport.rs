//! What carries messages to a server and back. A transport knows bytes and processes; what messages mean, the session knows.

use std::fmt;

use futures::future::BoxFuture;

use super::message::{Message, Outgoing};
use crate::Era;

/// Where a transport delivers what arrives. Called from the transport's own tasks, in the order of arrival; never blocks.
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
    /// More bytes than the limit allows.
    TooLarge { bytes: u64, limit: u64 },
    /// It began as a message, and is none: the reason.
    Broken(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct End {
    /// For a person: `exit status 3`, `signal 9 (killed)`, `connection closed`, `session expired`.
    pub(crate) status: String,
    /// The tail of stderr, redacted; empty for HTTP.
    pub(crate) stderr: Vec<String>,
}

/// Why something could not be sent, or will not be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TransportError {
    /// The server has certainly not seen the message: sending it again is safe.
    #[error("{0}")]
    NotSent(String),
    /// The server may have seen it.
    #[error("{0}")]
    Interrupted(String),
    /// HTTP said no.
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

    /// The era and revision that were agreed on.
    fn agreed(&self, _era: Era, _revision: &str) {}

    /// Ends the connection in an orderly way: returns when nothing of it is left.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// A reason as a person reads it, and apart from it the cause in brackets, with its address and numbers.
pub(crate) fn apart(reason: &str) -> (String, Option<String>) {
    match (reason.find(" [cause: "), reason.rfind(']')) {
        (Some(from), Some(to)) if from < to => {
            let text = format!("{}{}", &reason[..from], &reason[to + 1..]);
            let cause = &reason[from + " [cause: ".len()..to];
            (text, Some(cause.to_owned()))
        }
        _ => (reason.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_an_operator_wants_to_know_stands_apart() {
        for (reason, text, cause) in [
            ("gone", "gone", None),
            (
                "broke off [cause: os error 104]",
                "broke off",
                Some("os error 104"),
            ),
            (
                "no [cause: http://[::1]:80]; check it",
                "no; check it",
                Some("http://[::1]:80"),
            ),
        ] {
            assert_eq!(apart(reason), (text.to_owned(), cause.map(str::to_owned)));
        }
    }
}
