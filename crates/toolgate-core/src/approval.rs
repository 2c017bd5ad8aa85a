//! Asking a person before a tool runs.

use futures::future::BoxFuture;
use serde_json::Value;

use crate::{CallId, Origin, ToolDefinition};

/// Asks a person. Its forms live where people are: the terminal, the dashboard.
///
/// ```
/// use futures::future::BoxFuture;
/// use toolgate_core::{Approval, ApprovalRequest, Approver};
///
/// /// Lets nothing happen at night.
/// struct ByDay;
///
/// impl Approver for ByDay {
///     fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
///         let late = request.arguments["hour"].as_u64() > Some(21);
///         Box::pin(async move { if late { Approval::Refused } else { Approval::Granted } })
///     }
/// }
/// ```
pub trait Approver: Send + Sync {
    /// Waits for the answer; the executor limits how long. The future is dropped when the caller is gone.
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval>;
}

/// What a person has to decide on.
///
/// ```
/// use toolgate_core::{ApprovalRequest, Redactor};
///
/// fn question(request: &ApprovalRequest<'_>) -> String {
///     format!("Run {} {}?", request.tool.name(), Redactor::default().json(request.arguments, 500))
/// }
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ApprovalRequest<'a> {
    /// Which call.
    pub id: CallId,
    /// What asked.
    pub origin: Origin,
    /// The name of who asked, where callers are told apart: [`Scope::caller`](crate::Scope::caller).
    pub caller: Option<&'a str>,
    /// The tool.
    pub tool: &'a ToolDefinition,
    /// Exactly what it would get.
    pub arguments: &'a Value,
}

/// A person's answer.
///
/// ```
/// use toolgate_core::Approval;
///
/// fn answer(typed: &str) -> Approval {
///     if typed == "y" { Approval::Granted } else { Approval::Refused }
/// }
/// ```
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
