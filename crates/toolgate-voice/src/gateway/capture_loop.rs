//! The capture loop: passes sound to the wake word client and the segmenter, and utterances to the
//! transcriber. It waits for an answer only if the input is a file, which can wait.

use std::fs;
use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use super::event_hub::{CaptureState, EventHub};
use super::lazy_engines::LazyOutput;
use super::run::source_name;
use super::satellite_feedback::SatelliteFeedback;
use super::{ListenMode, VoiceKey};
use crate::capture::{self, AudioInput, AudioSource, CaptureEvent, OpenInput, SatelliteLink};
use crate::segment::{ArmingMode, SegmentNotice, Segmenter, WakeNotice, WakeWordClient};
use crate::speak::{SignalTone, Speaker};
use crate::turn::{BackgroundTranscriber, EngineHealth};
use crate::{EngineError, EngineRole, VoiceEvent, VoiceObserver, VoiceSettings, VoiceState};

const RETRY_DELAYS: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
];
// The microphone still hears the gateway's own voice for a moment after the last word.
const ECHO_TAIL: Duration = Duration::from_millis(300);
// How long the stream may stall, beyond the silence that ends a request.
const STALL_TIMEOUT: Duration = Duration::from_secs(1);
/// Reported for a file without speech or without the wake word.
const NO_REQUEST: &str = "no request in this file";
// A voice that was stopped is still audible for a moment.
const FADE_OUT: Duration = Duration::from_millis(150);

pub(super) struct CaptureLoop<'a> {
    pub(super) settings: &'a VoiceSettings,
    pub(super) input: &'a AudioInput,
    pub(super) mode: ListenMode,
    pub(super) hub: Arc<EventHub>,
    pub(super) engines: Arc<EngineHealth>,
    pub(super) speaker: Speaker,
    pub(super) output: &'a LazyOutput,
    pub(super) satellite: &'a SatelliteFeedback,
    pub(super) transcriber: &'a BackgroundTranscriber,
    pub(super) wake: Option<(WakeWordClient, mpsc::Receiver<WakeNotice>)>,
    pub(super) keys: Option<mpsc::Receiver<VoiceKey>>,
    pub(super) memory: CaptureMemory,
}

/// State that outlives one connection to the input.
#[derive(Default)]
pub(super) struct CaptureMemory {
    utterances: u64,
    failed_opens: usize,
    ignore_until: Option<Instant>,
    last_sound: Option<Instant>,
    is_speaking: bool,
    file_has_no_request: bool,
    woken_at: Option<Instant>,
}

impl CaptureLoop<'_> {
    pub(super) async fn run(&mut self, opened: Option<OpenInput>) -> Result<(), EngineError> {
        let mut next = opened;
        loop {
            let opened = match next.take() {
                Some(opened) => opened,
                None => self.reopen().await,
            };
            // A service that answers works. A program has to send sound first: see `feed_sound`.
            if let AudioInput::Wyoming(_) = self.input {
                self.engines.mark_working(EngineRole::Microphone);
            }
            let heard = self.capture(opened).await;
            if !can_reopen(self.input) {
                self.hub.wait_for_utterances(self.memory.utterances).await;
                return heard;
            }
            let why = heard.map_or_else(|error| error.to_string(), |()| "it ended".to_owned());
            self.engines.mark_lost(EngineRole::Microphone, &why);
        }
    }

    async fn reopen(&mut self) -> OpenInput {
        loop {
            let wait = RETRY_DELAYS[self.memory.failed_opens.min(RETRY_DELAYS.len() - 1)];
            self.memory.failed_opens += 1;
            sleep(wait).await;
            match capture::open(self.input).await {
                Ok(opened) => return opened,
                Err(error) => {
                    self.engines.mark_lost(EngineRole::Microphone, &error);
                }
            }
        }
    }

    async fn capture(&mut self, opened: OpenInput) -> Result<(), EngineError> {
        self.connect(opened.link);
        let mut segmenter = self.new_segmenter(opened.room);
        // The wake word service needs real time to hear its word in a file.
        let mut source = match (&self.wake, self.input) {
            (Some(_), AudioInput::Wav(_)) => capture::in_real_time(opened.source),
            _ => opened.source,
        };
        let mut first = opened.first;
        let mut questions = self.transcriber.subscribe_to_questions();
        loop {
            let stall = self.stall_deadline();
            tokio::select! {
                Ok(()) = questions.changed() => self.await_answer(&mut segmenter).await,
                heard = next_event(&mut first, source.as_mut()) => match heard? {
                    Some(CaptureEvent::Sound(samples)) => self.feed_sound(&mut segmenter, &samples).await,
                    Some(CaptureEvent::Woken(name)) => self.wake_up(&mut segmenter, name, Instant::now()).await,
                    Some(CaptureEvent::FileBegins(file)) => self.begin_file(&file),
                    Some(CaptureEvent::FileEnds) => self.end_file(),
                    None => {
                        self.handle_notices(segmenter.end(Instant::now())).await;
                        return Ok(());
                    }
                },
                notice = recv_or_pend(self.wake.as_mut().map(|(_, notices)| notices)) => match notice {
                    WakeNotice::Woken { wake_word, heard } => self.wake_up(&mut segmenter, wake_word, heard).await,
                    WakeNotice::Lost(error) => drop(self.engines.mark_lost(EngineRole::Wake, &error)),
                    WakeNotice::Back => self.engines.mark_working(EngineRole::Wake),
                },
                key = recv_or_pend(self.keys.as_mut()) => match key {
                    VoiceKey::Talk => self.wake_up(&mut segmenter, None, Instant::now()).await,
                },
                () = sleep_until(stall.unwrap_or_else(Instant::now)), if stall.is_some() => {
                    self.handle_notices(segmenter.end(Instant::now())).await;
                }
            }
        }
    }

    // The segmenter counts time in sound, so a stream that stalls would never end a request.
    fn stall_deadline(&self) -> Option<Instant> {
        let is_live = self.memory.is_speaking && !can_wait(self.input);
        let last = self.memory.last_sound.filter(|_| is_live)?;
        Some(last + self.settings.silence + STALL_TIMEOUT)
    }

    fn connect(&self, link: Option<SatelliteLink>) {
        self.satellite.connect(link.clone());
        if let Some(link) = link {
            self.output.connect(link);
        }
    }

    fn new_segmenter(&self, room: Option<String>) -> Segmenter {
        let listening = match self.mode {
            ListenMode::Always => ArmingMode::Always,
            ListenMode::Wake | ListenMode::PushToTalk => ArmingMode::WhenWoken,
        };
        Segmenter::new(self.settings, listening, room)
    }

    async fn feed_sound(&mut self, segmenter: &mut Segmenter, samples: &[i16]) {
        // A recorder without a sound card starts and then ends, so only sound counts as working.
        self.engines.mark_working(EngineRole::Microphone);
        self.memory.failed_opens = 0;
        self.memory.last_sound = Some(Instant::now());
        if let Some((wake, _)) = &self.wake {
            wake.feed(samples);
        }
        if self.ignores_sound() {
            segmenter.reset_until_quiet();
            if self.memory.is_speaking {
                self.memory.is_speaking = false;
                self.report_dropped("the gateway started to speak");
            }
            return;
        }
        // Tones are not part of the request. A file, which is read faster than real time,
        // has none in it.
        if !can_wait(self.input) && self.speaker.is_tone_sounding() {
            return;
        }
        self.handle_notices(segmenter.feed(samples, Instant::now()))
            .await;
    }

    // Without a wake word or a key, the gateway would answer its own voice. A file has no echo.
    fn ignores_sound(&mut self) -> bool {
        if self.mode != ListenMode::Always || can_wait(self.input) {
            return false;
        }
        let now = Instant::now();
        let woken_at = self.memory.woken_at;
        if woken_at.is_some_and(|at| now < at + FADE_OUT) {
            return false;
        }
        if self.speaker.is_sounding() {
            self.memory.ignore_until = Some(now + ECHO_TAIL);
        }
        self.memory.ignore_until.is_some_and(|until| now < until)
    }

    /// Handles the wake word or a key: stops the voice, and takes the next words as the request.
    async fn wake_up(&mut self, segmenter: &mut Segmenter, name: Option<String>, at: Instant) {
        if self.speaker.is_sounding() {
            segmenter.forget_until(at);
        }
        self.transcriber.interrupt();
        self.speaker.stop();
        let notices = segmenter.arm(name, at);
        // The tone would cover the words of somebody who is still speaking.
        if self.settings.tones && !segmenter.is_mid_speech() {
            self.speaker.play_tone(SignalTone::Wake);
        }
        self.memory.woken_at = Some(Instant::now());
        self.memory.ignore_until = None;
        self.hub.set_capture(CaptureState::Listening);
        self.handle_notices(notices).await;
    }

    // The answer to the gateway's own question needs neither a wake word nor a key.
    async fn await_answer(&mut self, segmenter: &mut Segmenter) {
        if self.mode == ListenMode::Always {
            return self.hub.event(VoiceEvent::State(&VoiceState::Listening));
        }
        let now = Instant::now();
        segmenter.forget_until(now);
        let notices = segmenter.arm(None, now);
        if self.settings.tones {
            self.speaker.play_tone(SignalTone::Wake);
        }
        self.hub.set_capture(CaptureState::Listening);
        self.handle_notices(notices).await;
    }

    fn report_dropped(&mut self, why: &str) {
        self.memory.file_has_no_request = false;
        self.hub.report_dropped(source_name(self.input), why);
    }

    fn begin_file(&mut self, file: &Path) {
        self.memory.file_has_no_request = true;
        self.hub.event(VoiceEvent::File(file));
    }

    // Otherwise nothing would be reported for a file without a request.
    fn end_file(&mut self) {
        if self.memory.file_has_no_request {
            self.report_dropped(NO_REQUEST);
        }
    }

    async fn handle_notices(&mut self, notices: Vec<SegmentNotice>) {
        for notice in notices {
            match notice {
                SegmentNotice::Began => {
                    self.memory.is_speaking = true;
                    self.hub.set_capture(CaptureState::Hearing);
                    self.satellite.speech_started();
                }
                SegmentNotice::Level(level) => self.hub.event(VoiceEvent::Level(level)),
                SegmentNotice::Cut(why) => tracing::warn!("{why}"),
                SegmentNotice::Dropped(why) => {
                    self.report_dropped(why);
                    self.satellite.send_empty_transcript();
                }
                SegmentNotice::Finished(utterance) => {
                    self.memory.is_speaking = false;
                    self.hub.return_to_idle();
                    self.satellite.speech_stopped();
                    self.memory.utterances += 1;
                    self.memory.file_has_no_request = false;
                    // If the queue is full, the transcriber reports it itself.
                    let _is_taken = self.transcriber.submit(utterance).is_ok();
                    if can_wait(self.input) {
                        self.hub.wait_for_utterances(self.memory.utterances).await;
                    }
                }
            }
        }
    }
}

async fn next_event(
    first: &mut Option<Option<CaptureEvent>>,
    source: &mut dyn AudioSource,
) -> Result<Option<CaptureEvent>, EngineError> {
    match first.take() {
        Some(first) => Ok(first),
        None => source.next().await,
    }
}

/// Receives the next message. Pends forever without a channel or once it is closed, so
/// that `select!` ignores it.
async fn recv_or_pend<T>(from: Option<&mut mpsc::Receiver<T>>) -> T {
    if let Some(from) = from
        && let Some(message) = from.recv().await
    {
        return message;
    }
    pending().await
}

pub(super) fn can_reopen(input: &AudioInput) -> bool {
    !matches!(input, AudioInput::Stdin { .. } | AudioInput::Wav(_))
}

/// True if no sound is lost while nobody reads. That holds for a file, but not for a
/// microphone behind a pipe.
pub(super) fn can_wait(input: &AudioInput) -> bool {
    match input {
        AudioInput::Wav(_) => true,
        AudioInput::Stdin { .. } => fs::metadata("/dev/stdin").is_ok_and(|stdin| stdin.is_file()),
        _ => false,
    }
}
