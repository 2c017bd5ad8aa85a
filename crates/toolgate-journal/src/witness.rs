//! Calls that must not run unless they are recorded.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::oneshot;
use toolgate_core::{CallRecord, CallStarted, Observer, ToolDefinition, ToolError};

use crate::queue::{Ack, Job, Waits};
use crate::row::Row;
use crate::{JournalHealth, JournalObserver, JournalSettings, Require, Sync};

/// How long such a call waits for its row; then it is refused.
const PATIENCE: Duration = Duration::from_secs(2);

impl Require {
    /// A tool that says nothing of its effects is not meant: that would be nearly all of them.
    pub(crate) fn means(self, tool: &ToolDefinition) -> bool {
        match self {
            Self::Nothing => false,
            Self::Destructive => tool.annotations().destructive == Some(true),
        }
    }
}

impl JournalObserver {
    /// Records that a call begins. An error is why that is not sure.
    pub(crate) async fn attest(&self, call: &CallStarted) -> Result<(), ToolError> {
        let shared = &*self.journal.shared;
        let row = Row::started(call, &shared.redactor);
        let spooled = match shared.sync {
            Sync::Normal => self.spool(row),
            Sync::Relaxed | Sync::Full => Err(row),
        };
        let is_recorded = match spooled {
            Ok(crowd) => {
                if let Some(crowd) = crowd {
                    crowd.await;
                }
                // The end of the journal takes the spool with it.
                !shared.queue.is_closed()
            }
            Err(row) => tokio::time::timeout(PATIENCE, self.written(row))
                .await
                .unwrap_or(false),
        };
        if is_recorded {
            return Ok(());
        }
        let reason = match self.journal.health() {
            JournalHealth::Failing { error, .. } => error,
            JournalHealth::Ok { .. } => "the disk or another process takes long".to_owned(),
        };
        Err(refusal(call, &reason))
    }

    /// True once the row is in the database.
    async fn written(&self, row: Row) -> bool {
        let (ack, written) = oneshot::channel();
        let job = Job::Write(row, Waits::Call(Ack::Task(ack)));
        let queue = &self.journal.shared.queue;
        queue.put_when_possible(job).await.is_ok() && written.await.is_ok()
    }
}

fn refusal(call: &CallStarted, reason: &str) -> ToolError {
    let text = "what it does may not be undone, and the call can not be recorded, so it was not made; 'toolgate doctor' tells what is wrong with the journal";
    ToolError::unavailable(&call.tool_name, text).with_details(reason)
}

/// Stands where a journal should be that could not be opened: calls run unrecorded, but for those that must not.
///
/// ```
/// use toolgate_journal::{JournalSettings, NoJournal};
///
/// let none = NoJournal::new(&JournalSettings::default(), "there is no place for it");
/// assert_eq!(none.problem(), "there is no place for it");
/// ```
#[derive(Debug, Clone)]
pub struct NoJournal {
    require: Require,
    problem: Arc<str>,
}

impl NoJournal {
    /// `problem` says why there is none.
    pub fn new(settings: &JournalSettings, problem: impl Into<Arc<str>>) -> Self {
        Self {
            require: settings.require,
            problem: problem.into(),
        }
    }

    /// Why there is none.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl Observer for NoJournal {
    fn witness<'a>(
        &'a self,
        call: &'a CallStarted,
    ) -> Option<BoxFuture<'a, Result<(), ToolError>>> {
        let is_meant = self.require.means(call.tool.definition());
        is_meant.then(|| Box::pin(async { Err(refusal(call, &self.problem)) }) as _)
    }

    fn finished<'a>(&'a self, _: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        None
    }
}
