//! The queue of rows for the writer. Bounded in number and in bytes, and always drained whole.

use std::collections::VecDeque;
use std::fmt;
use std::sync::mpsc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

use crate::row::JournalRow;

pub(crate) const MAX_ROWS: usize = 4096;
pub(crate) const MAX_BYTES: usize = 32 << 20;

// This many rows or bytes are worth a transaction of their own.
const LARGE_BATCH_ROWS: usize = MAX_ROWS / 4;
const LARGE_BATCH_BYTES: usize = MAX_BYTES / 4;
// More than this isn't worth holding until the rows are freed.
const MAX_RECYCLED_BYTES: usize = 4 << 20;

/// Tells a waiter that its row is written. If it is dropped without a message, the row is not.
pub(crate) enum WriteAck {
    Task(oneshot::Sender<()>),
    Thread(mpsc::SyncSender<()>),
}

impl WriteAck {
    pub(crate) fn notify(self) {
        // A waiter that is gone is not an error.
        match self {
            Self::Task(ack) => ack.send(()).ok(),
            Self::Thread(ack) => ack.try_send(()).ok(),
        };
    }
}

pub(crate) enum RowWaiter {
    Call(WriteAck),
    Unacknowledged,
    /// Nobody waits, because the row survives the process in the spool.
    Spooled,
}

pub(crate) enum WriterJob {
    Write(JournalRow, RowWaiter),
    Flush(WriteAck),
    Close(WriteAck),
}

impl WriterJob {
    fn bytes(&self) -> usize {
        match self {
            Self::Write(row, _) => row.bytes(),
            Self::Flush(_) | Self::Close(_) => 0,
        }
    }

    fn can_be_gathered(&self) -> bool {
        matches!(
            self,
            Self::Write(_, RowWaiter::Unacknowledged | RowWaiter::Spooled)
        )
    }
}

#[derive(Default)]
pub(crate) struct RowQueue {
    state: Mutex<QueueState>,
    wakeup: Condvar,
    space: Notify,
}

#[derive(Default)]
struct QueueState {
    jobs: VecDeque<WriterJob>,
    bytes: usize,
    // Written rows, which the threads that put new rows free one by one. See `recycle`.
    recycled: VecDeque<JournalRow>,
    is_closed: bool,
    is_woken: bool,
    is_urgent: bool,
    /// A reader found the file damaged.
    is_damaged: bool,
}

impl QueueState {
    fn is_large(&self) -> bool {
        self.jobs.len() >= LARGE_BATCH_ROWS || self.bytes >= LARGE_BATCH_BYTES
    }
}

impl fmt::Debug for RowQueue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RowQueue").finish_non_exhaustive()
    }
}

pub(crate) enum QueueError {
    Full(WriterJob),
    Closed,
}

impl RowQueue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock()
    }

    /// Adds a job if there is room, and wakes the writer. Jobs that carry no row always have room.
    pub(crate) fn put(&self, job: WriterJob) -> Result<(), QueueError> {
        let bytes = job.bytes();
        let mut state = self.state();
        if state.is_closed {
            return Err(QueueError::Closed);
        }
        let is_row = matches!(job, WriterJob::Write(..));
        let is_full = state.jobs.len() >= MAX_ROWS
            || (state.bytes + bytes > MAX_BYTES && !state.jobs.is_empty());
        if is_row && is_full {
            return Err(QueueError::Full(job));
        }
        let is_urgent = !job.can_be_gathered();
        let was_large = state.is_large();
        state.is_closed = matches!(job, WriterJob::Close(_));
        state.bytes += bytes;
        state.jobs.push_back(job);
        let recycled = state.recycled.pop_front();
        // A writer that gathers rows is woken again only if it should stop gathering.
        let ends_gathering = state.is_large() && !was_large || is_urgent && !state.is_urgent;
        if ends_gathering || !state.is_woken {
            self.wakeup.notify_one();
        }
        state.is_woken = true;
        state.is_urgent |= is_urgent;
        // Freed after the lock is released, so that other calls don't wait for it.
        drop(state);
        drop(recycled);
        Ok(())
    }

    pub(crate) async fn wait_for_space(&self) {
        let mut space = std::pin::pin!(self.space.notified());
        space.as_mut().enable();
        if self.state().is_large() {
            space.await;
        }
    }

    pub(crate) async fn put_when_space(&self, mut job: WriterJob) -> Result<(), QueueError> {
        loop {
            let mut space = std::pin::pin!(self.space.notified());
            space.as_mut().enable();
            match self.put(job) {
                Err(QueueError::Full(again)) => job = again,
                result => return result,
            }
            space.await;
        }
    }

    pub(crate) fn is_urgent(&self) -> bool {
        self.state().is_urgent
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Wakes the writer to check the file.
    pub(crate) fn report_damage(&self) {
        let mut state = self.state();
        (state.is_damaged, state.is_woken) = (true, true);
        self.wakeup.notify_one();
    }

    /// True if damage was reported since the last call.
    pub(crate) fn take_damage(&self) -> bool {
        std::mem::take(&mut self.state().is_damaged)
    }

    /// Waits until all jobs so far are done or `timeout` is over. Blocks the thread.
    pub(crate) fn flush(&self, timeout: Duration) {
        let (done, is_done) = mpsc::sync_channel(1);
        if self.put(WriterJob::Flush(WriteAck::Thread(done))).is_ok() {
            // After the timeout a reader reads what is already written.
            is_done.recv_timeout(timeout).ok();
        }
    }

    /// Waits until there is a job or `timeout` is over. If nobody waits for a row, then waits for
    /// up to `gather_time` more, so that several rows share a transaction.
    pub(crate) fn wait(&self, timeout: Duration, gather_time: Duration) {
        let mut state = self.state();
        self.wakeup
            .wait_while_for(&mut state, |state| !state.is_woken, timeout);
        if state.is_woken {
            let can_gather = |state: &mut QueueState| !state.is_urgent && !state.is_large();
            self.wakeup
                .wait_while_for(&mut state, can_gather, gather_time);
        }
    }

    /// Moves all jobs into an empty buffer, which the queue fills next. Both
    /// buffers keep their capacity.
    pub(crate) fn drain_into(&self, jobs: &mut VecDeque<WriterJob>) {
        debug_assert!(jobs.is_empty());
        let mut state = self.state();
        let was_large = state.is_large();
        std::mem::swap(&mut state.jobs, jobs);
        state.bytes = 0;
        (state.is_woken, state.is_urgent) = (false, false);
        drop(state);
        if was_large {
            self.space.notify_waiters();
        }
    }

    /// Hands written rows to the threads that put new ones, and leaves `rows` empty.
    ///
    /// Memory that one thread allocates and another frees costs several times as much. So the
    /// threads that make new rows free the written ones, and this only frees those that are left
    /// of the previous batch.
    pub(crate) fn recycle(&self, rows: &mut VecDeque<JournalRow>, bytes: usize) {
        if bytes > MAX_RECYCLED_BYTES {
            rows.clear();
        }
        std::mem::swap(&mut self.state().recycled, rows);
        rows.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flush() -> WriterJob {
        WriterJob::Flush(WriteAck::Task(oneshot::channel().0))
    }

    fn row() -> WriterJob {
        WriterJob::Write(JournalRow::sample(), RowWaiter::Unacknowledged)
    }

    fn take(queue: &RowQueue) -> usize {
        let mut jobs = VecDeque::new();
        queue.drain_into(&mut jobs);
        jobs.len()
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_takes_a_row_once_there_is_room() {
        let queue = RowQueue::default();
        for _ in 0..MAX_ROWS {
            assert!(queue.put(row()).is_ok());
        }
        assert!(matches!(queue.put(row()), Err(QueueError::Full(_))));
        assert!(queue.put(flush()).is_ok(), "a flush always has room");
        let late = queue.put_when_space(row());
        let mut late = std::pin::pin!(late);
        let timeout = Duration::from_secs(1);
        assert!(tokio::time::timeout(timeout, &mut late).await.is_err());
        assert_eq!(take(&queue), MAX_ROWS + 1);
        let put = tokio::time::timeout(timeout, late).await;
        assert!(matches!(put, Ok(Ok(()))));
        assert_eq!(take(&queue), 1);
    }

    #[test]
    fn written_rows_are_freed_one_by_one_or_all_at_once() {
        let queue = RowQueue::default();
        let mut rows: VecDeque<JournalRow> = (0..3).map(|_| JournalRow::sample()).collect();
        queue.recycle(&mut rows, 3);
        assert!(queue.put(row()).is_ok());
        assert_eq!((queue.state().recycled.len(), rows.len()), (2, 0));
        queue.recycle(&mut rows, 0);
        assert_eq!((queue.state().recycled.len(), rows.len()), (0, 0));
        rows.push_back(JournalRow::sample());
        queue.recycle(&mut rows, MAX_RECYCLED_BYTES + 1);
        assert_eq!((queue.state().recycled.len(), rows.len()), (0, 0));
    }

    #[tokio::test]
    async fn a_closed_queue_accepts_nothing() {
        let queue = RowQueue::default();
        assert!(
            queue
                .put(WriterJob::Close(WriteAck::Task(oneshot::channel().0)))
                .is_ok()
        );
        assert!(matches!(queue.put(row()), Err(QueueError::Closed)));
        assert!(matches!(
            queue.put_when_space(row()).await,
            Err(QueueError::Closed)
        ));
        assert_eq!(take(&queue), 1);
    }
}
