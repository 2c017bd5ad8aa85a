//! Approval by the person at the terminal.

use std::io::{BufRead, IsTerminal};

use futures::future::BoxFuture;
use toolgate_core::{Approval, ApprovalRequest, Approver, Redactor, escape};

use crate::say;
use crate::spinner::Spinner;

/// Asks on stderr and reads the answer from stdin, if both are a terminal.
pub(crate) struct TerminalApprover {
    /// `--yes`: the person has agreed beforehand.
    pub(crate) agreed: bool,
    /// Turns while the call waits, and must not turn over the question.
    pub(crate) spinner: Spinner,
    /// Takes secrets out of the question.
    pub(crate) redactor: Redactor,
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
            // All of the arguments, however long: nobody should agree to what can not be seen.
            let arguments = escape(&self.redactor.value(request.arguments).to_string());
            self.spinner.pause();
            say::line(&format!(
                "{} {arguments}\nRun it? [y/N]",
                escape(request.tool.name())
            ));
            // The read can not be called off; when the wait is over, the program ends without it.
            let answer = tokio::task::spawn_blocking(answer).await;
            self.spinner.resume();
            if answer.unwrap_or(false) {
                Approval::Granted
            } else {
                Approval::Refused
            }
        })
    }
}

/// True if the next line on stdin is a yes.
pub(crate) fn answer() -> bool {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.is_ok() && matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}
