//! Limits how many journal queries run, how many wait, and how long both may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use toolgate_journal::{JournalError, JournalReader};

use crate::problem::Problem;

/// Runs queries for the newest calls and for known ids. Separate from searches, which would
/// otherwise delay the dashboard.
pub(crate) static LOOKUPS: QueryLimiter = QueryLimiter::new(4);
/// Runs queries that may read the whole file.
pub(crate) static SEARCHES: QueryLimiter = QueryLimiter::new(4);

// How many queries may wait for each one that runs.
const QUEUED_PER_RUNNING: usize = 8;
// How long a query may wait.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(2);
// How long a query may run.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) struct QueryLimiter {
    // One permit for each query that runs or waits.
    admitted: Semaphore,
    running: Semaphore,
}

impl QueryLimiter {
    const fn new(running: usize) -> Self {
        Self {
            admitted: Semaphore::const_new(running * (1 + QUEUED_PER_RUNNING)),
            running: Semaphore::const_new(running),
        }
    }

    /// Runs a query on a blocking thread, because it reads a file. Dropping the
    /// future ends the query.
    pub(crate) async fn run<T: Default + Send + 'static>(
        &'static self,
        reader: JournalReader,
        query: impl FnOnce(&JournalReader) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, Problem> {
        let Ok(admission) = self.admitted.try_acquire() else {
            return Err(busy_problem());
        };
        let Ok(Ok(permit)) = tokio::time::timeout(QUEUE_TIMEOUT, self.running.acquire()).await
        else {
            return Err(busy_problem());
        };
        let guard = CancelOnDrop::default();
        let reader = reader.with_limits(QUERY_TIMEOUT, Arc::clone(&guard.is_cancelled));
        let answer = tokio::task::spawn_blocking(move || {
            // Held until the query has ended, even if the caller has dropped the future.
            let _held = (admission, permit);
            query(&reader)
        });
        match answer.await {
            Ok(Ok(answer)) => Ok(answer),
            // A missing journal has no calls, and no call has an invalid id.
            Ok(Err(JournalError::Missing(_) | JournalError::InvalidId(_))) => Ok(T::default()),
            Ok(Err(error @ JournalError::Ambiguous(_))) => {
                Err(Problem::not_found(error.to_string()))
            }
            Ok(Err(error)) => Err(Problem::unavailable(error.to_string())),
            Err(_) => Err(Problem::unavailable(
                "the journal can't be read; see the log of the gateway",
            )),
        }
    }
}

fn busy_problem() -> Problem {
    Problem::unavailable("the journal is busy; try again in a moment").retry_after(1)
}

#[derive(Default)]
struct CancelOnDrop {
    is_cancelled: Arc<AtomicBool>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use http::{StatusCode, header};
    use tokio::time::Instant;
    use toolgate_core::Redactor;
    use toolgate_journal::{Journal, JournalFilter, JournalSettings};

    use super::*;

    fn limiter() -> &'static QueryLimiter {
        Box::leak(Box::new(QueryLimiter::new(1)))
    }

    fn journal() -> (tempfile::TempDir, Journal) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal.db");
        let settings = JournalSettings::default();
        let journal = Journal::open(&file, &settings, Redactor::default(), "test");
        (folder, journal.unwrap())
    }

    fn newest(reader: &JournalReader) -> Result<usize, JournalError> {
        Ok(reader.calls(&JournalFilter::default())?.len())
    }

    fn expect_busy(answer: Result<usize, Problem>) {
        let response = answer.unwrap_err().into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    }

    #[tokio::test(start_paused = true)]
    async fn a_query_waits_up_to_two_seconds_in_a_bounded_queue() {
        let (_folder, journal) = journal();
        let limiter = limiter();
        let others = limiter.running.acquire().await.unwrap();
        let begin = Instant::now();
        let many = (0..20).map(|_| async {
            expect_busy(limiter.run(journal.reader(), newest).await);
            begin.elapsed()
        });
        let mut waited = futures::future::join_all(many).await;
        waited.sort();
        assert_eq!(waited[..11], [Duration::ZERO; 11], "the queue is full");
        assert_eq!(waited[11..], [QUEUE_TIMEOUT; 9]);
        drop(others);
        assert_eq!(limiter.run(journal.reader(), newest).await.ok(), Some(0));
    }

    #[tokio::test]
    async fn a_dropped_query_is_cancelled_and_frees_its_permits() {
        let (_folder, journal) = journal();
        let limiter = limiter();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        // Runs until it is ended, like a long search.
        let endless = move |reader: &JournalReader| -> Result<usize, JournalError> {
            begun.send(()).ok();
            loop {
                newest(reader)?;
            }
        };
        let asked = tokio::spawn(limiter.run(journal.reader(), endless));
        has_begun.await.unwrap();
        asked.abort();
        let other = limiter.run(journal.reader(), newest);
        assert_eq!(other.await.ok(), Some(0), "there is room again");
    }
}
