//! Plays through the satellite that the request came from.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::wyoming_snd::LEAD;
use crate::EngineError;
use crate::audio::AudioFormat;
use crate::capture::SatelliteLink;
use crate::speak::pace::PlaybackPace;
use crate::speak::{AudioOutput, AudioPlayback, OpenedPlayback};
use crate::wyoming::WyomingEvent;

// Many satellites never confirm that they played everything, and requests are blocked meanwhile. So
// the wait is short.
const CONFIRMATION_GRACE: Duration = Duration::from_millis(500);

impl AudioOutput for SatelliteLink {
    fn begin(&self, format: AudioFormat) -> BoxFuture<'_, OpenedPlayback> {
        async move {
            self.send(WyomingEvent::audio_start(format)).await?;
            Ok(Box::new(SatellitePlayback {
                link: self.clone(),
                format,
                pace: PlaybackPace::new(LEAD),
            }) as Box<dyn AudioPlayback>)
        }
        .boxed()
    }
}

struct SatellitePlayback {
    link: SatelliteLink,
    format: AudioFormat,
    pace: PlaybackPace,
}

impl AudioPlayback for SatellitePlayback {
    fn play(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        let length = self.format.duration(bytes.len());
        let chunk = WyomingEvent::audio_chunk(self.format, bytes);
        self.pace.send(length, self.link.send(chunk)).boxed()
    }

    fn heard(&self) -> Duration {
        self.pace.heard()
    }

    fn end(&mut self) -> BoxFuture<'_, Result<(), EngineError>> {
        async move {
            // With or without a confirmation, it has been played by then.
            self.link
                .finish_playback(self.pace.unheard() + CONFIRMATION_GRACE)
                .await?;
            tokio::time::sleep(self.pace.unheard()).await;
            Ok(())
        }
        .boxed()
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        async move {
            let stop = WyomingEvent::AudioStop { timestamp: None };
            // A lost satellite is silent anyway.
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
    async fn a_satellite_without_confirmation_does_not_block() {
        let (link, mut outgoing, _playing) = SatelliteLink::new("tcp://kitchen:10700");
        let taking = tokio::spawn(async move { while outgoing.next().await.is_some() {} });
        let format = AudioFormat::CAPTURE;
        let begun = Instant::now();
        let mut playing = link.begin(format).await.unwrap();
        playing.play(vec![0; 32_000].into()).await.unwrap();
        playing.end().await.unwrap();
        let took = begun.elapsed();
        let second = Duration::from_secs(1);
        assert!(
            (second..second + 2 * CONFIRMATION_GRACE).contains(&took),
            "{took:?}"
        );
        taking.abort();
    }
}
