//! Plays through a Wyoming service.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::timeout;

use crate::EngineError;
use crate::audio::AudioFormat;
use crate::speak::pace::PlaybackPace;
use crate::speak::{AudioOutput, AudioPlayback, OpenedPlayback};
use crate::wyoming::{WyomingAddress, WyomingConnection, WyomingEvent};

// A service plays what it has, even after a stop. So it never gets much in advance.
pub(super) const LEAD: Duration = Duration::from_millis(80);
/// How long a service has to connect, and to confirm the end after the last sound.
pub(super) const SERVICE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub(crate) struct WyomingSnd {
    address: WyomingAddress,
}

impl WyomingSnd {
    pub(crate) fn new(address: WyomingAddress) -> Self {
        Self { address }
    }
}

impl AudioOutput for WyomingSnd {
    fn begin(&self, format: AudioFormat) -> BoxFuture<'_, OpenedPlayback> {
        async move {
            let mut connection = WyomingConnection::connect(&self.address, SERVICE_TIMEOUT).await?;
            connection.send(&WyomingEvent::audio_start(format)).await?;
            Ok(Box::new(ServicePlayback {
                at: self.address.to_string(),
                format,
                connection: Some(connection),
                pace: PlaybackPace::new(LEAD),
            }) as Box<dyn AudioPlayback>)
        }
        .boxed()
    }
}

struct ServicePlayback {
    at: String,
    format: AudioFormat,
    // `None` once it is stopped: closing the connection makes the service stop.
    connection: Option<WyomingConnection>,
    pace: PlaybackPace,
}

impl ServicePlayback {
    // Some services never confirm the end, so a timeout is not an error.
    async fn wait_until_played(&mut self) -> Result<(), EngineError> {
        let within = self.pace.unheard() + SERVICE_TIMEOUT;
        let connection = require_connection(&mut self.connection, &self.at)?;
        let waiting = async {
            loop {
                match connection.receive().await? {
                    Some(WyomingEvent::Played) | None => return Ok(()),
                    Some(_) => {}
                }
            }
        };
        timeout(within, waiting).await.unwrap_or(Ok(()))
    }
}

fn require_connection<'a>(
    connection: &'a mut Option<WyomingConnection>,
    at: &str,
) -> Result<&'a mut WyomingConnection, EngineError> {
    connection.as_mut().ok_or_else(|| EngineError::closed(at))
}

impl AudioPlayback for ServicePlayback {
    fn play(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        async move {
            let length = self.format.duration(bytes.len());
            let chunk = WyomingEvent::audio_chunk(self.format, bytes);
            let connection = require_connection(&mut self.connection, &self.at)?;
            self.pace.send(length, connection.send(&chunk)).await
        }
        .boxed()
    }

    fn heard(&self) -> Duration {
        self.pace.heard()
    }

    fn end(&mut self) -> BoxFuture<'_, Result<(), EngineError>> {
        async move {
            let stop = WyomingEvent::AudioStop { timestamp: None };
            let connection = require_connection(&mut self.connection, &self.at)?;
            connection.send(&stop).await?;
            self.wait_until_played().await?;
            // Some confirm too early or close the connection while sound is still playing.
            tokio::time::sleep(self.pace.unheard()).await;
            Ok(())
        }
        .boxed()
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        self.connection = None;
        async {}.boxed()
    }
}

#[cfg(test)]
mod tests;
