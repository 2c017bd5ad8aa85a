//! The observer that records every call.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::oneshot;
use toolgate_core::{CallId, CallRecord, CallStarted, Observer, RemoteTask, ToolError};

use crate::health::HealthMonitor;
use crate::journal::JournalInner;
use crate::queue::{QueueError, RowWaiter, WriteAck, WriterJob};
use crate::row::JournalRow;
use crate::{Journal, SyncMode, checksummed_line, spool};

// How long a call waits for its row to be written. After that it continues, and the next calls
// don't wait at all until the writer has recovered.
const WRITE_TIMEOUT: Duration = Duration::from_millis(250);
// Longer where every row waits for a disk sync.
const SYNC_WRITE_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) const SLOW: &str = "the disk is slow, or another process holds the journal";
const TOO_MANY: &str = "calls come faster than they can be written";

/// The observer that records calls. See [`Journal::observer`].
#[derive(Clone)]
pub struct JournalObserver {
    // An observer keeps the journal open, because more calls may follow.
    pub(crate) journal: Journal,
}

impl JournalObserver {
    pub(crate) fn new(journal: Journal) -> Self {
        Self { journal }
    }

    fn health(&self) -> &HealthMonitor {
        &self.journal.shared.health
    }

    fn must_record(&self, call: &CallStarted) -> bool {
        self.journal
            .shared
            .require
            .applies_to(call.tool.definition())
    }

    fn write_timeout(&self) -> Duration {
        match self.journal.shared.sync {
            SyncMode::Relaxed | SyncMode::Normal => WRITE_TIMEOUT,
            SyncMode::Full => SYNC_WRITE_TIMEOUT,
        }
    }

    /// Queues the row before it returns, unless the queue is full, so nothing is lost if the caller
    /// drops the future. The future waits until the row is safe.
    fn record(&self, row: JournalRow) -> Option<BoxFuture<'_, ()>> {
        match self.journal.shared.sync {
            SyncMode::Relaxed => self.put(row, RowWaiter::Unacknowledged, None),
            SyncMode::Normal => self
                .spool(row)
                .unwrap_or_else(|row| self.hand_to_writer(row)),
            SyncMode::Full => self.hand_to_writer(row),
        }
    }

    /// Appends the row to the spool. The future, if any, waits for space in the queue. Gives the
    /// row back if the spool can't be used.
    pub(crate) fn spool(&self, row: JournalRow) -> Result<Option<BoxFuture<'_, ()>>, JournalRow> {
        let JournalInner { queue, spool, .. } = &*self.journal.shared;
        if row.bytes() > spool::MAX_ROW_BYTES {
            return Err(row);
        }
        let line = checksummed_line::encode(&row);
        let mut guard = spool::try_lock(spool);
        let Some(spool) = guard.as_deref_mut().and_then(Option::as_mut) else {
            return Err(row);
        };
        if !spool.append(&line) {
            return Err(row);
        }
        // Still under the spool's lock, because the writer relies on this: rows of the spool are in
        // the queue too, or the spool says that some aren't.
        match queue.put(WriterJob::Write(row, RowWaiter::Spooled)) {
            Ok(()) => Ok(None),
            Err(QueueError::Full(_)) => {
                spool.mark_unqueued();
                let waits = !self.health().is_failing();
                Ok(waits.then(|| Box::pin(self.wait_for_space()) as _))
            }
            Err(QueueError::Closed) => {
                self.health().add_lost(1);
                Ok(None)
            }
        }
    }

    /// Writes a row that is not a call's own. Returns once it is safe, or after a time limit.
    pub(crate) async fn write(self, row: JournalRow) {
        if let Some(written) = self.hand_to_writer(row) {
            written.await;
        }
    }

    fn hand_to_writer(&self, row: JournalRow) -> Option<BoxFuture<'_, ()>> {
        let (ack, written) = oneshot::channel();
        self.put(row, RowWaiter::Call(WriteAck::Task(ack)), Some(written))
    }

    fn put(
        &self,
        row: JournalRow,
        waits: RowWaiter,
        written: Option<oneshot::Receiver<()>>,
    ) -> Option<BoxFuture<'_, ()>> {
        let is_failing = self.health().is_failing();
        match self.journal.shared.queue.put(WriterJob::Write(row, waits)) {
            Ok(()) if is_failing => None,
            Ok(()) => written.map(|written| Box::pin(self.wait(written)) as _),
            Err(QueueError::Full(job)) if !self.health().is_broken() => {
                Some(Box::pin(self.put_with_timeout(job, written)))
            }
            Err(_) => {
                self.health().add_lost(1);
                None
            }
        }
    }

    async fn wait(&self, written: oneshot::Receiver<()>) {
        self.with_timeout(written, SLOW).await;
    }

    async fn with_timeout<T>(&self, work: impl Future<Output = T>, reason: &str) -> Option<T> {
        let done = tokio::time::timeout(self.write_timeout(), work).await;
        if done.is_err() {
            self.health().record_delay(&reason);
        }
        done.ok()
    }

    async fn put_with_timeout(&self, job: WriterJob, written: Option<oneshot::Receiver<()>>) {
        let put = self.journal.shared.queue.put_when_space(job);
        match self.with_timeout(put, TOO_MANY).await {
            Some(Ok(())) => {
                if let Some(written) = written.filter(|_| !self.health().is_failing()) {
                    self.wait(written).await;
                }
            }
            Some(Err(_)) | None => self.health().add_lost(1),
        }
    }

    async fn wait_for_space(&self) {
        let space = self.journal.shared.queue.wait_for_space();
        self.with_timeout(space, TOO_MANY).await;
    }
}

impl Observer for JournalObserver {
    fn before_start<'a>(
        &'a self,
        call: &'a CallStarted,
    ) -> Option<BoxFuture<'a, Result<(), ToolError>>> {
        self.must_record(call)
            .then(|| Box::pin(self.record_start(call)) as _)
    }

    fn started<'a>(&'a self, call: &'a CallStarted) -> Option<BoxFuture<'a, ()>> {
        if self.must_record(call) {
            return None; // It is recorded already.
        }
        self.record(JournalRow::started(call, &self.journal.shared.redactor))
    }

    fn became_task(&self, call: CallId, task: &RemoteTask) {
        self.journal.announce_task(call, task);
    }

    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        if record.left_to_server {
            return None; // The process that continues it records how it ends.
        }
        self.journal.end_task(record.outcome.call_id);
        self.record(JournalRow::finished(record, &self.journal.shared.redactor))
    }
}
