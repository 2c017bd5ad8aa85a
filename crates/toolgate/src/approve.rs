//! Asks a person to approve calls: at the terminal here, aloud in `spoken`, in an
//! MCP client in `client`.

mod client;
#[cfg(feature = "voice")]
mod spoken;

use futures::future::{BoxFuture, Either, select};
use toolgate_core::text::escape_for_review;
use toolgate_core::{
    Approval, ApprovalActor, ApprovalChannel, ApprovalReason, ApprovalRequest, Approver, Origin,
    Redactor, ToolSource,
};

pub(crate) use client::ClientApprover;
#[cfg(any(feature = "chat", feature = "serve"))]
pub(crate) use client::ClientFirstApprover;
#[cfg(feature = "voice")]
pub(crate) use spoken::AloudApprover;

use crate::spinner::Spinner;
use crate::{output, questions, terminal};

pub(crate) struct TerminalApprover {
    /// Set by `--yes`: approves every call without asking.
    pub(crate) agreed: bool,
    // Paused during a question, which it would draw over.
    pub(crate) spinner: Spinner,
    pub(crate) redactor: Redactor,
}

impl Approver for TerminalApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            if self.agreed {
                return Approval::Granted(ApprovalActor::new(ApprovalChannel::Flag));
            }
            // A background process that reads from its terminal would be stopped.
            if !terminal::can_ask() || !terminal::is_foreground() {
                return Approval::Nobody;
            }
            let text = format!("{} [y/N]", question_text(&request, &self.redactor));
            let answer = questions::ask(&self.spinner, move |line| {
                output::print_to_stderr(&text);
                questions::is_yes(line().as_deref())
            });
            let by = ApprovalActor::new(ApprovalChannel::Terminal);
            match answer.await.unwrap_or(false) {
                true => Approval::Granted(by),
                false => Approval::Refused(by),
            }
        })
    }
}

/// Shows the call in full: the executor never asks about arguments that are too long to show.
fn question_text(request: &ApprovalRequest<'_>, redactor: &Redactor) -> String {
    let arguments = escape_for_review(&redactor.value(request.arguments).to_string());
    let name = escape_for_review(request.tool.name());
    let from = match request.tool.source() {
        ToolSource::Mcp(server) => format!("of the server '{}'", escape_for_review(server)),
        other => other.to_string(),
    };
    let by = asker(request);
    let why = match request.reason {
        ApprovalReason::Policy => String::new(),
        reason => format!("{reason}\n"),
    };
    // The name comes again at the end, because long arguments may push the first line off the
    // screen.
    format!("{name} ({from}{by}) {arguments}\n{why}Run {name}?")
}

/// Waits for the first answer to a question that two approvers ask at the same time.
pub(crate) async fn first_answer(
    one: BoxFuture<'_, Approval>,
    other: BoxFuture<'_, Approval>,
) -> Approval {
    match select(one, other).await {
        Either::Left((Approval::Nobody, rest)) | Either::Right((Approval::Nobody, rest)) => {
            rest.await
        }
        Either::Left((answer, _)) | Either::Right((answer, _)) => answer,
    }
}

fn asker(request: &ApprovalRequest<'_>) -> String {
    match (request.origin, request.caller) {
        (Origin::CommandLine, None) => String::new(),
        (origin, None) => format!(", asked by {origin}"),
        (origin, Some(caller)) => format!(", asked by {origin} '{}'", escape_for_review(caller)),
    }
}
