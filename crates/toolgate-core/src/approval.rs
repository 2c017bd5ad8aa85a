//! Asking a person before a tool runs.

use std::fmt;

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
    /// Why a person is asked.
    pub reason: ApprovalReason,
}

/// Why a call waits for a person. Its `Display` is a sentence for that person.
///
/// ```
/// use toolgate_core::ApprovalReason;
///
/// assert_eq!(ApprovalReason::Destructive.to_string(), "It says that it is destructive.");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ApprovalReason {
    /// `policy.ask` names the tool.
    Policy,
    /// The tool says that it is destructive: `policy.destructive`.
    Destructive,
    /// The conversation has met untrusted text and private data: `policy.flow`.
    Flow,
}

impl ApprovalReason {
    /// How the call can be allowed, for whoever was denied it.
    pub(crate) fn hint(self) -> String {
        const WHERE: &str = "at the terminal of 'toolgate ask', 'toolgate chat' or 'toolgate call', where --yes agrees \
             beforehand, aloud with 'toolgate voice', or on the dashboard of 'toolgate serve'";
        match self {
            Self::Policy => format!("'policy.ask' lets a person decide: {WHERE}"),
            Self::Destructive => format!(
                "It says that it is destructive, so a person decides: {WHERE}. To never be asked, set \
                 \"policy\": {{\"destructive\": \"allow\"}} in the configuration"
            ),
            Self::Flow => format!(
                "This conversation has read untrusted text and private data, and this tool can send something out \
                 ('policy.flow' in the configuration), so a person decides: {WHERE}"
            ),
        }
    }
}

impl fmt::Display for ApprovalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Policy => "The policy asks about it.",
            Self::Destructive => "It says that it is destructive.",
            Self::Flow => {
                "It can send something out, and this conversation has read untrusted text and private data."
            }
        })
    }
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
