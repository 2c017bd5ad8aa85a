//! The client of a wake word service.
//!
//! ```text
//!  feed ──▶ Waiting (bounded, the newest is kept) ──▶ session ──▶ the service
//!  never waits                                        detections ──▶ WakeNotice
//! ```
//!
//! A service has nothing to say while nobody calls it: now and then it is asked to describe itself, and one that does not answer
//! is lost.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, interval_at, sleep, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::backoff::Backoff;
use crate::EngineError;
use crate::audio::{Format, RATE};
use crate::wyoming::{Address, Connection, Event, Info, Receiver, Sender, describe};

const CONNECT: Duration = Duration::from_secs(5);
/// How much sound waits for a slow service. What is older is worth nothing: the answer would come too late.
const WAITING: usize = RATE as usize * 2;
/// What is sent at once, as Home Assistant does.
const CHUNK: usize = 1024;
/// One word is often found several times in a row.
const REFRACTORY: Duration = Duration::from_secs(2);
/// A connection that lasts this long is a good one.
const STEADY: Duration = Duration::from_secs(1);
/// How often the service is asked whether it still hears.
const PROBE: Duration = Duration::from_secs(5);
/// How long it may say nothing at all, in spite of that: one that is frozen takes sound for a long time.
const SILENT: Duration = Duration::from_secs(10);
/// A word that was heard longer ago than this is dated wrongly.
const LATE: Duration = Duration::from_secs(2);
const NEWS: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WakeNotice {
    Woken {
        /// Which wake word it was, if the service says so.
        wake_word: Option<String>,
        /// When it was heard: what was said after it is the request.
        heard: Instant,
    },
    /// The service cannot be reached, or was lost. Told once until it is back.
    Lost(EngineError),
    Back,
}

/// Listens for wake words through a Wyoming service, which it finds again whenever it is lost. Dropping it ends that.
pub(crate) struct Wake {
    waiting: Arc<Waiting>,
    _stop: DropGuard,
}

impl Wake {
    /// Starts to listen for these wake words, or all that the service knows if there are none. The news come from the receiver.
    ///
    /// Must be called inside of a runtime.
    pub(crate) fn start(
        address: Address,
        wake_words: Vec<String>,
    ) -> (Self, mpsc::Receiver<WakeNotice>) {
        let waiting = Arc::new(Waiting::default());
        let (news, receiver) = mpsc::channel(NEWS);
        let stop = CancellationToken::new();
        let keeper = Keeper {
            address,
            wake_words,
            waiting: Arc::clone(&waiting),
            news,
            lost: false,
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(keeper.run()));
        let wake = Self {
            waiting,
            _stop: stop.drop_guard(),
        };
        (wake, receiver)
    }

    /// Lets the service hear this too. Never waits.
    pub(crate) fn feed(&self, samples: &[i16]) {
        self.waiting.feed(samples);
    }
}

#[derive(Default)]
struct Waiting {
    sound: Mutex<Sound>,
    more: Notify,
}

#[derive(Default)]
struct Sound {
    /// Nobody listens: nothing is kept.
    connected: bool,
    samples: VecDeque<i16>,
    /// All samples since the connection began: they are its clock.
    fed: u64,
    last: Option<Instant>,
}

impl Waiting {
    fn feed(&self, samples: &[i16]) {
        let mut sound = self.sound.lock();
        if !sound.connected {
            return;
        }
        sound.fed += samples.len() as u64;
        sound.last = Some(Instant::now());
        let newest = &samples[samples.len().saturating_sub(WAITING)..];
        let surplus = (sound.samples.len() + newest.len()).saturating_sub(WAITING);
        sound.samples.drain(..surplus);
        sound.samples.extend(newest);
        if sound.samples.len() >= CHUNK {
            self.more.notify_one();
        }
    }

    /// A connection begins, or has ended: whatever waits belongs to another.
    fn connected(&self, connected: bool) {
        *self.sound.lock() = Sound {
            connected,
            ..Sound::default()
        };
    }

    async fn chunk(&self) -> Event {
        loop {
            if let Some(chunk) = self.sound.lock().chunk() {
                return chunk;
            }
            self.more.notified().await;
        }
    }
}

impl Sound {
    fn chunk(&mut self) -> Option<Event> {
        if self.samples.len() < CHUNK {
            return None;
        }
        let begins = self.fed - self.samples.len() as u64;
        let samples = self.samples.drain(..CHUNK);
        Some(Event::AudioChunk {
            format: Format::HEARD,
            timestamp: Some(milliseconds(begins)),
            bytes: samples.flat_map(i16::to_le_bytes).collect(),
        })
    }

    /// When the sound with this timestamp was heard; now, if the service dates in some other way.
    fn heard(&self, timestamp: Option<i64>) -> Instant {
        let now = Instant::now();
        let found = timestamp.zip(self.last).and_then(|(timestamp, last)| {
            let ago = milliseconds(self.fed).checked_sub(timestamp)?;
            let ago = Duration::from_millis(ago.try_into().ok()?);
            (timestamp > 0 && ago <= LATE)
                .then(|| last.checked_sub(ago))
                .flatten()
        });
        found.unwrap_or(now)
    }
}

/// How long so many samples last.
fn milliseconds(samples: u64) -> i64 {
    (samples * 1000 / u64::from(RATE)) as i64
}

struct Keeper {
    address: Address,
    wake_words: Vec<String>,
    waiting: Arc<Waiting>,
    news: mpsc::Sender<WakeNotice>,
    /// It was told that the service is lost.
    lost: bool,
}

impl Keeper {
    async fn run(mut self) {
        let mut backoff = Backoff::default();
        loop {
            let began = Instant::now();
            let error = self.session().await;
            self.waiting.connected(false);
            if began.elapsed() >= CONNECT + STEADY {
                backoff.reset();
            }
            if !self.lost {
                self.lost = true;
                self.tell(WakeNotice::Lost(error)).await;
            }
            sleep(backoff.next()).await;
        }
    }

    async fn session(&mut self) -> EngineError {
        // Some services load no word that is not named.
        let names = match self.wake_words.is_empty() {
            true => match describe(&self.address, CONNECT).await {
                Ok(info) => known(&info),
                Err(error) => return error,
            },
            false => self.wake_words.clone(),
        };
        match Connection::connect(&self.address, CONNECT).await {
            Ok(connection) => self.converse(connection, names).await,
            Err(error) => error,
        }
    }

    async fn converse(&mut self, connection: Connection, names: Vec<String>) -> EngineError {
        self.waiting.connected(true);
        let (sender, receiver) = connection.into_split();
        let waiting = Arc::clone(&self.waiting);
        let (pongs, due) = mpsc::channel(1);
        tokio::select! {
            error = send(sender, names, &waiting, due) => error,
            error = self.receive(receiver, pongs) => error,
        }
    }

    async fn receive(&mut self, mut receiver: Receiver, pongs: mpsc::Sender<Event>) -> EngineError {
        let steady = Instant::now() + STEADY;
        let mut silent_at = Instant::now() + SILENT;
        let (mut has_answered, mut deaf_until) = (false, None);
        loop {
            // A service that closes at once, or says nothing, has not come back.
            let event = tokio::select! {
                biased;
                event = receiver.answer() => event,
                () = sleep_until(steady), if self.lost && has_answered => {
                    self.lost = false;
                    self.tell(WakeNotice::Back).await;
                    continue;
                }
                () = sleep_until(silent_at) => return EngineError::timed_out(self.address.to_string(), SILENT),
            };
            has_answered = true;
            silent_at = Instant::now() + SILENT;
            match event {
                Ok(Event::Detection {
                    name, timestamp, ..
                }) => {
                    let now = Instant::now();
                    if deaf_until.is_none_or(|until| now >= until) {
                        deaf_until = Some(now + REFRACTORY);
                        let heard = self.waiting.sound.lock().heard(timestamp);
                        self.tell(WakeNotice::Woken {
                            wake_word: name,
                            heard,
                        })
                        .await;
                    }
                }
                Ok(Event::Ping { text }) => {
                    // One that waits is enough of a sign of life.
                    pongs.try_send(Event::Pong { text }).ok();
                }
                Ok(_) => {}
                Err(error) => return error,
            }
        }
    }

    async fn tell(&self, notice: WakeNotice) {
        // Nobody there any more is fine: the end is near.
        self.news.send(notice).await.ok();
    }
}

fn known(info: &Info) -> Vec<String> {
    let models = info.wake.iter().flat_map(|program| &program.models);
    models.map(|model| model.artifact.name.clone()).collect()
}

async fn send(
    mut sender: Sender,
    names: Vec<String>,
    waiting: &Waiting,
    mut pongs: mpsc::Receiver<Event>,
) -> EngineError {
    let names = (!names.is_empty()).then_some(names);
    let start = Event::AudioStart {
        format: Format::HEARD,
        timestamp: Some(0),
    };
    for event in [Event::Detect { names }, start, Event::Describe] {
        if let Err(error) = sender.send(&event).await {
            return error;
        }
    }
    let mut probe = interval_at(Instant::now() + PROBE, PROBE);
    loop {
        let event = tokio::select! {
            Some(pong) = pongs.recv() => pong,
            _ = probe.tick() => Event::Describe,
            chunk = waiting.chunk() => chunk,
        };
        if let Err(error) = sender.send(&event).await {
            return error;
        }
    }
}

#[cfg(test)]
mod tests;
