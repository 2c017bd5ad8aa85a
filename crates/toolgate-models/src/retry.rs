//! Asking again: how often, when, and within which deadline.

use std::time::Duration;

use tokio::time::Instant;

use crate::{Event, Listener, ModelError};

/// How often a model is asked, and how long each attempt may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempts {
    pub(crate) most: u32,
    pub(crate) deadline: Instant,
}

/// Until the first attempt that succeeds, fails for good, or would begin after the deadline. An attempt is given whether any
/// words were told: then they are declared void before the next one.
pub(crate) async fn retrying<T>(
    attempts: Attempts,
    listener: &mut dyn Listener,
    mut ask: impl AsyncFnMut(&mut Told<'_>) -> Result<T, ModelError>,
) -> Result<T, ModelError> {
    let mut attempt = 1;
    loop {
        let mut told = Told {
            listener,
            words: false,
        };
        let error = match ask(&mut told).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let words = told.words;
        let pause = error.retry_after().unwrap_or_else(|| pause(attempt));
        let in_time = Instant::now() + pause < attempts.deadline;
        if attempt >= attempts.most || !error.is_retryable() || !in_time {
            return Err(error);
        }
        if words {
            listener.event(Event::Void);
        }
        listener.event(Event::Retrying {
            error: &error,
            after: pause,
        });
        tokio::time::sleep(pause).await;
        attempt += 1;
    }
}

/// A listener that remembers whether it was told any words.
pub(crate) struct Told<'a> {
    listener: &'a mut dyn Listener,
    words: bool,
}

impl Listener for Told<'_> {
    fn event(&mut self, event: Event<'_>) {
        self.words |= matches!(event, Event::Text(_) | Event::Thinking(_));
        self.listener.event(event);
    }
}

/// Twice as long each time, up to 30 s, with a quarter of it left to chance so that many clients do not come back at once.
fn pause(attempt: u32) -> Duration {
    let base = Duration::from_millis(500) * 2u32.pow(attempt.saturating_sub(1).min(6));
    base.min(Duration::from_secs(30))
        .mul_f64(0.75 + fastrand::f64() / 2.0)
}
