//! A client of a wake word service.
//!
//! ```text
//!  feed ──▶ WakeBuffer (bounded, keeps the newest) ──▶ session ──▶ the service
//!  never waits                                         detections ──▶ WakeNotice
//! ```
//!
//! A wake word service is silent until it detects a wake word. So it is regularly asked to describe
//! itself, and counts as lost if it doesn't answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, interval_at, sleep, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_net::{backoff, jitter};

use crate::EngineError;
use crate::audio::{AudioFormat, SAMPLE_RATE};
use crate::wyoming::{
    EventReceiver, EventSender, ServiceInfo, ServiceProgram, WyomingAddress, WyomingConnection,
    WyomingEvent, describe,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
// Older sound is useless: its detection would come too late.
const BUFFER_SAMPLES: usize = SAMPLE_RATE as usize * 2;
const CHUNK_SAMPLES: usize = 1024;
// A service often detects one word several times in a row.
const REFRACTORY: Duration = Duration::from_secs(2);
const STABLE_AFTER: Duration = Duration::from_secs(1);
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
// A frozen service keeps accepting sound for a long time, so silence is the only symptom.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);
// A larger delay means that the service uses another clock.
const MAX_REPORT_DELAY: Duration = Duration::from_secs(2);
const NOTICE_CAPACITY: usize = 16;
const FIRST_RETRY: Duration = Duration::from_millis(250);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WakeNotice {
    Woken {
        wake_word: Option<String>,
        heard: Instant,
    },
    /// The service is unreachable. Sent once until it is back.
    Lost(EngineError),
    Back,
}

pub(crate) struct WakeWordClient {
    buffer: Arc<WakeBuffer>,
    _stop: DropGuard,
}

impl WakeWordClient {
    /// Starts to listen for these wake words, or for all the service knows if there are none. Must
    /// be called within a Tokio runtime.
    pub(crate) fn start(
        address: WyomingAddress,
        wake_words: Vec<String>,
    ) -> (Self, mpsc::Receiver<WakeNotice>) {
        let buffer = Arc::new(WakeBuffer::default());
        let (notices, receiver) = mpsc::channel(NOTICE_CAPACITY);
        let stop = CancellationToken::new();
        let connector = WakeConnector {
            address,
            wake_words,
            buffer: buffer.clone(),
            notices,
            lost: false,
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(connector.run()));
        let _stop = stop.drop_guard();
        (Self { buffer, _stop }, receiver)
    }

    /// Never waits: if the service is slow, the oldest sound is dropped.
    pub(crate) fn feed(&self, samples: &[i16]) {
        self.buffer.feed(samples);
    }
}

#[derive(Default)]
struct WakeBuffer {
    sound: Mutex<BufferedSound>,
    more: Notify,
}

#[derive(Default)]
struct BufferedSound {
    connected: bool,
    samples: VecDeque<i16>,
    /// Samples since the connection was made. They are the service's clock.
    fed: u64,
    last: Option<Instant>,
}

impl WakeBuffer {
    fn feed(&self, samples: &[i16]) {
        let mut sound = self.sound.lock();
        if !sound.connected {
            return;
        }
        sound.fed += samples.len() as u64;
        sound.last = Some(Instant::now());
        let newest = &samples[samples.len().saturating_sub(BUFFER_SAMPLES)..];
        let surplus = (sound.samples.len() + newest.len()).saturating_sub(BUFFER_SAMPLES);
        sound.samples.drain(..surplus);
        sound.samples.extend(newest);
        if sound.samples.len() >= CHUNK_SAMPLES {
            self.more.notify_one();
        }
    }

    // Sound from before belongs to another connection.
    fn set_connected(&self, connected: bool) {
        *self.sound.lock() = BufferedSound {
            connected,
            ..BufferedSound::default()
        };
    }

    async fn next_chunk(&self) -> WyomingEvent {
        loop {
            if let Some(chunk) = self.sound.lock().take_chunk() {
                return chunk;
            }
            self.more.notified().await;
        }
    }
}

impl BufferedSound {
    fn take_chunk(&mut self) -> Option<WyomingEvent> {
        if self.samples.len() < CHUNK_SAMPLES {
            return None;
        }
        let begins = self.fed - self.samples.len() as u64;
        let samples = self.samples.drain(..CHUNK_SAMPLES);
        Some(WyomingEvent::AudioChunk {
            format: AudioFormat::CAPTURE,
            timestamp: Some(milliseconds(begins)),
            bytes: samples.flat_map(i16::to_le_bytes).collect(),
        })
    }

    /// Converts a service's timestamp to the time the sound was captured. Now, if the
    /// service uses another clock.
    fn captured_at(&self, timestamp: Option<i64>) -> Instant {
        let now = Instant::now();
        let found = timestamp.zip(self.last).and_then(|(timestamp, last)| {
            let ago = milliseconds(self.fed).checked_sub(timestamp)?;
            let ago = Duration::from_millis(ago.try_into().ok()?);
            last.checked_sub(ago)
                .filter(|_| timestamp > 0 && ago <= MAX_REPORT_DELAY)
        });
        found.unwrap_or(now)
    }
}

fn milliseconds(samples: u64) -> i64 {
    (samples * 1000 / u64::from(SAMPLE_RATE)) as i64
}

struct WakeConnector {
    address: WyomingAddress,
    wake_words: Vec<String>,
    buffer: Arc<WakeBuffer>,
    notices: mpsc::Sender<WakeNotice>,
    lost: bool,
}

impl WakeConnector {
    async fn run(mut self) {
        let mut failures = 0;
        loop {
            let began = Instant::now();
            let error = self.run_session().await;
            self.buffer.set_connected(false);
            if began.elapsed() >= CONNECT_TIMEOUT + STABLE_AFTER {
                failures = 0;
            }
            if !self.lost {
                self.lost = true;
                self.notify(WakeNotice::Lost(error)).await;
            }
            sleep(retry_delay(failures)).await;
            failures = failures.saturating_add(1);
        }
    }

    async fn run_session(&mut self) -> EngineError {
        // Some services only load the words that are named.
        let names = match self.wake_words.is_empty() {
            true => match describe(&self.address, CONNECT_TIMEOUT).await {
                Ok(info) => known_words(&info),
                Err(error) => return error,
            },
            false => self.wake_words.clone(),
        };
        match WyomingConnection::connect(&self.address, CONNECT_TIMEOUT).await {
            Ok(connection) => self.run_connection(connection, names).await,
            Err(error) => error,
        }
    }

    async fn run_connection(
        &mut self,
        connection: WyomingConnection,
        names: Vec<String>,
    ) -> EngineError {
        self.buffer.set_connected(true);
        let (sender, receiver) = connection.into_split();
        let buffer = Arc::clone(&self.buffer);
        let (pongs, due) = mpsc::channel(1);
        tokio::select! {
            error = send_sound(sender, names, &buffer, due) => error,
            error = self.receive(receiver, pongs) => error,
        }
    }

    async fn receive(
        &mut self,
        mut receiver: EventReceiver,
        pongs: mpsc::Sender<WyomingEvent>,
    ) -> EngineError {
        let stable_at = Instant::now() + STABLE_AFTER;
        let mut silent_at = Instant::now() + SILENCE_TIMEOUT;
        let (mut has_answered, mut ignore_until) = (false, None);
        loop {
            // A service that closes the connection at once, or stays silent, is not back.
            let event = tokio::select! {
                biased;
                event = receiver.receive_answer() => event,
                () = sleep_until(stable_at), if self.lost && has_answered => {
                    self.lost = false;
                    self.notify(WakeNotice::Back).await;
                    continue;
                }
                () = sleep_until(silent_at) => return EngineError::timed_out(&self.address, SILENCE_TIMEOUT),
            };
            has_answered = true;
            silent_at = Instant::now() + SILENCE_TIMEOUT;
            match event {
                Ok(WyomingEvent::Detection {
                    name: wake_word,
                    timestamp,
                    ..
                }) => {
                    let now = Instant::now();
                    if ignore_until.is_none_or(|until| now >= until) {
                        ignore_until = Some(now + REFRACTORY);
                        let heard = self.buffer.sound.lock().captured_at(timestamp);
                        self.notify(WakeNotice::Woken { wake_word, heard }).await;
                    }
                }
                Ok(WyomingEvent::Ping { text }) => {
                    // If the channel is full, a pong is already waiting, and one is enough.
                    pongs.try_send(WyomingEvent::Pong { text }).ok();
                }
                Ok(_) => {}
                Err(error) => return error,
            }
        }
    }

    async fn notify(&self, notice: WakeNotice) {
        // The receiver is gone at shutdown.
        self.notices.send(notice).await.ok();
    }
}

// Jittered, so that several clients of one service don't retry in step.
fn retry_delay(failures: u32) -> Duration {
    jitter(backoff(FIRST_RETRY, failures, MAX_RETRY_DELAY), 0.5..1.0)
}

fn known_words(info: &ServiceInfo) -> Vec<String> {
    let models = info.wake.iter().flat_map(ServiceProgram::models);
    models.map(|model| model.artifact.name.clone()).collect()
}

async fn send_sound(
    mut sender: EventSender,
    names: Vec<String>,
    buffer: &WakeBuffer,
    mut pongs: mpsc::Receiver<WyomingEvent>,
) -> EngineError {
    let names = (!names.is_empty()).then_some(names);
    let start = WyomingEvent::AudioStart {
        format: AudioFormat::CAPTURE,
        timestamp: Some(0),
    };
    let mut first = VecDeque::from([
        WyomingEvent::Detect { names },
        start,
        WyomingEvent::Describe,
    ]);
    let mut probe = interval_at(Instant::now() + PROBE_INTERVAL, PROBE_INTERVAL);
    loop {
        let event = match first.pop_front() {
            Some(event) => event,
            None => tokio::select! {
                Some(pong) = pongs.recv() => pong,
                _ = probe.tick() => WyomingEvent::Describe,
                chunk = buffer.next_chunk() => chunk,
            },
        };
        if let Err(error) = sender.send(&event).await {
            return error;
        }
    }
}

#[cfg(test)]
mod tests;
