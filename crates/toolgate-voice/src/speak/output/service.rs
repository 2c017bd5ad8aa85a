//! A Wyoming service that plays sound.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::timeout;

use crate::EngineError;
use crate::audio::Format;
use crate::speak::pace::Pace;
use crate::speak::{Output, Playing};
use crate::wyoming::{Address, Connection, Event};

/// What a service has it plays, even after a stop: so it never has much.
pub(super) const LEAD: Duration = Duration::from_millis(80);

/// How long a service has to accept, and to say that it played everything after it must have.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub(crate) struct WyomingSnd {
    address: Address,
}

impl WyomingSnd {
    /// The service there. It is connected to for every sound.
    pub(crate) fn new(address: Address) -> Self {
        Self { address }
    }
}

impl Output for WyomingSnd {
    fn begin(&self, format: Format) -> BoxFuture<'_, Result<Box<dyn Playing>, EngineError>> {
        async move {
            let mut connection = Connection::connect(&self.address, PATIENCE).await?;
            let start = Event::AudioStart {
                format,
                timestamp: None,
            };
            connection.send(&start).await?;
            Ok(Box::new(Sending {
                at: self.address.to_string(),
                format,
                connection: Some(connection),
                pace: Pace::new(LEAD),
            }) as Box<dyn Playing>)
        }
        .boxed()
    }
}

struct Sending {
    at: String,
    format: Format,
    /// Gone once it is stopped: a service stops when nobody is there any more.
    connection: Option<Connection>,
    pace: Pace,
}

impl Sending {
    /// Until the service says that everything was played; some never say it.
    async fn played(&mut self) -> Result<(), EngineError> {
        let within = self.pace.unheard() + PATIENCE;
        let connection = connected(&mut self.connection, &self.at)?;
        let waiting = async {
            loop {
                match connection.receive().await? {
                    Some(Event::Played) | None => return Ok(()),
                    Some(_) => {}
                }
            }
        };
        timeout(within, waiting).await.unwrap_or(Ok(()))
    }
}

fn connected<'a>(
    connection: &'a mut Option<Connection>,
    at: &str,
) -> Result<&'a mut Connection, EngineError> {
    connection.as_mut().ok_or_else(|| EngineError::closed(at))
}

impl Playing for Sending {
    fn play(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        async move {
            let length = self.format.duration(bytes.len());
            let chunk = Event::chunk(self.format, bytes);
            let connection = connected(&mut self.connection, &self.at)?;
            self.pace.give(length, connection.send(&chunk)).await
        }
        .boxed()
    }

    fn heard(&self) -> Duration {
        self.pace.heard()
    }

    fn end(&mut self) -> BoxFuture<'_, Result<(), EngineError>> {
        async move {
            let stop = Event::AudioStop { timestamp: None };
            let connection = connected(&mut self.connection, &self.at)?;
            connection.send(&stop).await?;
            self.played().await?;
            // One that says so too early, or goes away, has not been heard yet.
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
