//! [`QuestionHandler`]: lets a running tool ask whoever made the call.

use futures::future::BoxFuture;
use serde_json::Value;

/// Puts the questions of a tool's server to the caller. Questions and answers have the form of MCP
/// and are passed on as they are, so they may be `elicitation/create`, `sampling/createMessage` or
/// `roots/list`.
pub trait QuestionHandler: Send + Sync {
    /// True if the caller has declared that it can answer such a question.
    fn can_answer(&self, question: &Question) -> bool;

    /// Returns the caller's answer. Implementations limit how long they wait.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Value, QuestionError>>;
}

/// What a server asks. Its texts are untrusted.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The server's name in the configuration.
    pub server: String,
    /// The MCP method.
    pub method: String,
    pub params: Value,
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionError {
    #[error("nobody answered in time")]
    TimedOut,
    #[error("the client that asked is gone")]
    Gone,
    #[error("the client can't answer: {message}")]
    Refused { code: i64, message: String },
}
