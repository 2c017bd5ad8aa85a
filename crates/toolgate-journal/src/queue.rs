//! Rows on their way to the writer: bounded by number and by size, taken all at once.

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

/// What the writer is asked to do.
pub(crate) enum Job {
    Write(Row, Option<Ack>),
    /// Answers when all before it is written.
    Flush(Ack),
    /// The last job there is.
    Close(Ack),
}

impl Job {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Write(row, _) => row.bytes(),
            Self::Flush(_) | Self::Close(_) => 0,
        }
    }
}

/// Many put in, one takes out.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    space: Notify,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    bytes: usize,
    is_closed: bool,
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

    /// Takes a job if there is room. What is no row always has room.
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
        let is_first = state.jobs.len() == 1;
        drop(state);
        if is_first {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// The same, waiting for room as long as it takes.
    pub(crate) async fn put_when_possible(&self, mut job: Job) -> Result<(), Refused> {
        loop {
            let space = self.space.notified();
            let mut space = std::pin::pin!(space);
            space.as_mut().enable();
            match self.put(job) {
                Err(Refused::Full(again)) => job = again,
                result => return result,
            }
            space.await;
        }
    }

    /// Everything that waits; nothing after `patience`.
    pub(crate) fn take(&self, patience: Duration) -> VecDeque<Job> {
        let state = self.state();
        let (mut state, _) = self
            .filled
            .wait_timeout_while(state, patience, |state| state.jobs.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        let jobs = std::mem::take(&mut state.jobs);
        state.bytes = 0;
        drop(state);
        if !jobs.is_empty() {
            self.space.notify_waiters();
        }
        jobs
    }
}
