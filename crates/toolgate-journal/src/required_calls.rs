//! Calls that must not run unless they are recorded first.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::oneshot;
use toolgate_core::{CallRecord, CallStarted, Observer, ToolDefinition, ToolError};

use crate::observer::SLOW;
use crate::queue::{RowWaiter, WriteAck, WriterJob};
use crate::row::JournalRow;
use crate::{JournalHealth, JournalObserver, JournalSettings, RecordRequirement, SyncMode};

// After this time the call is refused.
const RECORD_TIMEOUT: Duration = Duration::from_secs(2);

impl RecordRequirement {
    // Tools that don't declare whether they are destructive don't count: that would be nearly all
    // of them.
    pub(crate) fn applies_to(self, tool: &ToolDefinition) -> bool {
        match self {
            Self::Nothing => false,
            Self::Destructive => tool.annotations().destructive == Some(true),
        }
    }
}

impl JournalObserver {
    /// Records the start of a call. Fails unless it is certain that the start is recorded.
    pub(crate) async fn record_start(&self, call: &CallStarted) -> Result<(), ToolError> {
        let shared = &*self.journal.shared;
        let row = JournalRow::started(call, &shared.redactor);
        let spooled = match shared.sync {
            SyncMode::Normal => self.spool(row),
            SyncMode::Relaxed | SyncMode::Full => Err(row),
        };
        let is_recorded = match spooled {
            Ok(space) => {
                if let Some(space) = space {
                    space.await;
                }
                // Closing the journal removes the spool.
                !shared.queue.is_closed()
            }
            Err(row) => tokio::time::timeout(RECORD_TIMEOUT, self.write_and_wait(row))
                .await
                .unwrap_or(false),
        };
        if is_recorded {
            return Ok(());
        }
        let reason = match self.journal.health() {
            JournalHealth::Failing { error, .. } => error,
            JournalHealth::Ok { .. } => SLOW.to_owned(),
        };
        Err(refusal_error(call, &reason))
    }

    async fn write_and_wait(&self, row: JournalRow) -> bool {
        let (ack, written) = oneshot::channel();
        let job = WriterJob::Write(row, RowWaiter::Call(WriteAck::Task(ack)));
        let queue = &self.journal.shared.queue;
        queue.put_when_space(job).await.is_ok() && written.await.is_ok()
    }
}

fn refusal_error(call: &CallStarted, reason: &str) -> ToolError {
    let text = "its effects can't be undone and the call can't be recorded, so it was not made; 'toolgate doctor' says what is wrong with the journal";
    ToolError::unavailable(&call.tool_name, text).with_details(reason)
}

/// Replaces a journal that couldn't be opened. Calls run unrecorded, except those that
/// [`RecordRequirement`] names: those are refused.
#[derive(Debug, Clone)]
pub struct UnavailableJournal {
    require: RecordRequirement,
    problem: Arc<str>,
}

impl UnavailableJournal {
    /// `problem` says why the journal is missing.
    pub fn new(settings: &JournalSettings, problem: impl Into<Arc<str>>) -> Self {
        Self {
            require: settings.require,
            problem: problem.into(),
        }
    }

    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl Observer for UnavailableJournal {
    fn before_start<'a>(
        &'a self,
        call: &'a CallStarted,
    ) -> Option<BoxFuture<'a, Result<(), ToolError>>> {
        let applies = self.require.applies_to(call.tool.definition());
        applies.then(|| Box::pin(async { Err(refusal_error(call, &self.problem)) }) as _)
    }

    fn finished<'a>(&'a self, _: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        None
    }
}
