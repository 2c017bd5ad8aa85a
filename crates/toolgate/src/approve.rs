//! Approval by the person at the terminal.

use std::io::{BufRead, IsTerminal};

use futures::future::BoxFuture;
use toolgate_core::{Approval, ApprovalRequest, Approver, Redactor};

use crate::say;
use crate::spinner::Spinner;

/// Asks on stderr and reads the answer from stdin, if both are a terminal.
pub(crate) struct TerminalApprover {
    /// `--yes`: the person has agreed beforehand.
    pub(crate) agreed: bool,
    /// Turns while the call waits, and must not turn over the question.
    pub(crate) spinner: Spinner,
}

impl Approver for TerminalApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            if self.agreed {
                return Approval::Granted;
            }
            if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
                return Approval::Nobody;
            }
            let name = toolgate_core::escape(request.tool.name());
            let arguments = Redactor::default().json(request.arguments, 1000);
            self.spinner.hide();
            say::note(&format!("{name} {arguments}\nRun it? [y/N]"));
            // The read can not be called off; when the wait is over, the program ends without it.
            let answer = tokio::task::spawn_blocking(answer).await;
            if answer.unwrap_or(false) {
                Approval::Granted
            } else {
                Approval::Refused
            }
        })
    }
}

fn answer() -> bool {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.is_ok() && matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}
