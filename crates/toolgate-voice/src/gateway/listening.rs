//! The ear: sound goes to the wake word and to the detector of speech, utterances to the transcriber. Nothing here waits for
//! an answer, but for files, which have time.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::hub::Hub;
use super::outlet::Outlet;
use super::run::ends;
use super::satellite::Satellite;
use super::{Key, Mode};
use crate::hear::{self, Heard, Input, Opened};
use crate::listen::{Listening, Notice, Segmenter, Wake, WakeNotice};
use crate::turn::BackgroundTranscriber;
use crate::{EngineError, Event, Role, Speaker, State, Tone, VoiceSettings, Watcher};

/// Waits between two looks for a microphone that is away.
const RETRY: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
];
/// How long a room rings after a word: sound of the gateway's own voice.
const ECHO: Duration = Duration::from_millis(300);

/// Everything an ear needs.
pub(super) struct Ear<'a> {
    pub(super) settings: &'a VoiceSettings,
    pub(super) input: &'a Input,
    pub(super) mode: Mode,
    pub(super) hub: Arc<Hub>,
    pub(super) speaker: Speaker,
    pub(super) outlet: &'a Outlet,
    pub(super) satellite: &'a Satellite,
    pub(super) transcriber: &'a BackgroundTranscriber,
    pub(super) wake: Option<(Wake, mpsc::Receiver<WakeNotice>)>,
    pub(super) keys: Option<mpsc::Receiver<Key>>,
}

/// Whether there is more to hear.
enum Next {
    More,
    End,
}

impl Ear<'_> {
    /// Hears until the input ends; one that never does is opened again whenever it is lost.
    pub(super) async fn listen(
        &mut self,
        opened: Option<Opened>,
        stop: &CancellationToken,
    ) -> Result<(), EngineError> {
        let mut next = opened;
        loop {
            let opened = match next.take() {
                Some(opened) => opened,
                None => tokio::select! {
                    opened = self.reopen() => opened,
                    () = stop.cancelled() => return Ok(()),
                },
            };
            let heard = tokio::select! {
                heard = self.hear(opened) => heard,
                () = stop.cancelled() => return Ok(()),
            };
            match heard {
                Ok(()) if ends(self.input) => return Ok(()),
                Err(error) if ends(self.input) => return Err(error),
                Ok(()) => self.lose("it ended"),
                Err(error) => self.lose(&error.to_string()),
            }
        }
    }

    fn lose(&self, why: &str) {
        let role = Role::Microphone;
        self.hub.event(Event::Lost { role, why });
    }

    async fn reopen(&self) -> Opened {
        let mut waits = RETRY
            .iter()
            .chain(std::iter::repeat(&RETRY[RETRY.len() - 1]));
        loop {
            sleep(waits.next().copied().unwrap_or_default()).await;
            match hear::open(self.input).await {
                Ok(opened) => {
                    self.hub.event(Event::Back(Role::Microphone));
                    return opened;
                }
                Err(error) => self.lose(&error.to_string()),
            }
        }
    }

    /// One source, to its end.
    async fn hear(&mut self, mut opened: Opened) -> Result<(), EngineError> {
        let listening = match self.mode {
            Mode::Always => Listening::Always,
            Mode::Wake | Mode::PushToTalk => Listening::WhenWoken,
        };
        self.satellite.connect(opened.link.clone());
        if let Some(link) = opened
            .link
            .clone()
            .filter(|_| self.settings.output.is_empty())
        {
            self.outlet.exchange(Arc::new(link));
        }
        // A name in a file is heard by another process, which needs its time.
        if self.wake.is_some() && matches!(self.input, Input::Wav(_)) {
            opened.source = hear::paced(opened.source);
        }
        let mut segmenter = Segmenter::new(self.settings, listening, opened.room.clone());
        let mut state = self.hub.state();
        let mut deaf_until = None;
        loop {
            let next = tokio::select! {
                heard = opened.source.next() => match heard? {
                    Some(Heard::Sound(samples)) => {
                        if self.is_deaf(&mut state, &mut deaf_until) {
                            segmenter.reset();
                            self.watch_for_name(&samples);
                            Next::More
                        } else {
                            self.watch_for_name(&samples);
                            self.take(segmenter.hear(&samples, Instant::now())).await
                        }
                    }
                    Some(Heard::Woken(name)) => self.woken(&mut segmenter, name, Instant::now()).await,
                    None => {
                        self.take(segmenter.end(Instant::now())).await;
                        Next::End
                    }
                },
                notice = news(self.wake.as_mut().map(|(_, news)| news)) => {
                    self.called(&mut segmenter, notice).await
                }
                key = news(self.keys.as_mut()) => match key {
                    Key::Talk => self.woken(&mut segmenter, None, Instant::now()).await,
                },
            };
            if let Next::End = next {
                return Ok(());
            }
        }
    }

    fn watch_for_name(&self, samples: &[i16]) {
        if let Some((wake, _)) = &self.wake {
            wake.feed(samples);
        }
    }

    /// Without a wake word or a key the gateway would answer itself: it does not listen while it speaks. A file has no echo.
    fn is_deaf(&self, state: &mut watch::Receiver<State>, until: &mut Option<Instant>) -> bool {
        if self.mode != Mode::Always || ends(self.input) {
            return false;
        }
        if *state.borrow_and_update() == State::Speaking {
            *until = Some(Instant::now() + ECHO);
        }
        until.is_some_and(|until| Instant::now() < until)
    }

    async fn called(&self, segmenter: &mut Segmenter, notice: WakeNotice) -> Next {
        let role = Role::Wake;
        match notice {
            WakeNotice::Woken { wake_word, heard } => self.woken(segmenter, wake_word, heard).await,
            WakeNotice::Lost(error) => {
                let why = &error.to_string();
                self.hub.event(Event::Lost { role, why });
                Next::More
            }
            WakeNotice::Back => {
                self.hub.event(Event::Back(role));
                Next::More
            }
        }
    }

    /// Its name, or a key: whatever is said now is cut short, and the next words count.
    async fn woken(&self, segmenter: &mut Segmenter, name: Option<String>, at: Instant) -> Next {
        self.transcriber.interrupt();
        self.speaker.stop();
        if self.settings.tones {
            self.speaker.tone(Tone::Wake);
        }
        self.hub.event(Event::State(&State::Listening));
        self.take(segmenter.arm(name, at)).await;
        Next::More
    }

    async fn take(&self, notices: Vec<Notice>) -> Next {
        for notice in notices {
            match notice {
                Notice::Began => self.hub.event(Event::State(&State::Hearing)),
                Notice::Level(level) => self.hub.event(Event::Level(level)),
                Notice::Dropped(why) => self.hub.event(Event::Dropped(why)),
                Notice::Over(utterance) => {
                    let over = self.hub.over();
                    // What finds no room is told of by the transcriber itself.
                    let is_taken = self.transcriber.hear(utterance).is_ok();
                    if is_taken && ends(self.input) {
                        self.hub.wait_for_more(over).await;
                    }
                }
            }
        }
        Next::More
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
