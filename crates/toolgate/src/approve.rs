//! Approval by the person at the terminal, or in the room.

#[cfg(feature = "voice")]
mod aloud;

use futures::future::BoxFuture;
use toolgate_core::{
    Approval, ApprovalBy, ApprovalMeans, ApprovalReason, ApprovalRequest, Approver, Origin,
    Redactor, Source, reveal,
};

#[cfg(feature = "voice")]
pub(crate) use aloud::AloudApprover;

use crate::spinner::Spinner;
use crate::{questions, say, terminal};

pub(crate) struct TerminalApprover {
    /// `--yes`: the person has agreed beforehand.
    pub(crate) agreed: bool,
    /// Turns while the call waits, and must not turn over the question.
    pub(crate) spinner: Spinner,
    pub(crate) redactor: Redactor,
}

impl Approver for TerminalApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            if self.agreed {
                return Approval::Granted(ApprovalBy::new(ApprovalMeans::Option));
            }
            if !terminal::can_ask() || !terminal::is_ours() {
                return Approval::Nobody;
            }
            // All of the arguments: the executor lets nobody be asked about more than a person can be shown.
            let arguments = reveal(&self.redactor.value(request.arguments).to_string());
            let name = reveal(request.tool.name());
            let from = match request.tool.source() {
                Source::Mcp(server) => format!("of the server '{}'", reveal(server)),
                other => other.to_string(),
            };
            // The name once more: the arguments may fill the screen.
            let by = asker(&request);
            let why = match request.reason {
                ApprovalReason::Policy => String::new(),
                reason => format!("{reason}\n"),
            };
            let text = format!("{name} ({from}{by}) {arguments}\n{why}Run {name}? [y/N]");
            let answer = questions::ask(&self.spinner, move |line| {
                say::line(&text);
                questions::is_yes(line().as_deref())
            });
            let by = ApprovalBy::new(ApprovalMeans::Terminal);
            match answer.await.unwrap_or(false) {
                true => Approval::Granted(by),
                false => Approval::Refused(by),
            }
        })
    }
}

/// Who asks, unless it is the person who is asked.
fn asker(request: &ApprovalRequest<'_>) -> String {
    match (request.origin, request.caller) {
        (Origin::CommandLine, None) => String::new(),
        (origin, None) => format!(", asked by {origin}"),
        (origin, Some(caller)) => format!(", asked by {origin} '{}'", reveal(caller)),
    }
}
