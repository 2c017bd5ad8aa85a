//! Asks a person before a tool runs.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::{CallId, Origin, ToolDefinition};

/// Bytes of arguments, as JSON, that a person can be shown in full. A call with longer ones is
/// denied without asking: nobody can agree to what they can't read.
pub const MAX_APPROVABLE_BYTES: usize = 64 << 10;

/// Asks a person for approval. Implementations live where people are: the terminal, the dashboard.
///
/// ```
/// use futures::future::BoxFuture;
/// use toolgate_core::{Approval, ApprovalActor, ApprovalChannel, ApprovalRequest, Approver};
///
/// /// Allows nothing at night.
/// struct ByDay;
///
/// impl Approver for ByDay {
///     fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
///         let late = request.arguments["hour"].as_u64() > Some(21);
///         let by = ApprovalActor::new(ApprovalChannel::Program).named("the clock");
///         let answer = if late { Approval::Refused(by) } else { Approval::Granted(by) };
///         Box::pin(std::future::ready(answer))
///     }
/// }
/// ```
pub trait Approver: Send + Sync {
    /// Waits for the answer. The executor limits how long, and drops the future when
    /// the caller is gone.
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval>;

    /// How a person can give the approval, for the envelope's `hint`: where to go and
    /// what to do there.
    fn hint(&self) -> Option<String> {
        None
    }
}

/// What a person is asked to approve.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ApprovalRequest<'a> {
    pub id: CallId,
    pub origin: Origin,
    /// The caller's name, where callers are told apart: [`Scope::caller`](crate::Scope::caller).
    pub caller: Option<&'a str>,
    pub tool: &'a ToolDefinition,
    /// Exactly what the tool would receive.
    pub arguments: &'a Value,
    pub reason: ApprovalReason,
}

/// Why a call needs approval. Its `Display` is a sentence for that person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ApprovalReason {
    /// `policy.ask` names the tool.
    Policy,
    /// The tool declares itself destructive: `policy.destructive`.
    Destructive,
    /// The conversation has read untrusted text and private data: `policy.flow`.
    Flow,
}

impl ApprovalReason {
    pub(crate) fn hint(self) -> String {
        const WHERE: &str = "at the terminal of 'toolgate ask', 'toolgate chat' or 'toolgate call', where --yes agrees \
             beforehand, aloud with 'toolgate voice', or on the dashboard of 'toolgate serve'";
        match self {
            Self::Policy => format!("'policy.ask' lets a person decide: {WHERE}"),
            Self::Destructive => format!(
                "The tool declares itself destructive, so a person decides: {WHERE}. To never be asked, set \
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
            Self::Policy => "The policy requires approval.",
            Self::Destructive => "The tool declares itself destructive.",
            Self::Flow => {
                "It can send something out, and this conversation has read untrusted text and private data."
            }
        })
    }
}

/// The answer to an [`ApprovalRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// Run it this once.
    Granted(ApprovalActor),
    Refused(ApprovalActor),
    Nobody,
}

/// Who answered, and through which channel.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalActor {
    pub channel: ApprovalChannel,
    /// The name of the person or token, where they are told apart.
    pub name: Option<Arc<str>>,
}

impl ApprovalActor {
    pub fn new(channel: ApprovalChannel) -> Self {
        Self {
            channel,
            name: None,
        }
    }

    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }
}

impl fmt::Display for ApprovalActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} ({})", self.channel),
            None => self.channel.fmt(f),
        }
    }
}

/// The channel an answer came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalChannel {
    /// Typed at the terminal of the program that runs the call.
    Terminal,
    /// Given in advance with `--yes`.
    Option,
    /// Clicked in a signed-in browser.
    Browser,
    /// Sent over HTTP with a token that has the right to approve.
    Token,
    Voice,
    /// Decided by code of the program that embeds this library.
    Program,
}

impl ApprovalChannel {
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

impl fmt::Display for ApprovalChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An answer as recorded with its call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalRecord {
    /// False if the call was refused.
    pub granted: bool,
    /// Who answered, and through which channel.
    pub by: ApprovalActor,
    /// Wall-clock time of the answer.
    pub at: SystemTime,
}

impl ApprovalRecord {
    pub(crate) fn new(granted: bool, by: ApprovalActor) -> Self {
        let at = SystemTime::now();
        Self { granted, by, at }
    }
}
