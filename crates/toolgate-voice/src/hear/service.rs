//! A Wyoming microphone or satellite.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::link::Outgoing;
use super::{Heard, Opened, QUIET, SILENT, SatelliteLink, Source};
use crate::EngineError;
use crate::audio::{Format, ToHeard};
use crate::engine::within;
use crate::wyoming::{Address, Connection, Event, Info, Receiver, Sender, Stage};

/// How long the service may take to be reached, and then to say what it is.
const GREETING: Duration = Duration::from_secs(5);
/// How often a satellite is asked for a sign of life. It may have nothing else to say for days.
const PING: Duration = Duration::from_secs(5);
/// How long a satellite that has answered once may give none. Old ones never answer.
const LIFELESS: Duration = Duration::from_secs(15);
/// Pieces of sound that wait to be taken: some seconds.
const WAITING: usize = 64;

pub(super) async fn open(address: &Address) -> Result<Opened, EngineError> {
    let at = address.to_string();
    let mut connection = Connection::connect(address, GREETING).await?;
    let info = within(GREETING, &at, greet(&mut connection)).await?;
    if info.satellite.is_none() && info.mic.is_empty() {
        return Err(EngineError::program(
            at,
            "offers neither a microphone nor a satellite: set 'input' of 'voice' to one that does",
        ));
    }
    let (link, outgoing, played) = SatelliteLink::new(&at);
    let (heard, source) = mpsc::channel(WAITING);
    let stop = CancellationToken::new();
    let kind = match info.satellite {
        Some(_) => Kind::Satellite,
        None => Kind::Microphone,
    };
    let service = Service::new(at, kind, heard, link.clone(), played);
    let work = service.run(connection, outgoing);
    tokio::spawn(stop.clone().run_until_cancelled_owned(work));
    Ok(Opened {
        source: Box::new(Incoming {
            heard: source,
            _stop: stop.drop_guard(),
        }),
        link: (kind == Kind::Satellite).then_some(link),
        room: info.satellite.and_then(|satellite| satellite.area),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Microphone,
    /// It sends sound when it likes, and plays it.
    Satellite,
}

impl Kind {
    /// How long it may say nothing at all, before it has shown that it answers.
    fn silent(self) -> Option<Duration> {
        match self {
            Self::Microphone => Some(SILENT),
            Self::Satellite => None,
        }
    }
}

/// What the service is; a satellite runs from here on.
async fn greet(connection: &mut Connection) -> Result<Info, EngineError> {
    connection.send(&Event::Describe).await?;
    loop {
        // A microphone speaks before it is asked; that is too early to be of use.
        if let Event::Info(info) = connection.answer().await? {
            if info.satellite.is_some() {
                connection.send(&Event::RunSatellite).await?;
            }
            return Ok(*info);
        }
    }
}

struct Incoming {
    heard: mpsc::Receiver<Result<Heard, EngineError>>,
    _stop: DropGuard,
}

impl Source for Incoming {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Heard>, EngineError>> {
        Box::pin(async { self.heard.recv().await.transpose() })
    }
}

/// The task that keeps the connection: it must answer even while nobody takes the sound.
struct Service {
    at: String,
    kind: Kind,
    heard: mpsc::Sender<Result<Heard, EngineError>>,
    link: SatelliteLink,
    played: watch::Sender<u64>,
    converter: Option<(Format, ToHeard)>,
    /// What the satellite said it heard; it says afterwards what it wants.
    wake_word: Option<String>,
    /// Sound is being lost, and that was said.
    overrun: bool,
    /// How long it may say nothing at all.
    silent: Option<Duration>,
}

impl Service {
    fn new(
        at: String,
        kind: Kind,
        heard: mpsc::Sender<Result<Heard, EngineError>>,
        link: SatelliteLink,
        played: watch::Sender<u64>,
    ) -> Self {
        Self {
            at,
            kind,
            heard,
            link,
            played,
            converter: None,
            wake_word: None,
            overrun: false,
            silent: kind.silent(),
        }
    }

    async fn run(mut self, connection: Connection, outgoing: Outgoing) {
        let (sender, receiver) = connection.into_split();
        let kind = self.kind;
        let end = tokio::select! {
            end = write(sender, outgoing, kind) => end,
            end = self.read(receiver) => end,
        };
        // Nobody there any more is fine.
        self.heard.send(Err(end)).await.ok();
    }

    async fn read(&mut self, mut receiver: Receiver) -> EngineError {
        loop {
            let answer = match self.silent {
                Some(limit) => within(limit, &self.at, receiver.answer()).await,
                None => receiver.answer().await,
            };
            if let Err(error) = answer.and_then(|event| self.take(event)) {
                return error;
            }
        }
    }

    fn take(&mut self, event: Event) -> Result<(), EngineError> {
        match event {
            Event::AudioChunk { format, bytes, .. } => {
                let sound = self.converter(format)?.convert(&bytes);
                self.give(Heard::Sound(sound));
            }
            // A satellite that hears silence itself sends none of it.
            Event::AudioStop { .. } => self.give(Heard::Sound(vec![0; QUIET])),
            Event::Ping { text } => self.link.tell(Event::Pong { text }),
            Event::Pong { .. } => self.silent = Some(LIFELESS),
            Event::Played => self.played.send_modify(|times| *times += 1),
            Event::Detection { name, .. } => self.wake_word = name,
            Event::RunPipeline {
                start_stage: Stage::Asr,
                wake_word_name,
                ..
            } => {
                let heard = self.wake_word.take();
                self.give(Heard::Woken(wake_word_name.or(heard)));
            }
            _ => {}
        }
        Ok(())
    }

    fn converter(&mut self, format: Format) -> Result<&mut ToHeard, EngineError> {
        let known = self.converter.take().filter(|(known, _)| *known == format);
        let (_, converter) = match known {
            Some(known) => self.converter.insert(known),
            None => {
                let converter = ToHeard::new(format)
                    .map_err(|error| EngineError::protocol(&self.at, error.to_string()))?;
                self.converter.insert((format, converter))
            }
        };
        Ok(converter)
    }

    /// Never waits: signs of life are worth more than sound that nobody takes.
    fn give(&mut self, heard: Heard) {
        match self.heard.try_send(Ok(heard)) {
            Ok(()) => self.overrun = false,
            Err(TrySendError::Full(_)) if !self.overrun => {
                self.overrun = true;
                tracing::warn!(at = %self.at, "sound is lost because it is not taken in time");
            }
            Err(_) => {}
        }
    }
}

/// Sends what there is to be sent until that fails. A satellite is asked for a sign of life now and then.
async fn write(mut sender: Sender, mut outgoing: Outgoing, kind: Kind) -> EngineError {
    let mut ping = interval(PING);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let event = tokio::select! {
            Some(event) = outgoing.next() => event,
            _ = ping.tick(), if kind == Kind::Satellite => Event::Ping { text: None },
        };
        if let Err(error) = sender.send(&event).await {
            return error;
        }
    }
}

#[cfg(test)]
mod tests;
