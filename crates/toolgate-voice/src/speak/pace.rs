//! How far sound that was given away is ahead of what was heard.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::EngineError;

/// Keeps what was given but not heard yet short, so that a stop and a change of the volume are heard soon, and knows how much
/// was heard.
#[derive(Debug)]
pub(super) struct Pace {
    /// So much may be given before it is heard.
    lead: Duration,
    given: Duration,
    /// When everything that was given will have been heard.
    until: Instant,
}

impl Pace {
    pub(super) fn new(lead: Duration) -> Self {
        Self {
            lead,
            given: Duration::ZERO,
            until: Instant::now(),
        }
    }

    pub(super) async fn room(&self) {
        sleep(self.unheard().saturating_sub(self.lead)).await;
    }

    /// Gives a piece of this length, as soon as it may be given.
    pub(super) async fn give(
        &mut self,
        length: Duration,
        giving: impl Future<Output = Result<(), EngineError>>,
    ) -> Result<(), EngineError> {
        self.room().await;
        giving.await?;
        self.gave(length);
        Ok(())
    }

    pub(super) fn gave(&mut self, length: Duration) {
        self.given += length;
        // After a gap, sound begins when it is given.
        self.until = self.until.max(Instant::now()) + length;
    }

    pub(super) fn unheard(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    pub(super) fn heard(&self) -> Duration {
        self.given.saturating_sub(self.unheard())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn no_more_is_given_than_the_lead_and_a_gap_is_not_heard() {
        let mut pace = Pace::new(100 * MS);
        let began = Instant::now();
        for _ in 0..10 {
            pace.room().await;
            pace.gave(40 * MS);
            assert!(pace.unheard() <= 140 * MS);
        }
        assert_eq!(began.elapsed(), 260 * MS);
        assert_eq!((pace.heard(), pace.unheard()), (260 * MS, 140 * MS));
        advance(500 * MS).await;
        assert_eq!((pace.heard(), pace.unheard()), (400 * MS, Duration::ZERO));
        pace.gave(40 * MS);
        assert_eq!((pace.heard(), pace.unheard()), (400 * MS, 40 * MS));
    }
}
