//! A Wyoming microphone or satellite as an audio source.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::satellite_link::SatelliteOutbox;
use super::{
    AudioSource, CaptureEvent, OpenInput, SILENCE_TIMEOUT, SatelliteLink, TRAILING_SILENCE,
};
use crate::EngineError;
use crate::audio::{AudioFormat, CaptureConverter};
use crate::engine::with_deadline;
use crate::wyoming::{
    EventReceiver, EventSender, PipelineStage, ServiceInfo, WyomingAddress, WyomingConnection,
    WyomingEvent,
};

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
// A satellite may have nothing else to say for days, so it is pinged.
const PING_INTERVAL: Duration = Duration::from_secs(5);
// Only for satellites that have answered a ping: old ones never do.
const PONG_TIMEOUT: Duration = Duration::from_secs(15);
const EVENT_CAPACITY: usize = 64;

pub(super) async fn open(address: &WyomingAddress) -> Result<OpenInput, EngineError> {
    let at = address.to_string();
    let mut connection = WyomingConnection::connect(address, HANDSHAKE_TIMEOUT).await?;
    let info = with_deadline(HANDSHAKE_TIMEOUT, &at, handshake(&mut connection)).await?;
    if info.satellite.is_none() && info.mic.is_empty() {
        return Err(EngineError::program(
            at,
            "offers neither a microphone nor a satellite: set 'input' of 'voice' to one that does",
        ));
    }
    let (link, outgoing, played) = SatelliteLink::new(&at);
    let (heard, source) = mpsc::channel(EVENT_CAPACITY);
    // Dropping the source ends the task and closes the connection.
    let stop = CancellationToken::new();
    let kind = match info.satellite {
        Some(_) => SourceKind::Satellite,
        None => SourceKind::Microphone,
    };
    let task = WyomingSourceTask::new(at, kind, heard, link.clone(), played);
    let work = task.run(connection, outgoing);
    tokio::spawn(stop.clone().run_until_cancelled_owned(work));
    Ok(OpenInput {
        source: Box::new(WyomingSource {
            heard: source,
            _stop: stop.drop_guard(),
        }),
        first: None,
        link: (kind == SourceKind::Satellite).then_some(link),
        room: info.satellite.and_then(|satellite| satellite.area),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SourceKind {
    Microphone,
    /// It decides itself when to send sound, and also plays it.
    Satellite,
}

async fn handshake(connection: &mut WyomingConnection) -> Result<ServiceInfo, EngineError> {
    connection.send(&WyomingEvent::Describe).await?;
    loop {
        // A microphone may stream before it is asked. That sound comes too early to be used.
        if let WyomingEvent::Info(info) = connection.receive_answer().await? {
            if info.satellite.is_some() {
                connection.send(&WyomingEvent::RunSatellite).await?;
            }
            return Ok(*info);
        }
    }
}

struct WyomingSource {
    heard: mpsc::Receiver<Result<CaptureEvent, EngineError>>,
    _stop: DropGuard,
}

impl AudioSource for WyomingSource {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<CaptureEvent>, EngineError>> {
        Box::pin(async { self.heard.recv().await.transpose() })
    }
}

// Runs in a task of its own: pings must be answered even while nothing reads the sound.
struct WyomingSourceTask {
    at: String,
    kind: SourceKind,
    heard: mpsc::Sender<Result<CaptureEvent, EngineError>>,
    link: SatelliteLink,
    played: watch::Sender<u64>,
    converter: Option<(AudioFormat, CaptureConverter)>,
    /// The detected wake word. The satellite says in a later event what it wants.
    wake_word: Option<String>,
    overrun: bool,
    /// How long it may be silent. A satellite has no limit until it has answered a ping.
    silence_limit: Option<Duration>,
}

impl WyomingSourceTask {
    fn new(
        at: String,
        kind: SourceKind,
        heard: mpsc::Sender<Result<CaptureEvent, EngineError>>,
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
            silence_limit: (kind == SourceKind::Microphone).then_some(SILENCE_TIMEOUT),
        }
    }

    async fn run(mut self, connection: WyomingConnection, outgoing: SatelliteOutbox) {
        let (sender, receiver) = connection.into_split();
        let kind = self.kind;
        let end = tokio::select! {
            end = write(sender, outgoing, kind) => end,
            end = self.read(receiver) => end,
        };
        // The source may have been dropped already.
        self.heard.send(Err(end)).await.ok();
    }

    async fn read(&mut self, mut receiver: EventReceiver) -> EngineError {
        loop {
            let answer = match self.silence_limit {
                Some(limit) => with_deadline(limit, &self.at, receiver.receive_answer()).await,
                None => receiver.receive_answer().await,
            };
            if let Err(error) = answer.and_then(|event| self.handle_event(event)) {
                return error;
            }
        }
    }

    fn handle_event(&mut self, event: WyomingEvent) -> Result<(), EngineError> {
        match event {
            WyomingEvent::AudioChunk { format, bytes, .. } => {
                let sound = self.converter_for(format)?.convert(&bytes);
                self.deliver(CaptureEvent::Sound(sound));
            }
            // A satellite with its own VAD never sends the silence that ends a request.
            WyomingEvent::AudioStop { .. } => {
                self.deliver(CaptureEvent::Sound(vec![0; TRAILING_SILENCE]));
            }
            WyomingEvent::Ping { text } => self.link.notify(WyomingEvent::Pong { text }),
            WyomingEvent::Pong { .. } => self.silence_limit = Some(PONG_TIMEOUT),
            WyomingEvent::Played => self.played.send_modify(|times| *times += 1),
            WyomingEvent::Detection { name, .. } => self.wake_word = name,
            WyomingEvent::RunPipeline {
                start_stage: PipelineStage::Asr,
                wake_word_name,
                ..
            } => {
                let heard = self.wake_word.take();
                self.deliver(CaptureEvent::Woken(wake_word_name.or(heard)));
            }
            _ => {}
        }
        Ok(())
    }

    fn converter_for(&mut self, format: AudioFormat) -> Result<&mut CaptureConverter, EngineError> {
        let known = self.converter.take().filter(|(known, _)| *known == format);
        let known = known.map_or_else(
            || CaptureConverter::new(format).map(|new| (format, new)),
            Ok,
        );
        let known = known.map_err(|error| EngineError::protocol(&self.at, error))?;
        Ok(&mut self.converter.insert(known).1)
    }

    // Never waits: losing sound is better than not answering pings.
    fn deliver(&mut self, heard: CaptureEvent) {
        match self.heard.try_send(Ok(heard)) {
            Ok(()) => self.overrun = false,
            Err(TrySendError::Full(_)) if !self.overrun => {
                self.overrun = true;
                tracing::warn!(at = %self.at, "losing sound because it is not processed in time");
            }
            Err(_) => {}
        }
    }
}

async fn write(
    mut sender: EventSender,
    mut outgoing: SatelliteOutbox,
    kind: SourceKind,
) -> EngineError {
    let mut ping = interval(PING_INTERVAL);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let event = tokio::select! {
            Some(event) = outgoing.next() => event,
            _ = ping.tick(), if kind == SourceKind::Satellite => WyomingEvent::Ping { text: None },
        };
        if let Err(error) = sender.send(&event).await {
            return error;
        }
    }
}

#[cfg(test)]
mod tests;
