//! Sound no faster than it would be spoken.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::{Instant, sleep_until};

use super::{Heard, Source};
use crate::EngineError;
use crate::audio::RATE;

/// The source, but its sound comes no faster than from a microphone: for files that a wake word service must hear in time.
pub(crate) fn paced(source: Box<dyn Source>) -> Box<dyn Source> {
    Box::new(Paced {
        source,
        due: None,
        waiting: None,
    })
}

struct Paced {
    source: Box<dyn Source>,
    /// When the next piece has been spoken.
    due: Option<Instant>,
    waiting: Option<Heard>,
}

impl Source for Paced {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Heard>, EngineError>> {
        Box::pin(async move {
            if self.waiting.is_none() {
                let Some(heard) = self.source.next().await? else {
                    return Ok(None);
                };
                let length = match &heard {
                    Heard::Sound(samples) => samples.len() as f64 / f64::from(RATE),
                    _ => 0.0,
                };
                let due = self.due.unwrap_or_else(Instant::now);
                self.due = Some(due + Duration::from_secs_f64(length));
                self.waiting = Some(heard);
            }
            if let Some(due) = self.due {
                sleep_until(due).await;
            }
            Ok(self.waiting.take())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tokio::time::timeout;

    use super::*;

    struct Given(VecDeque<Heard>);

    impl Source for Given {
        fn next(&mut self) -> BoxFuture<'_, Result<Option<Heard>, EngineError>> {
            Box::pin(async { Ok(self.0.pop_front()) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn sound_comes_when_it_would_have_been_spoken_and_none_is_lost() {
        let pieces = [
            Heard::Sound(vec![1; 16_000]),
            Heard::Woken(None),
            Heard::Sound(vec![2; 8_000]),
        ];
        let mut source = paced(Box::new(Given(pieces.clone().into())));
        let began = Instant::now();
        for (piece, at) in pieces.into_iter().zip([1_000, 1_000, 1_500]) {
            let early = timeout(Duration::from_millis(1), source.next()).await;
            let heard = match early {
                Ok(heard) => heard,
                Err(_) => source.next().await,
            };
            assert_eq!(heard, Ok(Some(piece)));
            assert_eq!(began.elapsed().as_millis(), at);
        }
        assert_eq!(source.next().await, Ok(None));
    }
}
