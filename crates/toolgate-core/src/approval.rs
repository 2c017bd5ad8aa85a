//! Asking a person before a tool runs.

use futures::future::BoxFuture;
use serde_json::Value;

use crate::{CallId, Origin, ToolDefinition};

/// Asks a person. Its forms live where people are: the terminal, the dashboard.
pub trait Approver: Send + Sync {
    /// Waits for the answer; the executor limits how long. The future is dropped when the caller is gone.
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval>;
}

/// What a person has to decide on.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ApprovalRequest<'a> {
    /// Which call.
    pub id: CallId,
    /// Who wants it.
    pub origin: Origin,
    /// The tool.
    pub tool: &'a ToolDefinition,
    /// Exactly what it would get.
    pub arguments: &'a Value,
}

/// A person's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// Run it, this once.
    Granted,
    /// Do not.
    Refused,
    /// There is nobody to ask.
    Nobody,
}
