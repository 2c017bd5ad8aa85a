//! Rows on their way to the thread that writes: bounded by number and by size, taken all at once.

use std::collections::VecDeque;
use std::fmt;
use std::sync::mpsc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

use crate::row::Row;

/// More rows than this wait nowhere.
pub(crate) const MOST_ROWS: usize = 4096;
pub(crate) const MOST_BYTES: usize = 32 << 20;

/// So many rows, or a part of the bytes, are worth a transaction of their own.
const MANY_ROWS: usize = MOST_ROWS / 4;
const MANY_BYTES: usize = MOST_BYTES / 4;
/// Written rows of more bytes than this are not worth keeping until somebody frees them.
const MOST_SPENT_BYTES: usize = 4 << 20;

/// Someone who waits until a row is written. Dropped without an answer, it was not.
pub(crate) enum Ack {
    Task(oneshot::Sender<()>),
    Thread(mpsc::SyncSender<()>),
}

impl Ack {
    pub(crate) fn tell(self) {
        // Whoever no longer waits does not mind.
        match self {
            Self::Task(ack) => ack.send(()).ok(),
            Self::Thread(ack) => ack.try_send(()).ok(),
        };
    }
}

/// Who waits until a row is in the database.
pub(crate) enum Waits {
    Call(Ack),
    /// Nobody, and it may be lost with the process.
    Nobody,
    /// Nobody: it survives the process in the spool.
    Spooled,
}

/// What is asked of the thread that writes.
pub(crate) enum Job {
    Write(Row, Waits),
    /// Answers when all before it is written.
    Flush(Ack),
    /// The last job there is.
    Close(Ack),
}

impl Job {
    fn bytes(&self) -> usize {
        match self {
            Self::Write(row, _) => row.bytes(),
            Self::Flush(_) | Self::Close(_) => 0,
        }
    }

    fn has_time(&self) -> bool {
        matches!(self, Self::Write(_, Waits::Nobody | Waits::Spooled))
    }
}

#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    called: Condvar,
    space: Notify,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    bytes: usize,
    /// Rows that are written; whoever puts in the next ones frees them.
    spent: VecDeque<Row>,
    is_closed: bool,
    /// The thread has something to do.
    is_called: bool,
    is_urgent: bool,
    /// Someone who reads the file found it damaged.
    is_damaged: bool,
}

impl State {
    fn is_much(&self) -> bool {
        self.jobs.len() >= MANY_ROWS || self.bytes >= MANY_BYTES
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Queue").finish_non_exhaustive()
    }
}

/// Why a job was not taken; it comes back.
pub(crate) enum Refused {
    Full(Job),
    Closed,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Takes a job if there is room, and calls the thread. What is no row always has room.
    pub(crate) fn put(&self, job: Job) -> Result<(), Refused> {
        let bytes = job.bytes();
        let mut state = self.state();
        if state.is_closed {
            return Err(Refused::Closed);
        }
        let is_row = matches!(job, Job::Write(..));
        let is_full = state.jobs.len() >= MOST_ROWS
            || (state.bytes + bytes > MOST_BYTES && !state.jobs.is_empty());
        if is_row && is_full {
            return Err(Refused::Full(job));
        }
        let is_urgent = !job.has_time();
        let was_much = state.is_much();
        state.is_closed = matches!(job, Job::Close(_));
        state.bytes += bytes;
        state.jobs.push_back(job);
        let spent = state.spent.pop_front();
        let is_news = state.is_much() && !was_much || is_urgent && !state.is_urgent;
        if is_news || !state.is_called {
            self.called.notify_one();
        }
        state.is_called = true;
        state.is_urgent |= is_urgent;
        drop(state);
        drop(spent);
        Ok(())
    }

    /// Until the thread has taken what is there.
    pub(crate) async fn wait_for_space(&self) {
        let mut space = std::pin::pin!(self.space.notified());
        space.as_mut().enable();
        if self.state().is_much() {
            space.await;
        }
    }

    pub(crate) async fn put_when_possible(&self, mut job: Job) -> Result<(), Refused> {
        loop {
            let mut space = std::pin::pin!(self.space.notified());
            space.as_mut().enable();
            match self.put(job) {
                Err(Refused::Full(again)) => job = again,
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

    /// Calls the thread to look at the file.
    pub(crate) fn tell_of_damage(&self) {
        let mut state = self.state();
        (state.is_damaged, state.is_called) = (true, true);
        self.called.notify_one();
    }

    /// True if someone told of damage since the last time.
    pub(crate) fn take_damage(&self) -> bool {
        std::mem::take(&mut self.state().is_damaged)
    }

    /// Until all that was put in so far is in the database, but not for long. Does not mind to be in a task.
    pub(crate) fn flush(&self, patience: Duration) {
        let (done, is_done) = mpsc::sync_channel(1);
        if self.put(Job::Flush(Ack::Thread(done))).is_ok() {
            // Whoever asks gets what there is.
            is_done.recv_timeout(patience).ok();
        }
    }

    /// Until the thread is called, or patience ends. Where nobody waits for a row, some more may come together before that.
    pub(crate) fn wait(&self, patience: Duration, gather: Duration) {
        let wait =
            |state: &mut MutexGuard<'_, State>, patience, goes_on: fn(&mut State) -> bool| {
                self.called.wait_while_for(state, goes_on, patience);
            };
        let mut state = self.state();
        wait(&mut state, patience, |state| !state.is_called);
        if state.is_called {
            wait(&mut state, gather, |state| {
                !state.is_urgent && !state.is_much()
            });
        }
    }

    /// Everything there is, into an empty buffer, which the queue fills next: both keep their size.
    pub(crate) fn take_into(&self, jobs: &mut VecDeque<Job>) {
        debug_assert!(jobs.is_empty());
        let mut state = self.state();
        let was_much = state.is_much();
        std::mem::swap(&mut state.jobs, jobs);
        state.bytes = 0;
        (state.is_called, state.is_urgent) = (false, false);
        drop(state);
        if was_much {
            self.space.notify_waiters();
        }
    }

    /// Leaves written rows to the threads that make new ones, and frees what is left of those before. Memory that
    /// one thread allocates and another one frees costs both of them several times as much.
    pub(crate) fn give_back(&self, rows: &mut VecDeque<Row>, bytes: usize) {
        if bytes > MOST_SPENT_BYTES {
            rows.clear();
        }
        std::mem::swap(&mut self.state().spent, rows);
        rows.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flush() -> Job {
        Job::Flush(Ack::Task(oneshot::channel().0))
    }

    fn row() -> Job {
        Job::Write(Row::sample(), Waits::Nobody)
    }

    fn take(queue: &Queue) -> usize {
        let mut jobs = VecDeque::new();
        queue.take_into(&mut jobs);
        jobs.len()
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_takes_a_row_once_there_is_room() {
        let queue = Queue::default();
        for _ in 0..MOST_ROWS {
            assert!(queue.put(row()).is_ok());
        }
        assert!(matches!(queue.put(row()), Err(Refused::Full(_))));
        assert!(queue.put(flush()).is_ok(), "a question always has room");
        let late = queue.put_when_possible(row());
        let mut late = std::pin::pin!(late);
        let patience = Duration::from_secs(1);
        assert!(tokio::time::timeout(patience, &mut late).await.is_err());
        assert_eq!(take(&queue), MOST_ROWS + 1);
        let put = tokio::time::timeout(patience, late).await;
        assert!(matches!(put, Ok(Ok(()))));
        assert_eq!(take(&queue), 1);
    }

    #[test]
    fn written_rows_are_freed_one_by_one_or_all_at_once() {
        let queue = Queue::default();
        let mut rows: VecDeque<Row> = (0..3).map(|_| Row::sample()).collect();
        queue.give_back(&mut rows, 3);
        assert!(queue.put(row()).is_ok());
        assert_eq!((queue.state().spent.len(), rows.len()), (2, 0));
        queue.give_back(&mut rows, 0);
        assert_eq!((queue.state().spent.len(), rows.len()), (0, 0));
        rows.push_back(Row::sample());
        queue.give_back(&mut rows, MOST_SPENT_BYTES + 1);
        assert_eq!((queue.state().spent.len(), rows.len()), (0, 0));
    }

    #[tokio::test]
    async fn after_the_last_job_nothing_is_taken() {
        let queue = Queue::default();
        assert!(
            queue
                .put(Job::Close(Ack::Task(oneshot::channel().0)))
                .is_ok()
        );
        assert!(matches!(queue.put(row()), Err(Refused::Closed)));
        assert!(matches!(
            queue.put_when_possible(row()).await,
            Err(Refused::Closed)
        ));
        assert_eq!(take(&queue), 1);
    }
}
