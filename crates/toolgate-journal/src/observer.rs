//! What hears of every call.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::oneshot;
use toolgate_core::{CallRecord, CallStarted, Observer};

use crate::health::Health;
use crate::journal::Shared;
use crate::queue::{Ack, Job, Refused, Waits};
use crate::row::Row;
use crate::{Journal, Sync, line, spool};

/// How long a call waits for its row. After that it goes on, and so do the next ones until the writer is back.
const PATIENCE: Duration = Duration::from_millis(250);
/// The same where every row waits for the disk itself.
const PATIENCE_WITH_DISK: Duration = Duration::from_secs(2);

/// Records calls: [`Journal::observer`].
#[derive(Clone)]
pub struct JournalObserver {
    /// As long as there is an observer there may be calls: it keeps the journal open.
    journal: Journal,
}

impl JournalObserver {
    pub(crate) fn of(journal: Journal) -> Self {
        Self { journal }
    }

    fn health(&self) -> &Health {
        &self.journal.shared.health
    }

    fn patience(&self) -> Duration {
        match self.journal.shared.sync {
            Sync::Relaxed | Sync::Normal => PATIENCE,
            Sync::Full => PATIENCE_WITH_DISK,
        }
    }

    /// The row is on its way when this returns, unless there is no room: a caller that goes away loses nothing.
    fn record(&self, row: Row) -> Option<BoxFuture<'_, ()>> {
        let Shared { sync, queue, .. } = &*self.journal.shared;
        let is_failing = self.health().is_failing();
        let (put, written) = match sync {
            Sync::Relaxed => (queue.put(Job::Write(row, Waits::Nobody)), None),
            Sync::Normal => self.spool(row),
            Sync::Full => self.hand_over(row),
        };
        match put {
            Ok(()) if is_failing => None,
            Ok(()) => written.map(|written| Box::pin(self.wait(written)) as _),
            Err(Refused::Full(job)) if !self.health().is_broken() => {
                Some(Box::pin(self.squeeze(job)))
            }
            Err(_) => {
                self.health().loses(1);
                None
            }
        }
    }

    /// Nobody waits for a row that is in the spool.
    fn spool(&self, row: Row) -> (Result<(), Refused>, Option<oneshot::Receiver<()>>) {
        let Shared { queue, spool, .. } = &*self.journal.shared;
        let line = line::of(&row);
        let mut guard = spool::lock(spool);
        let spool = guard.as_deref_mut().and_then(Option::as_mut);
        if spool.is_some_and(|spool| spool.append(&line)) {
            // While others can not append: the thread must find all rows in the queue that it finds in the spool.
            return (queue.put(Job::Write(row, Waits::Spooled)), None);
        }
        drop(guard);
        self.hand_over(row)
    }

    /// The thread writes it, and tells its call.
    fn hand_over(&self, row: Row) -> (Result<(), Refused>, Option<oneshot::Receiver<()>>) {
        let (ack, written) = oneshot::channel();
        let job = Job::Write(row, Waits::Call(Ack::Task(ack)));
        (self.journal.shared.queue.put(job), Some(written))
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
    async fn squeeze(&self, job: Job) {
        let Shared { sync, queue, .. } = &*self.journal.shared;
        let (ack, written) = oneshot::channel();
        let job = match job {
            // The spool may be empty by the time there is room.
            Job::Write(row, _) if *sync != Sync::Relaxed => {
                Job::Write(row, Waits::Call(Ack::Task(ack)))
            }
            job => job,
        };
        match tokio::time::timeout(self.patience(), queue.put_when_possible(job)).await {
            Ok(Ok(())) if *sync != Sync::Relaxed && !self.health().is_failing() => {
                self.wait(written).await;
            }
            Ok(Ok(())) => {}
            Ok(Err(_)) => self.health().loses(1),
            Err(_) => {
                self.health().loses(1);
                self.health().is_late(&"more calls than can be written");
            }
        }
    }
}

impl Observer for JournalObserver {
    fn started<'a>(&'a self, call: &'a CallStarted) -> Option<BoxFuture<'a, ()>> {
        self.record(Row::started(call, &self.journal.shared.redactor))
    }

    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        self.record(Row::finished(record, &self.journal.shared.redactor))
    }
}
