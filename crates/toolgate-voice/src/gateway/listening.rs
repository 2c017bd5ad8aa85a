//! The ear: sound goes to the wake word and to the detector of speech, utterances to the transcriber. Nothing here waits for
//! an answer, but for files, which have time.

use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use super::hub::{self, Hub};
use super::outlet::Outlet;
use super::run::source;
use super::satellite::Satellite;
use super::{Key, Mode};
use crate::hear::{self, Heard, Input, Opened, SatelliteLink};
use crate::listen::{Listening, Notice, Segmenter, Wake, WakeNotice};
use crate::speak::{Speaker, Tone};
use crate::turn::{BackgroundTranscriber, Engines};
use crate::{EngineError, Event, Role, State, VoiceSettings, Watcher};

/// Waits between two looks for a microphone that is away.
const RETRY: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
];
/// How long a room rings after a word: sound of the gateway's own voice.
const ECHO: Duration = Duration::from_millis(300);
/// How long sound may fail to come, besides the silence that ends a request.
const STALLED: Duration = Duration::from_secs(1);
/// What is told of a file in which nobody spoke, or nobody was called.
const NO_REQUEST: &str = "no request in this file";
/// How long a voice that was stopped may still be heard.
const FADING: Duration = Duration::from_millis(150);

pub(super) struct Ear<'a> {
    pub(super) settings: &'a VoiceSettings,
    pub(super) input: &'a Input,
    pub(super) mode: Mode,
    pub(super) hub: Arc<Hub>,
    pub(super) engines: Arc<Engines>,
    pub(super) speaker: Speaker,
    pub(super) outlet: &'a Outlet,
    pub(super) satellite: &'a Satellite,
    pub(super) transcriber: &'a BackgroundTranscriber,
    pub(super) wake: Option<(Wake, mpsc::Receiver<WakeNotice>)>,
    pub(super) keys: Option<mpsc::Receiver<Key>>,
    pub(super) memory: Memory,
}

/// What an ear remembers from one piece of sound to the next.
#[derive(Default)]
pub(super) struct Memory {
    given: u64,
    /// Looks for the microphone that did not help.
    looks: usize,
    /// The gateway's own voice is in the room until then.
    deaf_until: Option<Instant>,
    sounded: Option<Instant>,
    is_heard: bool,
    is_empty: bool,
    /// When somebody called: what is heard after that counts.
    called: Option<Instant>,
}

impl Ear<'_> {
    /// Hears until the input ends; one that never does is opened again whenever it is lost.
    pub(super) async fn listen(&mut self, opened: Option<Opened>) -> Result<(), EngineError> {
        let mut next = opened;
        loop {
            let opened = match next.take() {
                Some(opened) => opened,
                None => self.reopen().await,
            };
            // A service that answers is there; of a program only sound is proof, see below.
            if let Input::Wyoming(_) = self.input {
                self.engines.worked(Role::Microphone);
            }
            let heard = self.hear(opened).await;
            if !comes_again(self.input) {
                self.hub.until_over(self.memory.given).await;
                return heard;
            }
            let why = heard.map_or_else(|error| error.to_string(), |()| "it ended".to_owned());
            self.engines.lost(Role::Microphone, &why);
        }
    }

    async fn reopen(&mut self) -> Opened {
        loop {
            let wait = RETRY[self.memory.looks.min(RETRY.len() - 1)];
            self.memory.looks += 1;
            sleep(wait).await;
            match hear::open(self.input).await {
                Ok(opened) => return opened,
                Err(error) => self.engines.lost(Role::Microphone, &error.to_string()),
            }
        }
    }

    async fn hear(&mut self, opened: Opened) -> Result<(), EngineError> {
        self.connect(opened.link);
        let mut segmenter = self.segmenter(opened.room);
        // A name in a file is heard by another process, which needs its time.
        let mut source = match (&self.wake, self.input) {
            (Some(_), Input::Wav(_)) => hear::paced(opened.source),
            _ => opened.source,
        };
        let mut expects_answer = self.transcriber.expects_answer();
        loop {
            let stall = self.stall();
            tokio::select! {
                Ok(()) = expects_answer.changed() => self.await_answer(&mut segmenter).await,
                heard = source.next() => match heard? {
                    Some(Heard::Sound(samples)) => self.sound(&mut segmenter, &samples).await,
                    Some(Heard::Woken(name)) => self.woken(&mut segmenter, name, Instant::now()).await,
                    Some(Heard::Begins(file)) => self.file_begins(&file),
                    Some(Heard::Ends) => self.file_ends(),
                    None => {
                        self.take(segmenter.end(Instant::now())).await;
                        return Ok(());
                    }
                },
                notice = news(self.wake.as_mut().map(|(_, news)| news)) => match notice {
                    WakeNotice::Woken { wake_word, heard } => self.woken(&mut segmenter, wake_word, heard).await,
                    WakeNotice::Lost(error) => self.engines.lost(Role::Wake, &error.to_string()),
                    WakeNotice::Back => self.engines.worked(Role::Wake),
                },
                key = news(self.keys.as_mut()) => match key {
                    Key::Talk => self.woken(&mut segmenter, None, Instant::now()).await,
                },
                () = sleep_until(stall.unwrap_or_else(Instant::now)), if stall.is_some() => {
                    self.take(segmenter.end(Instant::now())).await;
                }
            }
        }
    }

    /// When a request is over whose sound just stops: time is counted in sound, and nothing else would end it.
    fn stall(&self) -> Option<Instant> {
        let is_live = self.memory.is_heard && !can_wait(self.input);
        let last = self.memory.sounded.filter(|_| is_live)?;
        Some(last + self.settings.silence + STALLED)
    }

    fn connect(&self, link: Option<SatelliteLink>) {
        self.satellite.connect(link.clone());
        if let Some(link) = link {
            self.outlet.connect(link);
        }
    }

    fn segmenter(&self, room: Option<String>) -> Segmenter {
        let listening = match self.mode {
            Mode::Always => Listening::Always,
            Mode::Wake | Mode::PushToTalk => Listening::WhenWoken,
        };
        Segmenter::new(self.settings, listening, room)
    }

    async fn sound(&mut self, segmenter: &mut Segmenter, samples: &[i16]) {
        // A recorder without a sound card starts well, and ends.
        self.engines.worked(Role::Microphone);
        self.memory.looks = 0;
        self.memory.sounded = Some(Instant::now());
        if let Some((wake, _)) = &self.wake {
            wake.feed(samples);
        }
        if self.is_deaf() {
            segmenter.reset_until_quiet();
            if self.memory.is_heard {
                self.memory.is_heard = false;
                self.unheard("the gateway itself began to speak");
            }
            return;
        }
        // A tone is no part of what is said; a file, which is read faster than it sounds, has none in it.
        if !can_wait(self.input) && self.speaker.tone_sounds() {
            return;
        }
        self.take(segmenter.hear(samples, Instant::now())).await;
    }

    /// Without a wake word or a key the gateway would answer itself: it does not listen while it sounds. A file has no echo.
    fn is_deaf(&mut self) -> bool {
        if self.mode != Mode::Always || can_wait(self.input) {
            return false;
        }
        let now = Instant::now();
        if self
            .memory
            .called
            .is_some_and(|called| now < called + FADING)
        {
            return false;
        }
        if self.speaker.sounds() {
            self.memory.deaf_until = Some(now + ECHO);
        }
        self.memory.deaf_until.is_some_and(|until| now < until)
    }

    /// Its name, or a key: whatever is said now is cut short, and the next words count.
    async fn woken(&mut self, segmenter: &mut Segmenter, name: Option<String>, at: Instant) {
        if self.speaker.sounds() {
            segmenter.forget_until(at);
        }
        self.transcriber.interrupt();
        self.speaker.stop();
        let notices = segmenter.arm(name, at);
        // Whoever goes on speaking knows that it listens.
        if self.settings.tones && !segmenter.goes_on() {
            self.speaker.tone(Tone::Wake);
        }
        self.memory.called = Some(Instant::now());
        self.memory.deaf_until = None;
        self.hub.ear(hub::Ear::Listening);
        self.take(notices).await;
    }

    /// A question was asked aloud: its answer needs no name and no key.
    async fn await_answer(&mut self, segmenter: &mut Segmenter) {
        if self.mode == Mode::Always {
            return self.hub.event(Event::State(&State::Listening));
        }
        let now = Instant::now();
        segmenter.forget_until(now);
        let notices = segmenter.arm(None, now);
        if self.settings.tones {
            self.speaker.tone(Tone::Wake);
        }
        self.hub.ear(hub::Ear::Listening);
        self.take(notices).await;
    }

    fn unheard(&mut self, why: &str) {
        self.memory.is_empty = false;
        self.hub.unheard(source(self.input), why);
    }

    fn file_begins(&mut self, file: &Path) {
        self.memory.is_empty = true;
        self.hub.event(Event::File(file));
    }

    /// Whoever gave the file is told what became of it.
    fn file_ends(&mut self) {
        if self.memory.is_empty {
            self.unheard(NO_REQUEST);
        }
    }

    async fn take(&mut self, notices: Vec<Notice>) {
        for notice in notices {
            match notice {
                Notice::Began => {
                    self.memory.is_heard = true;
                    self.hub.ear(hub::Ear::Hearing);
                    self.satellite.speaks();
                }
                Notice::Level(level) => self.hub.event(Event::Level(level)),
                Notice::Cut(why) => tracing::warn!("{why}"),
                Notice::Dropped(why) => {
                    self.unheard(why);
                    self.satellite.said_nothing();
                }
                Notice::Over(utterance) => {
                    self.memory.is_heard = false;
                    self.hub.quiet();
                    self.satellite.spoke();
                    self.memory.given += 1;
                    self.memory.is_empty = false;
                    // What finds no room is told of by the transcriber itself.
                    let _is_taken = self.transcriber.hear(utterance).is_ok();
                    if can_wait(self.input) {
                        self.hub.until_over(self.memory.given).await;
                    }
                }
            }
        }
    }
}

/// The next of something that may never come.
async fn news<T>(from: Option<&mut mpsc::Receiver<T>>) -> T {
    match from {
        Some(from) => match from.recv().await {
            Some(news) => news,
            None => pending().await,
        },
        None => pending().await,
    }
}

/// False if it is over for good once it ends.
pub(super) fn comes_again(input: &Input) -> bool {
    !matches!(input, Input::Stdin { .. } | Input::Wav(_))
}

/// True if nothing is lost while nobody reads: a file has time, a microphone behind a pipe has not.
pub(super) fn can_wait(input: &Input) -> bool {
    match input {
        Input::Wav(_) => true,
        Input::Stdin { .. } => std::fs::metadata("/dev/stdin").is_ok_and(|stdin| stdin.is_file()),
        _ => false,
    }
}
