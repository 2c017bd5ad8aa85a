//! [`Approver`]: asks a person before a tool runs. Also the requests it receives, and its answers.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::{CallId, Origin, QuestionHandler, ToolDefinition};

/// The longest arguments, in bytes of JSON, that a person is asked to approve. A call with longer
/// ones is denied without asking, because nobody can agree to what they can't read.
pub const MAX_APPROVABLE_BYTES: usize = 64 << 10;

/// Asks a person to approve calls. Each way to reach people has its own: the terminal,
/// the dashboard, the voice.
///
/// ```
/// use futures::future::BoxFuture;
/// use toolgate_core::{Approval, ApprovalActor, ApprovalChannel, ApprovalRequest, Approver};
///
/// /// Approves transfers of up to 50 euros, and refuses everything else.
/// struct SmallTransfers;
///
/// impl Approver for SmallTransfers {
///     fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
///         let is_small = request.arguments["euros"].as_u64().is_some_and(|euros| euros <= 50);
///         let by = ApprovalActor::new(ApprovalChannel::Program).with_name("transfer limit");
///         let answer = if is_small { Approval::Granted(by) } else { Approval::Refused(by) };
///         Box::pin(std::future::ready(answer))
///     }
/// }
/// ```
pub trait Approver: Send + Sync {
    /// Asks, and waits for the answer. The executor drops the future after
    /// [`Limits::approval_timeout`](crate::Limits::approval_timeout), and when the caller is gone.
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval>;

    /// Like [`ask`](Self::ask), for a question that is also asked elsewhere: an approver that
    /// people may reach later waits for them, even if it reaches nobody now.
    fn ask_alongside<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        self.ask(request)
    }

    /// Tells a person how to approve calls, for the envelope's `hint`: where to go and what to do
    /// there. `None` keeps the general hint.
    fn hint(&self) -> Option<String> {
        None
    }
}

/// What a person is asked to approve.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ApprovalRequest<'a> {
    pub id: CallId,
    pub origin: Origin,
    /// The caller's name, if callers have names: [`Scope::caller`](crate::Scope::caller).
    pub caller: Option<&'a str>,
    pub tool: &'a ToolDefinition,
    /// Exactly what the tool would receive.
    pub arguments: &'a Value,
    pub reason: ApprovalReason,
    /// When the executor stops waiting for an answer.
    pub expires_at: SystemTime,
    /// Reaches the person behind the client that made the call. `None` if the client can't be
    /// asked, or may not approve its calls.
    pub questions: Option<&'a dyn QuestionHandler>,
}

/// Why a call needs approval. Its `Display` is a sentence for the person who is asked.
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
        const WHERE: &str = "in the terminal with 'toolgate ask', 'toolgate chat' or 'toolgate call' (--yes approves in \
             advance), by voice with 'toolgate voice', or on the dashboard of 'toolgate serve'";
        match self {
            Self::Policy => format!("'policy.ask' requires a person's approval: {WHERE}"),
            Self::Destructive => format!(
                "The tool declares itself destructive, so a person has to approve it: {WHERE}. To never be asked, set \
                 \"policy\": {{\"destructive\": \"allow\"}} in the configuration"
            ),
            Self::Flow => format!(
                "This conversation has read untrusted text and private data, and this tool can send something out \
                 ('policy.flow' in the configuration), so a person has to approve it: {WHERE}"
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
    /// This one call may run.
    Granted(ApprovalActor),
    Refused(ApprovalActor),
    /// There was nobody to ask, for example because no terminal is attached.
    Nobody,
}

/// Who answered, and through which channel.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalActor {
    pub channel: ApprovalChannel,
    /// The name of the person or token, if known.
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
    pub fn with_name(mut self, name: impl Into<Arc<str>>) -> Self {
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
    Flag,
    /// Clicked in a signed-in browser.
    Browser,
    /// Sent over HTTP with a token that has the right to approve.
    Token,
    Voice,
    /// Answered in the MCP client that made the call.
    Client,
    /// Decided by code of the program that embeds this library.
    Program,
}

impl ApprovalChannel {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Flag => "option",
            Self::Browser => "browser",
            Self::Token => "token",
            Self::Voice => "voice",
            Self::Client => "client",
            Self::Program => "program",
        }
    }
}

impl fmt::Display for ApprovalChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A person's answer, as it is recorded with the call.
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
