//! What hears of every call.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::oneshot;
use toolgate_core::{CallRecord, CallStarted, Observer, ToolError};

use crate::health::Health;
use crate::journal::Shared;
use crate::queue::{Ack, Job, Refused, Waits};
use crate::row::Row;
use crate::{Journal, Sync, line, spool};

/// How long a call waits for its row. After that it goes on, and so do the next ones until the writer is back.
const PATIENCE: Duration = Duration::from_millis(250);
/// The same where every row waits for the disk itself.
const PATIENCE_WITH_DISK: Duration = Duration::from_secs(2);

const TOO_MANY: &str = "more calls than can be written";

/// Records calls: [`Journal::observer`].
#[derive(Clone)]
pub struct JournalObserver {
    /// As long as there is an observer there may be calls: it keeps the journal open.
    pub(crate) journal: Journal,
}

impl JournalObserver {
    pub(crate) fn of(journal: Journal) -> Self {
        Self { journal }
    }

    fn health(&self) -> &Health {
        &self.journal.shared.health
    }

    fn is_witness_of(&self, call: &CallStarted) -> bool {
        self.journal.shared.require.means(call.tool.definition())
    }

    fn patience(&self) -> Duration {
        match self.journal.shared.sync {
            Sync::Relaxed | Sync::Normal => PATIENCE,
            Sync::Full => PATIENCE_WITH_DISK,
        }
    }

    /// The row is on its way when this returns, unless there is no room: a caller that goes away loses nothing.
    fn record(&self, row: Row) -> Option<BoxFuture<'_, ()>> {
        match self.journal.shared.sync {
            Sync::Relaxed => self.put(row, Waits::Nobody, None),
            Sync::Normal => self.spool(row).unwrap_or_else(|row| self.hand_over(row)),
            Sync::Full => self.hand_over(row),
        }
    }

    /// Nobody waits for a row that is in the spool, but for better times where there are too many. It comes back if the spool
    /// can not be used.
    pub(crate) fn spool(&self, row: Row) -> Result<Option<BoxFuture<'_, ()>>, Row> {
        let Shared { queue, spool, .. } = &*self.journal.shared;
        if row.bytes() > spool::LONGEST {
            return Err(row);
        }
        let line = line::of(&row);
        let mut guard = spool::lock(spool);
        let Some(spool) = guard.as_deref_mut().and_then(Option::as_mut) else {
            return Err(row);
        };
        if !spool.append(&line) {
            return Err(row);
        }
        // While nobody else has the spool: the thread must find what is there in the queue as well, or know that it does not.
        match queue.put(Job::Write(row, Waits::Spooled)) {
            Ok(()) => Ok(None),
            Err(Refused::Full(_)) => {
                spool.has_more();
                let waits = !self.health().is_failing();
                Ok(waits.then(|| Box::pin(self.wait_for_space()) as _))
            }
            Err(Refused::Closed) => {
                self.health().loses(1);
                Ok(None)
            }
        }
    }

    /// The thread writes it, and tells its call.
    fn hand_over(&self, row: Row) -> Option<BoxFuture<'_, ()>> {
        let (ack, written) = oneshot::channel();
        self.put(row, Waits::Call(Ack::Task(ack)), Some(written))
    }

    fn put(
        &self,
        row: Row,
        waits: Waits,
        written: Option<oneshot::Receiver<()>>,
    ) -> Option<BoxFuture<'_, ()>> {
        let is_failing = self.health().is_failing();
        match self.journal.shared.queue.put(Job::Write(row, waits)) {
            Ok(()) if is_failing => None,
            Ok(()) => written.map(|written| Box::pin(self.wait(written)) as _),
            Err(Refused::Full(job)) if !self.health().is_broken() => {
                Some(Box::pin(self.squeeze(job, written)))
            }
            Err(_) => {
                self.health().loses(1);
                None
            }
        }
    }

    /// Until the row is on disk, or has been given up.
    async fn wait(&self, written: oneshot::Receiver<()>) {
        if tokio::time::timeout(self.patience(), written)
            .await
            .is_err()
        {
            let reason = "the disk or another process takes long";
            self.health().is_late(&reason);
        }
    }

    /// Until there is room for it.
    async fn squeeze(&self, job: Job, written: Option<oneshot::Receiver<()>>) {
        let put = self.journal.shared.queue.put_when_possible(job);
        match tokio::time::timeout(self.patience(), put).await {
            Ok(Ok(())) => {
                if let Some(written) = written.filter(|_| !self.health().is_failing()) {
                    self.wait(written).await;
                }
            }
            Ok(Err(_)) => self.health().loses(1),
            Err(_) => {
                self.health().loses(1);
                self.health().is_late(&TOO_MANY);
            }
        }
    }

    /// Until there is room for others.
    async fn wait_for_space(&self) {
        let space = self.journal.shared.queue.wait_for_space();
        if tokio::time::timeout(self.patience(), space).await.is_err() {
            self.health().is_late(&TOO_MANY);
        }
    }
}

impl Observer for JournalObserver {
    fn witness<'a>(
        &'a self,
        call: &'a CallStarted,
    ) -> Option<BoxFuture<'a, Result<(), ToolError>>> {
        self.is_witness_of(call)
            .then(|| Box::pin(self.attest(call)) as _)
    }

    fn started<'a>(&'a self, call: &'a CallStarted) -> Option<BoxFuture<'a, ()>> {
        if self.is_witness_of(call) {
            return None; // It is recorded already.
        }
        self.record(Row::started(call, &self.journal.shared.redactor))
    }

    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        self.record(Row::finished(record, &self.journal.shared.redactor))
    }
}
