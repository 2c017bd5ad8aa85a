//! Everything that can go wrong with a call, as values. The texts are the contract's: change one and a test tells you.

mod kind;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use crate::{ApprovalReason, LONGEST_APPROVABLE, Violation};
pub use kind::{ErrorKind, HandlerKind};

/// Why a call did not succeed. Its `Display` is the sentence a person reads in the envelope's `error`.
///
/// ```
/// use toolgate_core::{ErrorKind, ToolError};
///
/// let error = ToolError::unavailable("search", "no network").with_details("dns: NXDOMAIN");
/// assert_eq!(error.to_string(), "The search service is currently unavailable: no network");
/// assert_eq!(error.kind(), ErrorKind::Unavailable);
/// assert!(error.is_transient());
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// There is no such tool, or the policy hides it from this caller.
    #[error("Tool '{name}' not found")]
    NotFound {
        /// The name that was asked for.
        name: String,
        /// Up to three names that look like it, best first.
        nearest: Vec<String>,
        /// The names there are.
        known: Vec<String>,
    },
    /// The arguments do not satisfy the tool's schema.
    #[error("Invalid parameters: {}", list(violations))]
    InvalidArguments {
        /// All of them, missing parameters first.
        violations: Vec<Violation>,
        /// Every required parameter with its type, for the model to correct itself.
        required: Vec<(String, String)>,
        /// Names that the schema does not know, each with the one that was probably meant.
        misspelt: Vec<(String, String)>,
    },
    /// The policy or a person does not let it run.
    #[error("Tool '{tool}' {reason}")]
    Denied {
        /// The tool's name.
        tool: String,
        /// The rest of the sentence.
        reason: String,
        /// How a person gives the approval, where the approver knows it better than we do.
        hint: Option<String>,
    },
    /// A person has to approve the call, and nobody did.
    #[error("Tool '{tool}' needs approval{}", if *.was_asked { ", and nobody answered in time" } else { "" })]
    NeedsApproval {
        /// The tool's name.
        tool: String,
        /// Why.
        because: ApprovalReason,
        /// False if nobody was there to ask.
        was_asked: bool,
        /// How a person gives the approval, where the approver knows it better than we do.
        hint: Option<String>,
    },
    /// The tool is not what a person agreed to, so it isn't run.
    #[error("Tool '{tool}' {reason}")]
    Withheld {
        /// The tool's name.
        tool: String,
        /// The rest of the sentence.
        reason: String,
        /// How to agree to the tool.
        hint: String,
    },
    /// What the tool needs can not be reached: a network, a device, a program.
    #[error("The {tool} service is currently unavailable: {reason}")]
    Unavailable {
        /// The tool's name.
        tool: String,
        /// What is missing, for a person.
        reason: String,
        /// What an operator wants to know besides.
        details: Option<String>,
        /// The cause, for the log.
        source: Option<Arc<dyn Error + Send + Sync>>,
    },
    /// The process behind an MCP tool ended while it worked.
    #[error("MCP server '{server}' stopped during the call ({status})")]
    ServerStopped {
        /// The server's name in the configuration.
        server: String,
        /// How it ended, for example `exit status 3`.
        status: String,
        /// The tail of its stderr.
        details: Option<String>,
    },
    /// The tool did not answer within its limit. It may have had an effect.
    #[error("Tool '{tool}' timed out after {} s", .after.as_secs_f64())]
    TimedOut {
        /// The tool's name.
        tool: String,
        /// The limit that ran out.
        after: Duration,
    },
    /// The caller went away or asked to stop. The tool may have had an effect.
    #[error("Tool '{tool}' was cancelled before it answered")]
    Cancelled {
        /// The tool's name.
        tool: String,
    },
    /// A definition refers to a handler that does not exist.
    #[error("{kind} handler '{name}' not found")]
    HandlerNotFound {
        /// Where it was looked for.
        kind: HandlerKind,
        /// What was looked for.
        name: String,
    },
    /// The tool itself says that it failed.
    #[error("{message}")]
    Failed {
        /// The tool's own words, unchanged.
        message: String,
        /// What an operator wants to know besides.
        details: Option<String>,
        /// The cause, for the log.
        source: Option<Arc<dyn Error + Send + Sync>>,
    },
    /// The tool panicked. Nothing else was harmed.
    #[error("Tool '{tool}' failed unexpectedly")]
    Panicked {
        /// The tool's name.
        tool: String,
        /// What it said.
        panic: String,
    },
    /// Arguments or a result beyond the limit.
    #[error("The {what} of '{tool}' {problem}")]
    TooLarge {
        /// The tool's name.
        tool: String,
        /// `arguments` or `result`.
        what: &'static str,
        /// Size and limit, as the rest of the sentence.
        problem: String,
    },
    /// All slots for concurrent calls stayed taken.
    #[error("Tool '{tool}' did not run: {limit} calls are running already, which is the limit")]
    Overloaded {
        /// The tool's name.
        tool: String,
        /// The number of slots.
        limit: usize,
    },
    /// The program ended while the call ran; only the journal knows of it.
    #[error("Tool '{tool}' was interrupted: its outcome is unknown")]
    Interrupted {
        /// The tool's name.
        tool: String,
    },
}

impl ToolError {
    /// A failure in the tool's own words.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed {
            message: message.into(),
            details: None,
            source: None,
        }
    }

    /// A failure in the tool's own words, with its cause for the log.
    pub fn failed_because(
        message: impl Into<String>,
        cause: impl Error + Send + Sync + 'static,
    ) -> Self {
        Self::Failed {
            message: message.into(),
            details: None,
            source: Some(Arc::new(cause)),
        }
    }

    /// Something outside is missing. `tool` is [`CallContext::tool_name`](crate::CallContext::tool_name).
    pub fn unavailable(tool: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Unavailable {
            tool: tool.into(),
            reason: reason.into(),
            details: None,
            source: None,
        }
    }

    /// The policy asks for an approval that nobody gave. `reason` continues the sentence.
    pub fn denied(tool: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Denied {
            tool: tool.into(),
            reason: reason.into(),
            hint: None,
        }
    }

    /// Arguments that nobody could read before agreeing to them.
    pub(crate) fn too_long_to_approve(tool: &str, bytes: u64) -> Self {
        Self::Denied {
            tool: tool.to_owned(),
            reason: format!(
                "needs approval, and its arguments take {bytes} bytes: a person is shown at most {LONGEST_APPROVABLE}, and \
                 nobody can agree to what they can't read"
            ),
            hint: Some("Send less at once, in several calls".to_owned()),
        }
    }

    /// Arguments of more than so many values.
    pub fn too_many_values(tool: impl Into<String>, limit: usize) -> Self {
        Self::TooLarge {
            tool: tool.into(),
            what: "arguments",
            problem: format!("hold more than {limit} values, which is the limit"),
        }
    }

    /// Arguments refused by a rule the schema can not express. `text` continues the parameter's name: `must be a date`.
    pub fn invalid(parameter: impl Into<String>, text: impl Into<String>) -> Self {
        Self::InvalidArguments {
            violations: vec![Violation::new(parameter, text)],
            required: Vec::new(),
            misspelt: Vec::new(),
        }
    }

    pub(crate) fn too_large_to_check() -> Self {
        Self::invalid(
            "arguments",
            "are too large or nested too deeply to be checked against this schema",
        )
    }

    /// Adds what an operator wants to know. It goes to the envelope's `details`, the log and the journal, never to a model.
    #[must_use]
    pub fn with_details(mut self, text: impl Into<String>) -> Self {
        if let Self::Failed { details, .. }
        | Self::Unavailable { details, .. }
        | Self::ServerStopped { details, .. } = &mut self
        {
            *details = Some(text.into());
        }
        self
    }

    /// The same for somebody who is no operator: what a server printed may tell of the calls of others.
    ///
    /// ```
    /// let error = toolgate_core::ToolError::failed("it broke").with_details("stderr: a line");
    /// assert_eq!(error.without_details().details(), None);
    /// ```
    #[must_use]
    pub fn without_details(mut self) -> Self {
        match &mut self {
            Self::Failed { details, .. }
            | Self::Unavailable { details, .. }
            | Self::ServerStopped { details, .. } => *details = None,
            Self::Panicked { panic, .. } => panic.clear(),
            _ => {}
        }
        self
    }

    /// The stable name for programs.
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

    /// True if the same call could succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Overloaded
        )
    }

    /// True if the caller, not the tool, has to change something.
    pub fn is_callers_fault(&self) -> bool {
        let kinds = [
            ErrorKind::NotFound,
            ErrorKind::InvalidArguments,
            ErrorKind::Denied,
        ];
        let sent_too_much = matches!(
            self,
            Self::TooLarge {
                what: "arguments",
                ..
            }
        );
        sent_too_much || kinds.contains(&self.kind())
    }

    /// For an operator only: exit status, tail of stderr, the words of a panic.
    pub fn details(&self) -> Option<&str> {
        match self {
            Self::Failed { details, .. }
            | Self::Unavailable { details, .. }
            | Self::ServerStopped { details, .. } => details.as_deref(),
            Self::Panicked { panic, .. } if !panic.is_empty() => Some(panic),
            _ => None,
        }
    }

    /// A next step for the caller: the envelope's `hint`.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound { nearest, .. } if !nearest.is_empty() => {
                let names = nearest
                    .iter()
                    .map(|name| format!("'{name}'"))
                    .collect::<Vec<_>>();
                Some(format!("Did you mean {}?", names.join(" or ")))
            }
            Self::InvalidArguments { misspelt, .. } if !misspelt.is_empty() => {
                let meant = |(given, meant): &(String, String)| {
                    let given = crate::text::cut(given, 100);
                    format!("'{given}' is not a parameter; did you mean '{meant}'?")
                };
                Some(misspelt.iter().map(meant).collect::<Vec<_>>().join(" "))
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

fn list(violations: &[Violation]) -> String {
    violations
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
