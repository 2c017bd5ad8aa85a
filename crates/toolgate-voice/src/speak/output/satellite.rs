//! Back to the satellite that was heard.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::service::LEAD;
use crate::EngineError;
use crate::audio::Format;
use crate::hear::SatelliteLink;
use crate::speak::pace::Pace;
use crate::speak::{Output, Playing};
use crate::wyoming::Event;

/// How long a satellite may take to say that all was played after it must have been. Many never say so, and nobody is heard while
/// they are waited for.
const GRACE: Duration = Duration::from_millis(500);

impl Output for SatelliteLink {
    fn begin(&self, format: Format) -> BoxFuture<'_, Result<Box<dyn Playing>, EngineError>> {
        async move {
            let start = Event::AudioStart {
                format,
                timestamp: None,
            };
            self.send(start).await?;
            Ok(Box::new(Sending {
                link: self.clone(),
                format,
                pace: Pace::new(LEAD),
            }) as Box<dyn Playing>)
        }
        .boxed()
    }
}

struct Sending {
    link: SatelliteLink,
    format: Format,
    pace: Pace,
}

impl Playing for Sending {
    fn play(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        let length = self.format.duration(bytes.len());
        let sending = self.link.send(Event::chunk(self.format, bytes));
        self.pace.give(length, sending).boxed()
    }

    fn heard(&self) -> Duration {
        self.pace.heard()
    }

    fn end(&mut self) -> BoxFuture<'_, Result<(), EngineError>> {
        async move {
            // Whether it says so or not, by then it was heard.
            self.link.finish(self.pace.unheard() + GRACE).await?;
            tokio::time::sleep(self.pace.unheard()).await;
            Ok(())
        }
        .boxed()
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        async move {
            let stop = Event::AudioStop { timestamp: None };
            // A satellite that is lost is silent.
            let _sent = self.link.send(stop).await.is_ok();
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_satellite_that_never_says_that_it_played_holds_nobody_up() {
        let (link, mut outgoing, _playing) = SatelliteLink::new("tcp://kitchen:10700");
        let taking = tokio::spawn(async move { while outgoing.next().await.is_some() {} });
        let format = Format {
            rate: 16_000,
            width: 2,
            channels: 1,
        };
        let begun = Instant::now();
        let mut playing = link.begin(format).await.unwrap();
        playing.play(vec![0; 32_000].into()).await.unwrap();
        playing.end().await.unwrap();
        let took = begun.elapsed();
        let second = Duration::from_secs(1);
        assert!((second..second + 2 * GRACE).contains(&took), "{took:?}");
        taking.abort();
    }
}
