//! [`ToolError`]: everything that can go wrong with a call. The texts are part of the contract, and
//! tests assert each of them.

mod kind;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::text::{escape_truncated, join};
use crate::{ApprovalReason, MAX_APPROVABLE_BYTES, ToolOutput, Violation};
pub use kind::{ErrorKind, HandlerKind};

/// Why a call failed. Its `Display` is the sentence in the envelope's `error`.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// There is no such tool, or the policy or the scope hides it from this caller.
    #[error("Tool '{name}' not found")]
    NotFound {
        name: String,
        /// Up to three similar names, best first.
        nearest: Vec<String>,
        /// The names of all tools that this caller may use.
        known: Vec<String>,
    },
    #[error("Invalid parameters: {}", join(violations, ", "))]
    InvalidArguments {
        /// All violations, missing parameters first.
        violations: Vec<Violation>,
        /// Every required parameter with its type, so that a model can correct itself.
        required: Vec<(String, String)>,
        /// Unknown parameters, each with the one that was probably meant.
        misspelled: Vec<(String, String)>,
    },
    #[error("Tool '{tool}' {reason}")]
    Denied {
        tool: String,
        /// Completes the sentence that begins with the tool's name.
        reason: String,
        /// How to give the approval, if the approver has its own instructions.
        hint: Option<String>,
    },
    /// A person has to approve the call, and nobody did.
    #[error("Tool '{tool}' needs approval{}", if *.was_asked { ", and nobody answered in time" } else { "" })]
    NeedsApproval {
        tool: String,
        because: ApprovalReason,
        /// False if there was nobody to ask.
        was_asked: bool,
        /// How to give the approval, if the approver has its own instructions.
        hint: Option<String>,
    },
    /// Nobody has agreed to the tool, or to its latest change, so it isn't run.
    #[error("Tool '{tool}' {reason}")]
    Withheld {
        tool: String,
        /// Completes the sentence that begins with the tool's name.
        reason: String,
        /// How a person can agree to the tool as it is now.
        hint: String,
    },
    /// The tool can't reach something it needs: a network, a device, a program.
    #[error("The {tool} service is currently unavailable: {reason}")]
    Unavailable {
        tool: String,
        /// What is missing, in words for a person.
        reason: String,
        details: Option<String>,
        source: Option<Arc<dyn Error + Send + Sync>>,
    },
    #[error("MCP server '{server}' stopped during the call ({status})")]
    ServerStopped {
        server: String,
        /// How the process ended, such as `exit status 3`.
        status: String,
        /// The last lines of its stderr.
        details: Option<String>,
    },
    /// The tool did not answer in time. It may have had an effect.
    #[error("Tool '{tool}' timed out after {} s", .after.as_secs_f64())]
    TimedOut { tool: String, after: Duration },
    /// The caller cancelled the call or disconnected. The tool may have had an effect.
    #[error("Tool '{tool}' was cancelled before it answered")]
    Cancelled { tool: String },
    #[error("{kind} handler '{name}' not found")]
    HandlerNotFound { kind: HandlerKind, name: String },
    #[error("{message}")]
    Failed {
        /// The tool's own message, unchanged.
        message: String,
        details: Option<String>,
        source: Option<Arc<dyn Error + Send + Sync>>,
        /// What an MCP server answered, for callers that speak MCP too.
        answer: Option<Box<ServerFailure>>,
    },
    /// The tool panicked. The executor catches the panic.
    #[error("Tool '{tool}' failed unexpectedly")]
    Panicked { tool: String, panic: String },
    #[error("The {what} of '{tool}' {problem}")]
    TooLarge {
        tool: String,
        /// What is too large: `arguments` or `result`.
        what: &'static str,
        /// Completes the sentence with the size and the limit.
        problem: String,
    },
    /// No slot for concurrent calls became free in time.
    #[error("Tool '{tool}' did not run: {limit} calls are running already, which is the limit")]
    Overloaded { tool: String, limit: usize },
    /// The program ended while the call ran. Only the journal reports this.
    #[error("Tool '{tool}' was interrupted: its outcome is unknown")]
    Interrupted { tool: String },
}

/// How an MCP server reported a failure.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ServerFailure {
    /// A result with `isError`: its content, structured content and `_meta`.
    Result(ToolOutput),
    /// A JSON-RPC error.
    Rpc { code: i64, data: Option<Value> },
}

impl ToolError {
    /// Creates a failure. `message` reaches callers, models and people unchanged.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed {
            message: message.into(),
            details: None,
            source: None,
            answer: None,
        }
    }

    /// Like [`failed`](Self::failed), with the server's own answer.
    pub fn failed_with(message: impl Into<String>, answer: ServerFailure) -> Self {
        Self::Failed {
            message: message.into(),
            details: None,
            source: None,
            answer: Some(Box::new(answer)),
        }
    }

    /// A resource or a prompt doesn't exist. `data` goes to MCP clients.
    pub fn content_not_found(message: impl Into<String>, data: Value) -> Self {
        const RESOURCE_NOT_FOUND: i64 = -32002;
        let code = RESOURCE_NOT_FOUND;
        let data = Some(data);
        Self::failed_with(message, ServerFailure::Rpc { code, data })
    }

    /// Like [`failed`](Self::failed), with a cause that only the log shows.
    pub fn failed_because(
        message: impl Into<String>,
        cause: impl Error + Send + Sync + 'static,
    ) -> Self {
        Self::Failed {
            message: message.into(),
            details: None,
            source: Some(Arc::new(cause)),
            answer: None,
        }
    }

    /// Creates an error for something missing outside the program, such as a
    /// network. `tool` is [`CallContext::tool_name`](crate::CallContext::tool_name).
    pub fn unavailable(tool: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Unavailable {
            tool: tool.into(),
            reason: reason.into(),
            details: None,
            source: None,
        }
    }

    /// Creates an error for a call that is not allowed. `reason` completes `Tool '…' …`.
    pub fn denied(tool: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Denied {
            tool: tool.into(),
            reason: reason.into(),
            hint: None,
        }
    }

    pub(crate) fn too_long_to_approve(tool: &str, bytes: u64) -> Self {
        Self::Denied {
            tool: tool.to_owned(),
            reason: format!(
                "needs approval, and its arguments take {bytes} bytes: a person is shown at most {MAX_APPROVABLE_BYTES}, and \
                 nobody can agree to what they can't read"
            ),
            hint: Some("Send less at once, in several calls".to_owned()),
        }
    }

    pub fn too_many_values(tool: impl Into<String>, limit: usize) -> Self {
        Self::TooLarge {
            tool: tool.into(),
            what: "arguments",
            problem: format!("hold more than {limit} values, which is the limit"),
        }
    }

    /// Rejects an argument by a rule that the schema can't express. `text` completes the sentence
    /// that begins with the parameter's name: `must be a date`.
    pub fn invalid(parameter: impl Into<String>, text: impl Into<String>) -> Self {
        Self::InvalidArguments {
            violations: vec![Violation::new(parameter, text)],
            required: Vec::new(),
            misspelled: Vec::new(),
        }
    }

    pub(crate) fn too_large_to_check() -> Self {
        Self::invalid(
            "arguments",
            "are too large or nested too deeply to be checked against this schema",
        )
    }

    /// Adds details for the operator. They appear in the envelope's `details`, the log and the
    /// journal, but never reach a model. Does nothing for variants without details.
    #[must_use]
    pub fn with_details(mut self, text: impl Into<String>) -> Self {
        if let Some(details) = self.details_mut() {
            *details = Some(text.into());
        }
        self
    }

    fn details_mut(&mut self) -> Option<&mut Option<String>> {
        match self {
            Self::Failed { details, .. }
            | Self::Unavailable { details, .. }
            | Self::ServerStopped { details, .. } => Some(details),
            _ => None,
        }
    }

    /// Removes the details, for callers who aren't operators: a server's output may
    /// reveal other callers' calls.
    #[must_use]
    pub fn without_details(mut self) -> Self {
        match &mut self {
            Self::Panicked { panic, .. } => panic.clear(),
            error => drop(error.details_mut().and_then(Option::take)),
        }
        self
    }

    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::InvalidArguments { .. } => ErrorKind::InvalidArguments,
            Self::Denied { .. } | Self::NeedsApproval { .. } | Self::Withheld { .. } => {
                ErrorKind::Denied
            }
            Self::Unavailable { .. } | Self::ServerStopped { .. } => ErrorKind::Unavailable,
            Self::TimedOut { .. } => ErrorKind::Timeout,
            Self::Cancelled { .. } => ErrorKind::Cancelled,
            Self::HandlerNotFound { .. } => ErrorKind::HandlerNotFound,
            Self::Failed { .. } => ErrorKind::ToolError,
            Self::Panicked { .. } => ErrorKind::Panicked,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::Overloaded { .. } => ErrorKind::Overloaded,
            Self::Interrupted { .. } => ErrorKind::Interrupted,
        }
    }

    /// True if the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Overloaded
        )
    }

    /// True if the caller, rather than the tool, has to change something.
    pub(crate) fn is_callers_fault(&self) -> bool {
        use ErrorKind::{Denied, InvalidArguments, NotFound, TooLarge};
        match self.kind() {
            NotFound | InvalidArguments | Denied => true,
            TooLarge => matches!(self, Self::TooLarge { what, .. } if *what == "arguments"),
            _ => false,
        }
    }

    /// Details for the operator: exit status, tail of stderr, panic message.
    pub fn details(&self) -> Option<&str> {
        match self {
            Self::Failed { details, .. }
            | Self::Unavailable { details, .. }
            | Self::ServerStopped { details, .. } => details.as_deref(),
            Self::Panicked { panic, .. } if !panic.is_empty() => Some(panic),
            _ => None,
        }
    }

    /// What the caller can do next: the envelope's `hint`.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound { nearest, .. } if !nearest.is_empty() => {
                let names = nearest.iter().map(|name| format!("'{name}'"));
                Some(format!("Did you mean {}?", join(names, " or ")))
            }
            Self::InvalidArguments { misspelled, .. } if !misspelled.is_empty() => {
                let suggest = |(given, meant): &(String, String)| {
                    let given = escape_truncated(given, 100);
                    format!("'{given}' is not a parameter; did you mean '{meant}'?")
                };
                Some(join(misspelled.iter().map(suggest), " "))
            }
            Self::Denied {
                hint: Some(hint), ..
            }
            | Self::NeedsApproval {
                hint: Some(hint), ..
            } => Some(hint.clone()),
            Self::NeedsApproval { because, .. } => Some(because.hint()),
            Self::Withheld { hint, .. } => Some(hint.clone()),
            _ => None,
        }
    }
}
