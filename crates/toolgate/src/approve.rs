//! Approval by the person at the terminal.

use std::io::{BufRead, IsTerminal};

use futures::future::BoxFuture;
use toolgate_core::{Approval, ApprovalRequest, Approver, Redactor};

use crate::say;

/// Asks on stderr and reads the answer from stdin, if both are a terminal.
pub(crate) struct TerminalApprover {
    /// `--yes`: the person has agreed beforehand.
    pub(crate) agreed: bool,
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
            say::note(&format!("{name} {arguments}\nRun it? [y/N]"));
            // The read can not be called off; when the wait is over, the program ends without it.
            match tokio::task::spawn_blocking(answer).await {
                Ok(true) => Approval::Granted,
                _ => Approval::Refused,
            }
        })
    }
}

fn answer() -> bool {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.is_ok() && matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}
