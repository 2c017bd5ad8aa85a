//! Slows a source down to real time.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::{Instant, sleep_until};

use super::{AudioSource, CaptureEvent};
use crate::EngineError;
use crate::audio::sample_time;

// A wake word service needs real time to hear its word in a file.
pub(crate) fn in_real_time(source: Box<dyn AudioSource>) -> Box<dyn AudioSource> {
    Box::new(RealTimeSource {
        source,
        due: None,
        waiting: None,
    })
}

struct RealTimeSource {
    source: Box<dyn AudioSource>,
    due: Option<Instant>,
    waiting: Option<CaptureEvent>,
}

impl AudioSource for RealTimeSource {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<CaptureEvent>, EngineError>> {
        Box::pin(async move {
            if self.waiting.is_none() {
                let Some(heard) = self.source.next().await? else {
                    return Ok(None);
                };
                let length = match &heard {
                    CaptureEvent::Sound(samples) => sample_time(samples.len()),
                    _ => Duration::ZERO,
                };
                let due = self.due.unwrap_or_else(Instant::now);
                self.due = Some(due + length);
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

    struct ScriptedSource(VecDeque<CaptureEvent>);

    impl AudioSource for ScriptedSource {
        fn next(&mut self) -> BoxFuture<'_, Result<Option<CaptureEvent>, EngineError>> {
            Box::pin(async { Ok(self.0.pop_front()) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn sound_arrives_in_real_time_without_loss() {
        let pieces = [
            CaptureEvent::Sound(vec![1; 16_000]),
            CaptureEvent::Woken(None),
            CaptureEvent::Sound(vec![2; 8_000]),
        ];
        let mut source = in_real_time(Box::new(ScriptedSource(pieces.clone().into())));
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
