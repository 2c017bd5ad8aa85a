//! Spoken approvals for the voice gateway.

use futures::future::BoxFuture;
use toolgate_core::{Approval, ApprovalRequest, Approver};
use toolgate_voice::SpokenApprovals;

use super::TerminalApprover;

/// Asks aloud, and at the terminal when a question can't be spoken.
pub(crate) struct AloudApprover {
    pub(crate) spoken: SpokenApprovals,
    pub(crate) terminal: TerminalApprover,
}

impl Approver for AloudApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            if !self.terminal.agreed {
                match self.spoken.ask(request).await {
                    Approval::Nobody => {}
                    answer => return answer,
                }
            }
            self.terminal.ask(request).await
        })
    }
}
