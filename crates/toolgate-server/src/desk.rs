//! Where the journal is asked: so many questions at once, so many that wait, and none of them for long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use tokio::sync::Semaphore;
use toolgate_journal::{JournalError, Reader};

use crate::problem::Problem;

/// For the newest calls, and those that are known by their id: what the dashboard shows must not wait for a search.
pub(crate) static LOOKS: Desk = Desk::new(4);
/// For what may have to read the whole file.
pub(crate) static SEARCHES: Desk = Desk::new(4);

/// So many wait for each that is answered.
const QUEUE: usize = 8;
/// How long a question waits for its turn.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long its answer may take.
const LONGEST: Duration = Duration::from_secs(2);

pub(crate) struct Desk {
    /// Those that are answered, and those that wait.
    places: Semaphore,
    turns: Semaphore,
}

impl Desk {
    const fn new(turns: usize) -> Self {
        Self {
            places: Semaphore::const_new(turns * (1 + QUEUE)),
            turns: Semaphore::const_new(turns),
        }
    }

    /// Asks the journal away from the threads that answer: it reads a file. If whoever asks goes away, the question ends.
    pub(crate) async fn ask<T: Default + Send + 'static>(
        &'static self,
        reader: Reader,
        question: impl FnOnce(&Reader) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, Problem> {
        let Ok(place) = self.places.try_acquire() else {
            return Err(busy());
        };
        let Ok(Ok(turn)) = tokio::time::timeout(PATIENCE, self.turns.acquire()).await else {
            return Err(busy());
        };
        let asker = Asker::default();
        let reader = reader.asked_by(LONGEST, Arc::clone(&asker.is_gone));
        let answer = tokio::task::spawn_blocking(move || {
            // Both until it has ended, also if nobody waits any more.
            let _held = (place, turn);
            question(&reader)
        });
        match answer.await {
            Ok(Ok(answer)) => Ok(answer),
            // Nothing was recorded yet, or nothing can have that name.
            Ok(Err(JournalError::Missing(_) | JournalError::NoId(_))) => Ok(T::default()),
            Ok(Err(error @ JournalError::Ambiguous(_))) => {
                Err(Problem::not_found(error.to_string()))
            }
            Ok(Err(error)) => Err(unreadable(error.to_string())),
            Err(_) => Err(unreadable(
                "the journal can not be read; the gateway's log says why",
            )),
        }
    }
}

fn busy() -> Problem {
    unreadable("many others read the journal; try again in a moment").retry_after(1)
}

fn unreadable(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}

#[derive(Default)]
struct Asker {
    is_gone: Arc<AtomicBool>,
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use http::header;
    use tokio::time::Instant;
    use toolgate_core::Redactor;
    use toolgate_journal::{Filter, Journal, JournalSettings};

    use super::*;

    fn desk() -> &'static Desk {
        Box::leak(Box::new(Desk::new(1)))
    }

    fn journal() -> (tempfile::TempDir, Journal) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal.db");
        let settings = JournalSettings::default();
        let journal = Journal::open(&file, &settings, Redactor::default(), "test");
        (folder, journal.unwrap())
    }

    fn newest(reader: &Reader) -> Result<usize, JournalError> {
        Ok(reader.calls(&Filter::default())?.len())
    }

    /// The refusal says when to come again.
    fn expect_busy(answer: Result<usize, Problem>) {
        let response = answer.unwrap_err().into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_waits_for_two_seconds_in_a_queue_that_ends() {
        let (_folder, journal) = journal();
        let desk = desk();
        let others = desk.turns.acquire().await.unwrap();
        let begin = Instant::now();
        let many = (0..20).map(|_| async {
            expect_busy(desk.ask(journal.reader(), newest).await);
            begin.elapsed()
        });
        let mut waited = futures::future::join_all(many).await;
        waited.sort();
        assert_eq!(waited[..11], [Duration::ZERO; 11], "the queue is full");
        assert_eq!(waited[11..], [PATIENCE; 9]);
        drop(others);
        assert_eq!(desk.ask(journal.reader(), newest).await.ok(), Some(0));
    }

    #[tokio::test]
    async fn a_question_whose_asker_is_gone_ends_and_makes_room() {
        let (_folder, journal) = journal();
        let desk = desk();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        // As a long search is: it goes on until it is ended.
        let endless = move |reader: &Reader| -> Result<usize, JournalError> {
            begun.send(()).ok();
            loop {
                newest(reader)?;
            }
        };
        let asked = tokio::spawn(desk.ask(journal.reader(), endless));
        has_begun.await.unwrap();
        asked.abort();
        let other = desk.ask(journal.reader(), newest);
        assert_eq!(other.await.ok(), Some(0), "there is room again");
    }
}
