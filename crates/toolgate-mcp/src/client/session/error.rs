//! [`SessionError`]: why a request to a server failed.

use crate::client::message::RpcError;
use crate::client::transport::{
    FailureReason, HttpStatus, SessionEnd, TransportError, UnreadableAnswer,
};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SessionError {
    /// The server has not received the request, so a retry is safe.
    NotSent(FailureReason),
    /// The connection ended while the request was open.
    Stopped(SessionEnd),
    /// Only this request failed; the connection stays.
    Interrupted(FailureReason),
    Refused {
        status: HttpStatus,
        body: Option<String>,
    },
    Rpc(RpcError),
    Unreadable(UnreadableAnswer),
}

impl From<TransportError> for SessionError {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::NotSent(reason) => Self::NotSent(reason),
            TransportError::Interrupted(reason) => Self::Interrupted(reason),
            TransportError::Refused { status, body } => Self::Refused { status, body },
        }
    }
}
