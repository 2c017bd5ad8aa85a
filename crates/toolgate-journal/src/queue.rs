//! Rows on their way to the file: bounded by number and by size, taken all at once.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use crate::row::Row;

/// More rows than this wait nowhere.
pub(crate) const MOST_ROWS: usize = 4096;
/// Nor do more bytes.
pub(crate) const MOST_BYTES: usize = 32 << 20;

/// Someone who waits until a row is written. Dropped without an answer, it was not.
pub(crate) type Ack = oneshot::Sender<()>;

/// What is asked of those who write.
pub(crate) enum Job {
    Write(Row, Option<Ack>),
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
}

/// Many put in; whoever writes takes out.
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
    is_closed: bool,
    /// The thread has something to do.
    is_called: bool,
}

/// Why a job was not taken; it comes back.
pub(crate) enum Refused {
    Full(Job),
    Closed,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a job if there is room. What is no row always has room. Nobody is called.
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
        state.is_closed = matches!(job, Job::Close(_));
        state.bytes += bytes;
        state.jobs.push_back(job);
        Ok(())
    }

    /// The same, waiting for room as long as it takes, and calling the thread.
    pub(crate) async fn put_when_possible(&self, mut job: Job) -> Result<(), Refused> {
        loop {
            let mut space = std::pin::pin!(self.space.notified());
            space.as_mut().enable();
            let result = self.put(job);
            self.call();
            match result {
                Err(Refused::Full(again)) => job = again,
                result => return result,
            }
            space.await;
        }
    }

    /// Wakes the thread.
    pub(crate) fn call(&self) {
        let was_called = std::mem::replace(&mut self.state().is_called, true);
        if !was_called {
            self.called.notify_one();
        }
    }

    /// Until the thread is called, or patience ends.
    pub(crate) fn wait(&self, patience: Duration) {
        let state = self.state();
        let (mut state, _) = self
            .called
            .wait_timeout_while(state, patience, |state| !state.is_called)
            .unwrap_or_else(PoisonError::into_inner);
        state.is_called = false;
    }

    /// True if there are rows, and none that anybody waits for.
    pub(crate) fn nobody_waits(&self) -> bool {
        let state = self.state();
        let is_unwaited = |job: &Job| matches!(job, Job::Write(_, None));
        !state.jobs.is_empty() && state.jobs.iter().all(is_unwaited)
    }

    /// Everything there is.
    pub(crate) fn take(&self) -> VecDeque<Job> {
        let mut state = self.state();
        let jobs = std::mem::take(&mut state.jobs);
        state.bytes = 0;
        drop(state);
        if jobs.len() >= MOST_ROWS / 2
            || jobs.iter().map(Job::bytes).sum::<usize>() > MOST_BYTES / 2
        {
            self.space.notify_waiters();
        }
        jobs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flush() -> Job {
        Job::Flush(oneshot::channel().0)
    }

    fn row() -> Job {
        Job::Write(Row::sample(), None)
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
        assert_eq!(queue.take().len(), MOST_ROWS + 1);
        let put = tokio::time::timeout(patience, late).await;
        assert!(matches!(put, Ok(Ok(()))));
        assert_eq!(queue.take().len(), 1);
    }

    #[tokio::test]
    async fn after_the_last_job_nothing_is_taken() {
        let queue = Queue::default();
        assert!(queue.put(Job::Close(oneshot::channel().0)).is_ok());
        assert!(matches!(queue.put(row()), Err(Refused::Closed)));
        assert!(matches!(
            queue.put_when_possible(row()).await,
            Err(Refused::Closed)
        ));
        assert_eq!(queue.take().len(), 1);
    }
}
