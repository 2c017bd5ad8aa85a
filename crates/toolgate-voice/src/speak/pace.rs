//! Tracks how far sent sound is ahead of what was heard.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::EngineError;

/// Limits how much sound is sent ahead, so that a stop or a change of volume is heard soon. Also
/// tracks how much was heard.
#[derive(Debug)]
pub(super) struct PlaybackPace {
    lead: Duration,
    sent: Duration,
    heard_at: Instant,
}

impl PlaybackPace {
    pub(super) fn new(lead: Duration) -> Self {
        Self {
            lead,
            sent: Duration::ZERO,
            heard_at: Instant::now(),
        }
    }

    pub(super) async fn wait_for_lead(&self) {
        sleep(self.unheard().saturating_sub(self.lead)).await;
    }

    pub(super) async fn send(
        &mut self,
        length: Duration,
        sending: impl Future<Output = Result<(), EngineError>>,
    ) -> Result<(), EngineError> {
        self.wait_for_lead().await;
        sending.await?;
        self.record_sent(length);
        Ok(())
    }

    pub(super) fn record_sent(&mut self, length: Duration) {
        self.sent += length;
        // After a gap, sound starts when it is sent.
        self.heard_at = self.heard_at.max(Instant::now()) + length;
    }

    pub(super) fn unheard(&self) -> Duration {
        self.heard_at.saturating_duration_since(Instant::now())
    }

    pub(super) fn heard(&self) -> Duration {
        self.sent.saturating_sub(self.unheard())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn sound_is_sent_at_most_the_lead_ahead() {
        let mut pace = PlaybackPace::new(100 * MS);
        let began = Instant::now();
        for _ in 0..10 {
            pace.wait_for_lead().await;
            pace.record_sent(40 * MS);
            assert!(pace.unheard() <= 140 * MS);
        }
        assert_eq!(began.elapsed(), 260 * MS);
        assert_eq!((pace.heard(), pace.unheard()), (260 * MS, 140 * MS));
        advance(500 * MS).await;
        assert_eq!((pace.heard(), pace.unheard()), (400 * MS, Duration::ZERO));
        pace.record_sent(40 * MS);
        assert_eq!((pace.heard(), pace.unheard()), (400 * MS, 40 * MS));
    }
}
