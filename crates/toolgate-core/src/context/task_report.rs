//! [`TaskReport`]: the progress of a call that its server continues as a task.

use std::time::SystemTime;

use parking_lot::Mutex;

use super::CallContext;
use crate::Progress;
use crate::text::truncate;

// Enough for a line that a person reads.
const MAX_MESSAGE: usize = 1000;

/// The progress of a task.
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
    pub(super) fn start_reports(&self) {
        self.0.last_report.get_or_init(|| {
            let (progress, at) = (None, SystemTime::now());
            Mutex::new(TaskReport { progress, at })
        });
    }

    /// What the call has reported since it became a task; `None` if it is not a task of its server.
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
