//! What hears of every call.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::oneshot;
use toolgate_core::{CallRecord, CallStarted, Observer};

use crate::health::Health;
use crate::journal::Shared;
use crate::queue::{Job, Queue, Refused};
use crate::row::Row;
use crate::{Journal, Sync, writer};

/// How long a call waits for its row. After that it goes on, and so do the next ones until the writer is back.
const PATIENCE: Duration = Duration::from_millis(250);
/// The same where every row waits for the disk itself.
const PATIENCE_WITH_DISK: Duration = Duration::from_secs(2);

/// A row of fewer bytes is written on the spot where nothing stands in the way: that takes some ten microseconds, less than to
/// wake a thread and be woken by it.
const QUICK: usize = 16 << 10;

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
        let is_quick = *sync == Sync::Normal && row.bytes() < QUICK;
        let (ack, written) = match sync {
            Sync::Relaxed => (None, None),
            Sync::Normal | Sync::Full => {
                let (ack, written) = oneshot::channel();
                (Some(ack), Some(written))
            }
        };
        let is_failing = self.health().is_failing();
        match queue.put(Job::Write(row, ack)) {
            Ok(()) if is_failing => {
                queue.call();
                None
            }
            Ok(()) if is_quick => written.map(|written| Box::pin(self.write(written)) as _),
            Ok(()) => {
                queue.call();
                written.map(|written| Box::pin(self.wait(written)) as _)
            }
            Err(Refused::Full(job)) if !self.health().is_broken() => {
                Some(Box::pin(self.squeeze(job, written)))
            }
            Err(_) => {
                self.health().loses(1);
                None
            }
        }
    }

    /// Writes all that waits, unless somebody else did meanwhile.
    async fn write(&self, mut written: oneshot::Receiver<()>) {
        let Shared { queue, writer, .. } = &*self.journal.shared;
        // Should nobody poll this to its end, the thread has to do it.
        let unattended = CallThread(queue);
        // Whoever is about to have a row as well gets a chance to add it.
        tokio::task::yield_now().await;
        if written.try_recv().is_err() {
            writer::write_at_once(writer, queue);
        }
        std::mem::forget(unattended);
        if !written.is_terminated() && written.try_recv().is_err() {
            self.wait(written).await;
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
                self.health().is_late(&"more calls than can be written");
            }
        }
    }
}

/// Calls the thread when it is dropped.
struct CallThread<'a>(&'a Queue);

impl Drop for CallThread<'_> {
    fn drop(&mut self) {
        self.0.call();
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
