//! What others learn of a call that its server continues as a task.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use parking_lot::Mutex;
use tracing::warn;

use super::{CallContext, nanos};
use crate::executor::panic_text;
use crate::{Progress, RemoteTask, truncate};

// Enough for a line that a person reads.
const MAX_MESSAGE: usize = 1000;

/// How far a task is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TaskReport {
    /// What is known from all reports so far, without `meta`; `None` before the first one.
    pub progress: Option<Progress>,
    /// When that was, or when the call became a task.
    pub at: SystemTime,
}

impl Progress {
    /// Keeps what this report doesn't say and the one before said: the message, and how much there
    /// is to do. A server may report numbers and messages apart.
    #[must_use]
    pub fn or_before(mut self, before: Option<Self>) -> Self {
        let before = before.unwrap_or_default();
        self.message = self.message.or(before.message);
        if self.total.is_none() && before.total.is_some() {
            (self.done, self.total) = (before.done, before.total);
        }
        self
    }
}

impl CallContext {
    /// Tells the observers that the server continues this call as a task, so that it can be resumed
    /// after a restart. From now on, `limits.maxTask` or the caller's own limit counts instead of
    /// the tool's, and the call's slot is free for others.
    pub fn announce_task(&self, task: &RemoteTask) {
        let limit = nanos(self.0.task_limit);
        self.0.hard_limit.fetch_max(limit, Ordering::Relaxed);
        self.0.deadline.fetch_max(limit, Ordering::Relaxed);
        // A slot bounds the requests that a server works on at the same time. Nothing is open while
        // a task runs, only short polls, and tasks of hours would keep all other calls out.
        self.release_slot();
        self.0.last_report.get_or_init(|| {
            let (progress, at) = (None, SystemTime::now());
            Mutex::new(TaskReport { progress, at })
        });
        for observer in self.0.executor.observers() {
            // An observer that panics must not end the call.
            let announced = AssertUnwindSafe(|| observer.became_task(self, task));
            if let Err(panic) = catch_unwind(announced) {
                warn!(panic = panic_text(&*panic), "an observer panicked");
            }
        }
    }

    /// What the call has reported since it became a task; `None` if it is not a task of its
    /// server.
    pub fn task_report(&self) -> Option<TaskReport> {
        let report = self.0.last_report.get()?;
        Some(report.lock().clone())
    }

    pub(super) fn keep_report(&self, progress: &Progress) {
        if let Some(report) = self.0.last_report.get() {
            let mut report = report.lock();
            let progress = Progress {
                done: progress.done,
                total: progress.total,
                message: (progress.message.as_ref()).map(|text| truncate(text, MAX_MESSAGE)),
                meta: None,
            };
            *report = TaskReport {
                progress: Some(progress.or_before(report.progress.take())),
                at: SystemTime::now(),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_numbers_may_be_reported_apart() {
        let progress = |done, total, message: Option<&str>| Progress {
            done,
            total,
            message: message.map(str::to_owned),
            meta: None,
        };
        let numbers = progress(3.0, Some(9.0), None);
        let message = progress(1.0, None, Some("cutting"));
        let both = progress(3.0, Some(9.0), Some("cutting"));
        assert_eq!(message.clone().or_before(Some(numbers.clone())), both);
        assert_eq!(numbers.or_before(Some(message.clone())), both);
        let later = progress(4.0, Some(9.0), Some("gluing"));
        assert_eq!(later.clone().or_before(Some(both)), later);
        assert_eq!(message.clone().or_before(None), message);
    }
}
