//! Retries of a question: how often, after which pause, and within which deadline.

use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::Instant;
use toolgate_net::{backoff, jitter};

use crate::error::BEGIN_TO_ANSWER;
use crate::reply_buffer::ReplyBuffer;
use crate::{ModelError, ModelEvent, ModelListener};

/// A token bucket for the retries of one client. In the long run it allows one retry for every five
/// questions, because many clients that retry at once keep a provider from recovering.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    most: u32,
    saved: Mutex<f64>,
}

impl RetryBudget {
    pub(crate) fn new(most: u32) -> Self {
        let saved = Mutex::new(Self::capacity(most));
        Self { most, saved }
    }

    // Enough for two questions in a row that need all their attempts.
    fn capacity(attempts: u32) -> f64 {
        f64::from(attempts) * 2.0
    }

    fn refill(&self) {
        let mut saved = self.saved.lock();
        *saved = (*saved + 0.2).min(Self::capacity(self.most));
    }

    fn try_spend(&self) -> bool {
        let mut saved = self.saved.lock();
        let has_one = *saved >= 1.0;
        if has_one {
            *saved -= 1.0;
        }
        has_one
    }
}

/// Retries until an attempt succeeds, fails permanently, or would begin after the deadline. Text of
/// a failed attempt is withdrawn before the next one.
pub(crate) async fn with_retries<'a, T>(
    retries: &RetryBudget,
    deadline: Instant,
    listener: &'a mut dyn ModelListener,
    // Boxed, and for the listener's lifetime: an async closure that borrows its client isn't
    // known to be `Send`.
    mut ask: impl for<'t> FnMut(&'t mut ReplyBuffer<'a>) -> BoxFuture<'t, Result<T, ModelError>>,
) -> Result<T, ModelError> {
    retries.refill();
    let mut buffer = ReplyBuffer::new(listener);
    let mut attempt = 1;
    loop {
        let error = match ask(&mut buffer).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let pause = error
            .retry_after()
            .map_or_else(|| pause(attempt), with_jitter);
        let left = deadline.saturating_duration_since(Instant::now());
        let left = left.saturating_sub(pause);
        let may_help =
            error.is_retryable() || attempt == 1 && may_be_stale_connection(&error, left);
        if attempt >= retries.most || !may_help || left.is_zero() || !retries.try_spend() {
            return Err(error);
        }
        buffer.withdraw();
        buffer.event(ModelEvent::Retrying {
            error: &error,
            after: pause,
        });
        tokio::time::sleep(pause).await;
        attempt += 1;
    }
}

// Nothing arrived at all, and there is as much time again. The pooled connection may have died
// unnoticed, and then a new one helps.
fn may_be_stale_connection(error: &ModelError, left: Duration) -> bool {
    matches!(error, ModelError::TimedOut { what: BEGIN_TO_ANSWER, after, .. } if *after <= left)
}

fn pause(attempt: u32) -> Duration {
    let [first, last] = [500, 32_000].map(Duration::from_millis);
    let delay = backoff(first, attempt.saturating_sub(1), last);
    jitter(delay, 0.75..1.25).min(Duration::from_secs(30))
}

fn with_jitter(pause: Duration) -> Duration {
    jitter(pause, 1.0..1.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Provider;

    const PROVIDER: Provider = Provider::Anthropic;

    fn failed(retry_after: Option<u64>) -> ModelError {
        ModelError::Failed {
            provider: PROVIDER,
            reason: "oops".to_owned(),
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    fn limited(retry_after: Option<u64>, retryable: bool) -> ModelError {
        ModelError::Limited {
            provider: PROVIDER,
            reason: "slow down".to_owned(),
            retry_after: retry_after.map(Duration::from_secs),
            retryable,
        }
    }

    fn cut() -> ModelError {
        ModelError::Truncated {
            provider: PROVIDER,
            reason: "half".to_owned(),
        }
    }

    struct RetryRecord {
        result: Result<(), ModelError>,
        attempts: u32,
        took: Duration,
        events: Vec<String>,
    }

    /// Asks a model that first gives these errors, each after these words, and then answers.
    async fn ask_failing(seconds: u64, most: u32, answers: &[(&str, ModelError)]) -> RetryRecord {
        let started = Instant::now();
        let mut events = Vec::new();
        let mut listener = |event: ModelEvent<'_>| events.push(format!("{event:?}"));
        let mut attempts = 0;
        let retries = RetryBudget::new(most);
        let deadline = started + Duration::from_secs(seconds);
        let result = with_retries(&retries, deadline, &mut listener, |buffer| {
            attempts += 1;
            let answer = answers.get(attempts as usize - 1);
            Box::pin(async move {
                let Some((words, error)) = answer else {
                    return Ok(());
                };
                if !words.is_empty() {
                    buffer.forward_text(words);
                }
                Err(error.clone())
            })
        });
        let result = result.await;
        RetryRecord {
            result,
            attempts,
            took: started.elapsed(),
            events,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn temporary_errors_are_tried_again() {
        let unreachable = ModelError::Unreachable {
            provider: PROVIDER,
            url: String::new(),
            reason: String::new(),
        };
        for error in [failed(None), limited(None, true), cut(), unreachable] {
            let seen = ask_failing(60, 3, &[("", error.clone()), ("", error.clone())]).await;
            assert_eq!(seen.result, Ok(()), "{error}");
            assert_eq!(seen.attempts, 3);
            let told = seen.events.iter().map(|event| event.split(' ').next());
            assert_eq!(told.collect::<Vec<_>>(), [Some("Retrying"); 2]);
            let seconds = seen.took.as_secs_f64();
            assert!(
                (0.75 * 1.5..=1.25 * 1.5 + 0.01).contains(&seconds),
                "{seconds}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn permanent_errors_are_not_tried_again() {
        let (provider, reason) = (PROVIDER, String::new());
        for error in [
            ModelError::Refused {
                provider,
                reason: reason.clone(),
            },
            ModelError::Key {
                provider,
                reason: reason.clone(),
            },
            ModelError::Malformed {
                provider,
                reason: reason.clone(),
            },
            ModelError::TooLong {
                model: String::new(),
                reason: reason.clone(),
            },
            ModelError::Model { reason },
            limited(Some(0), false),
        ] {
            let seen = ask_failing(60, 3, &[("words", error.clone())]).await;
            assert_eq!(seen.result, Err(error));
            assert_eq!(seen.attempts, 1);
            assert_eq!(seen.took, Duration::ZERO);
            assert_eq!(seen.events, ["Text(\"words\")"]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_providers_pause_is_kept_with_jitter() {
        let mut taken = Vec::new();
        for _ in 0..20 {
            for error in [failed(Some(7)), limited(Some(7), true)] {
                let seen = ask_failing(60, 3, &[("", error)]).await;
                assert_eq!(seen.result, Ok(()));
                let seconds = seen.took.as_secs_f64();
                assert!((7.0..7.71).contains(&seconds), "{seconds}");
                taken.push(seconds);
            }
        }
        assert!(taken.iter().any(|seconds| *seconds != taken[0]));
    }

    #[tokio::test(start_paused = true)]
    async fn no_attempt_or_pause_exceeds_the_deadline() {
        let seen = ask_failing(5, 3, &[("", limited(Some(7), true))]).await;
        assert_eq!(seen.result, Err(limited(Some(7), true)));
        assert_eq!((seen.attempts, seen.took), (1, Duration::ZERO));
        let always: Vec<_> = (0..100).map(|_| ("", failed(None))).collect();
        let seen = ask_failing(5, 100, &always).await;
        assert_eq!(seen.result, Err(failed(None)));
        assert!(seen.took < Duration::from_secs(5), "{:?}", seen.took);
        assert!((3..=5).contains(&seen.attempts), "{}", seen.attempts);
    }

    #[tokio::test(start_paused = true)]
    async fn an_overlong_pause_fails_at_once() {
        let seen = ask_failing(5, 3, &[("", failed(Some(u64::MAX)))]).await;
        assert_eq!(seen.result, Err(failed(Some(u64::MAX))));
        assert_eq!((seen.attempts, seen.took), (1, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_retried_once_if_time_allows() {
        let silent = |seconds| ModelError::TimedOut {
            provider: PROVIDER,
            what: BEGIN_TO_ANSWER,
            after: Duration::from_secs(seconds),
        };
        let endless = ModelError::TimedOut {
            provider: PROVIDER,
            what: "finish",
            after: Duration::from_secs(1),
        };
        for (error, attempts) in [(silent(50), 2), (silent(60), 1), (endless, 1)] {
            let seen = ask_failing(60, 3, &[("", error.clone()), ("", error.clone())]).await;
            assert_eq!((seen.result, seen.attempts), (Err(error), attempts));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_retry_budget_allows_one_in_five() {
        const QUESTIONS: usize = 100;
        let (retries, mut asked) = (RetryBudget::new(3), 0);
        for _ in 0..QUESTIONS {
            let deadline = Instant::now() + Duration::from_secs(60);
            let mut listener = |_: ModelEvent<'_>| {};
            let result = with_retries(&retries, deadline, &mut listener, |_| {
                asked += 1;
                Box::pin(async { Err::<(), _>(failed(None)) })
            });
            assert!(result.await.is_err());
        }
        let expected = QUESTIONS + 6 + QUESTIONS / 5;
        assert!((expected - 1..=expected).contains(&asked), "{asked}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_configured_number_of_attempts_is_made() {
        for most in [0, 1, 2, 5] {
            let always: Vec<_> = (0..9).map(|_| ("", failed(Some(1)))).collect();
            let seen = ask_failing(60, most, &always).await;
            assert_eq!(seen.result, Err(failed(Some(1))));
            assert_eq!(seen.attempts, most.max(1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn text_of_a_failed_attempt_is_withdrawn() {
        let seen = ask_failing(60, 3, &[("half a", cut()), ("", cut())]).await;
        assert_eq!(seen.result, Ok(()));
        let told: Vec<_> = seen
            .events
            .iter()
            .filter_map(|event| event.split([' ', '(']).next())
            .collect();
        assert_eq!(told, ["Text", "Void", "Retrying", "Retrying"]);
    }

    #[test]
    fn pauses_double_within_their_bounds() {
        for (attempt, base) in [
            (1, 0.5_f64),
            (2, 1.0),
            (3, 2.0),
            (6, 16.0),
            (7, 30.0),
            (99, 30.0),
        ] {
            let pauses: Vec<f64> = (0..200).map(|_| pause(attempt).as_secs_f64()).collect();
            let in_bounds = |pause: &f64| (0.75 * base..=(1.25 * base).min(30.0)).contains(pause);
            assert!(pauses.iter().all(in_bounds), "{attempt}");
            assert!(pauses.iter().any(|pause| *pause != pauses[0]), "{attempt}");
        }
    }
}
