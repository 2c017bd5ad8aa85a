//! Back to the satellite that was heard.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::service::{LEAD, PATIENCE};
use crate::audio::Format;
use crate::speak::pace::Pace;
use crate::speak::{Output, Playing};
use crate::wyoming::Event;
use crate::{EngineError, SatelliteLink};

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
            self.link.finish(self.pace.unheard() + PATIENCE).await?;
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
