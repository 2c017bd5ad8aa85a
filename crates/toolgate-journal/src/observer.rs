//! What hears of every call.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::oneshot;
use toolgate_core::{CallRecord, CallStarted, Observer};

use crate::health::Health;
use crate::queue::{Job, Refused};
use crate::row::Row;
use crate::{Journal, Sync};

/// How long a call waits for its row. After that it goes on, and so do the next ones until the writer is back.
const PATIENCE: Duration = Duration::from_millis(250);

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

    /// The row is on its way when this returns, unless there is no room: a caller that goes away loses nothing.
    fn record(&self, row: Row) -> Option<BoxFuture<'_, ()>> {
        let (ack, written) = match self.journal.shared.sync {
            Sync::Relaxed => (None, None),
            Sync::Normal | Sync::Full => {
                let (ack, written) = oneshot::channel();
                (Some(ack), Some(written))
            }
        };
        match self.journal.shared.queue.put(Job::Write(row, ack)) {
            Ok(()) if self.health().is_failing() => None,
            Ok(()) => written.map(|written| Box::pin(self.wait(written)) as BoxFuture<'_, ()>),
            Err(Refused::Full(job)) if !self.health().is_failing() => {
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
        if tokio::time::timeout(PATIENCE, written).await.is_err() {
            self.health()
                .fails(&"the disk or another process takes long");
        }
    }

    /// Until there is room for it.
    async fn squeeze(&self, job: Job, written: Option<oneshot::Receiver<()>>) {
        match tokio::time::timeout(PATIENCE, self.journal.shared.queue.put_when_possible(job)).await
        {
            Ok(Ok(())) => {
                if let Some(written) = written {
                    self.wait(written).await;
                }
            }
            Ok(Err(_)) => self.health().loses(1),
            Err(_) => {
                self.health().loses(1);
                self.health().fails(&"more calls than can be written");
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
