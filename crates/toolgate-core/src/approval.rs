//! Asking a person before a tool runs.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::{CallId, Origin, ToolDefinition};

/// Bytes of arguments, as JSON, that a person can be shown whole. A call with longer ones is denied
/// without asking: nobody can agree to what they can't read.
pub const LONGEST_APPROVABLE: usize = 64 << 10;

/// Asks a person. Its forms live where people are: the terminal, the dashboard.
///
/// ```
/// use futures::future::BoxFuture;
/// use toolgate_core::{Approval, ApprovalBy, ApprovalMeans, ApprovalRequest, Approver};
///
/// /// Lets nothing happen at night.
/// struct ByDay;
///
/// impl Approver for ByDay {
///     fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
///         let late = request.arguments["hour"].as_u64() > Some(21);
///         let by = ApprovalBy::new(ApprovalMeans::Program).named("the clock");
///         let answer = if late { Approval::Refused(by) } else { Approval::Granted(by) };
///         Box::pin(std::future::ready(answer))
///     }
/// }
/// ```
pub trait Approver: Send + Sync {
    /// Waits for the answer; the executor limits how long. The future is dropped when the caller is gone.
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval>;

    /// How a person gives the approval that nobody gave, for the envelope's `hint`: where to go and
    /// what to do there.
    fn hint(&self) -> Option<String> {
        None
    }
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
/// use toolgate_core::{Approval, ApprovalBy, ApprovalMeans};
///
/// fn answer(typed: &str) -> Approval {
///     let by = ApprovalBy::new(ApprovalMeans::Terminal);
///     if typed == "y" { Approval::Granted(by) } else { Approval::Refused(by) }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// Run it, this once.
    Granted(ApprovalBy),
    /// Do not.
    Refused(ApprovalBy),
    /// There is nobody to ask.
    Nobody,
}

/// Who answered, and by what means.
///
/// ```
/// use toolgate_core::{ApprovalBy, ApprovalMeans};
///
/// let by = ApprovalBy::new(ApprovalMeans::Browser).named("serve.token");
/// assert_eq!(by.to_string(), "serve.token (browser)");
/// assert_eq!(ApprovalBy::new(ApprovalMeans::Terminal).to_string(), "terminal");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalBy {
    /// How the answer came.
    pub means: ApprovalMeans,
    /// The name of who answered, where people are told apart: a token's, or the operator's.
    pub name: Option<Arc<str>>,
}

impl ApprovalBy {
    /// Somebody without a name.
    pub fn new(means: ApprovalMeans) -> Self {
        Self { means, name: None }
    }

    /// Gives them one.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }
}

impl fmt::Display for ApprovalBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} ({})", self.means),
            None => self.means.fmt(f),
        }
    }
}

/// The ways in which an answer can come.
///
/// ```
/// assert_eq!(toolgate_core::ApprovalMeans::Option.to_string(), "option");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalMeans {
    /// Typed at the terminal of the program that runs the call.
    Terminal,
    /// Given beforehand, with `--yes`.
    Option,
    /// Clicked in a browser that somebody signed in with.
    Browser,
    /// Sent over HTTP with a token that has the right to approve.
    Token,
    /// Spoken.
    Voice,
    /// Decided by code of the program that embeds this library.
    Program,
}

impl ApprovalMeans {
    /// The word for it in the journal, the log and the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Option => "option",
            Self::Browser => "browser",
            Self::Token => "token",
            Self::Voice => "voice",
            Self::Program => "program",
        }
    }
}

impl fmt::Display for ApprovalMeans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An answer as it is recorded with its call.
///
/// ```
/// fn line(approval: &toolgate_core::ApprovalRecord) -> String {
///     let did = if approval.granted { "approved" } else { "refused" };
///     format!("{did} by {}", approval.by)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalRecord {
    /// False if the call was refused.
    pub granted: bool,
    /// Who answered, and by what means.
    pub by: ApprovalBy,
    /// When, by the wall clock.
    pub at: SystemTime,
}

impl ApprovalRecord {
    pub(crate) fn new(granted: bool, by: ApprovalBy) -> Self {
        let at = SystemTime::now();
        Self { granted, by, at }
    }
}
