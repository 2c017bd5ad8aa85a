//! Finds where speech starts and ends.
//!
//! Time is counted in samples, not by a clock: a file that is read at once is cut like live sound.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use earshot::Detector;
use tokio::time::Instant;

use super::Utterance;
use super::rules::{FRAME_LEN, ScoredFrame, SegmenterPhase, SegmenterRules, SpeechStart};
use crate::VoiceSettings;
use crate::audio::{level, sample_time};

const FRAME_TIME: Duration = Duration::from_millis(16);
const METER_FRAMES: usize = 8;
const TOO_LONG: &str = "the request was longer than 'maxCommand' allows; the rest was left out";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArmingMode {
    Always,
    /// Only listen after [`Segmenter::arm`].
    WhenWoken,
}

// A third of a second, in frames. A request that follows the wake word sooner was spoken in one
// breath with it.
const BREATH_FRAMES: usize = 20;
// Words contain pauses, before a plosive for example: a fifth of a second, in frames.
const MAX_PAUSE_IN_WORD: usize = 12;

#[derive(Debug, Clone)]
pub(crate) enum SegmentNotice {
    Began,
    Level(f32),
    Finished(Utterance),
    /// The last request, which is already being answered, was too long and cut. The text says why.
    Cut(&'static str),
    Dropped(&'static str),
}

/// Cuts a stream of sound into utterances by Home Assistant's rules, with one exception: a
/// short pause no longer counts once speech goes on. So a speaker who halts twice in a sentence
/// is not cut off.
pub(crate) struct Segmenter {
    detector: Box<Detector>,
    sensitivity: f32,
    rules: SegmenterRules,
    listening: ArmingMode,
    room: Option<String>,
    phase: SegmenterPhase,
    woken: Option<(Option<String>, Instant)>,
    rest: Vec<i16>,
    recent: VecDeque<ScoredFrame>,
    /// How many frames at the end of `recent` came after the wake word.
    since_woken: usize,
    in_one_breath: bool,
    // Kept between requests, so that the buffer grows only once.
    samples: Vec<i16>,
    meter: Vec<i16>,
}

impl Segmenter {
    pub(crate) fn new(
        settings: &VoiceSettings,
        listening: ArmingMode,
        room: Option<String>,
    ) -> Self {
        let rules = SegmenterRules::new(settings);
        let mut segmenter = Self {
            detector: Detector::default_boxed(),
            sensitivity: settings.sensitivity,
            rules,
            listening,
            room,
            phase: SegmenterPhase::Asleep,
            woken: None,
            rest: Vec::with_capacity(FRAME_LEN),
            recent: VecDeque::with_capacity(rules.recent),
            since_woken: 0,
            in_one_breath: false,
            samples: Vec::new(),
            meter: Vec::with_capacity(METER_FRAMES * FRAME_LEN),
        };
        segmenter.reset();
        segmenter
    }

    /// Processes more sound, whose last sample was captured at `now`.
    pub(crate) fn feed(&mut self, samples: &[i16], now: Instant) -> Vec<SegmentNotice> {
        let (mut notices, mut samples) = (Vec::new(), samples);
        while self.rest.len() + samples.len() >= FRAME_LEN {
            let (part, after) = samples.split_at(FRAME_LEN - self.rest.len());
            samples = after;
            self.rest.extend_from_slice(part);
            let mut frame = ScoredFrame {
                samples: [0; FRAME_LEN],
                score: self.detector.predict_i16(&self.rest),
                at: time_before(now, samples.len()),
            };
            frame.samples.copy_from_slice(&self.rest);
            self.rest.clear();
            self.process_frame(&frame, &mut notices);
        }
        self.rest.extend_from_slice(samples);
        notices
    }

    /// Allows a request that starts soon after `heard`, when a wake word or key was noticed.
    /// Earlier speech is dropped, even a request that has started. Speech that follows the wake
    /// word without a pause counts from its start, because services report the word late.
    pub(crate) fn arm(&mut self, wake_word: Option<String>, heard: Instant) -> Vec<SegmentNotice> {
        self.woken = Some((wake_word, heard));
        self.phase = SegmenterPhase::Waiting {
            left: Some(self.rules.patience),
            start: None,
        };
        // The report may be late, and the speaker doesn't wait for it.
        let before = self.recent.iter().rposition(|frame| frame.at <= heard);
        let first = before.map_or(0, |last| last + 1);
        let behind: Vec<ScoredFrame> = self.recent.drain(first..).collect();
        let kept = match &self.woken {
            Some((Some(_), _)) => self.request_frames_in_breath(),
            _ => 0,
        };
        self.recent.drain(..first - kept);
        self.since_woken = 0;
        let mut notices = Vec::new();
        for frame in &behind {
            self.step_without_meter(frame, &mut notices);
        }
        notices
    }

    /// Drops everything captured until `then`: it was the gateway's own voice.
    pub(crate) fn forget_until(&mut self, then: Instant) {
        self.recent.retain(|frame| frame.at > then);
    }

    pub(crate) fn is_mid_speech(&self) -> bool {
        self.recent.len() > self.since_woken
    }

    /// Counts the latest frames that belong to a request spoken in one breath with the wake word.
    /// They start at the quietest place where the word may have ended.
    fn request_frames_in_breath(&self) -> usize {
        let [most, least] = self.rules.wake_word_ended;
        let breath = self.speech_without_pause(most);
        let loudness = |ago: &usize| {
            let around = self.recent.iter().rev().skip(ago - 2).take(3);
            let samples = around.flat_map(|frame| frame.samples);
            let amplitudes = samples.map(|sample| u32::from(sample.unsigned_abs()));
            amplitudes.sum::<u32>()
        };
        let ends = (least.max(2)..=breath).rev();
        ends.min_by_key(loudness).unwrap_or(breath)
    }

    fn speech_without_pause(&self, most: usize) -> usize {
        let (mut breath, mut next) = (0, None);
        let frames = self.recent.iter().rev().take(most);
        for (index, frame) in frames.enumerate() {
            // A gap in the stream is a pause too.
            let is_missing = next.is_some_and(|next| frame.at + 4 * FRAME_TIME < next);
            if is_missing || index - breath >= MAX_PAUSE_IN_WORD {
                break;
            }
            next = Some(frame.at);
            if frame.score > self.sensitivity {
                breath = index + 1;
            }
        }
        breath
    }

    /// Ends the current request: the key was released, or no more sound will come.
    pub(crate) fn end(&mut self, now: Instant) -> Vec<SegmentNotice> {
        let mut notices = Vec::new();
        match self.phase {
            SegmenterPhase::Hearing { began, .. } => {
                self.finish_utterance(began, now, &mut notices);
            }
            SegmenterPhase::Waiting { left: Some(_), .. } => self.give_up(&mut notices),
            _ => {}
        }
        notices
    }

    fn reset(&mut self) {
        self.detector.reset();
        self.rest.clear();
        self.recent.clear();
        self.meter.clear();
        self.go_idle();
    }

    // The rest of a sentence whose start was missed is not a request, so wait for a pause.
    pub(crate) fn reset_until_quiet(&mut self) {
        self.reset();
        if let ArmingMode::Always = self.listening {
            self.phase = SegmenterPhase::Missed { quiet: 0 };
        }
    }

    fn process_frame(&mut self, frame: &ScoredFrame, notices: &mut Vec<SegmentNotice>) {
        self.meter.extend_from_slice(&frame.samples);
        if self.meter.len() >= METER_FRAMES * FRAME_LEN {
            notices.push(SegmentNotice::Level(level(&self.meter)));
            self.meter.clear();
        }
        self.step_without_meter(frame, notices);
    }

    fn step_without_meter(&mut self, frame: &ScoredFrame, notices: &mut Vec<SegmentNotice>) {
        if self.recent.len() == self.rules.recent {
            self.recent.pop_front();
        }
        self.recent.push_back(*frame);
        self.since_woken = (self.since_woken + 1).min(self.recent.len());
        let speech = frame.score > self.sensitivity;
        match self.phase {
            SegmenterPhase::Asleep => {}
            SegmenterPhase::Waiting { .. } => self.step_waiting(frame, speech, notices),
            SegmenterPhase::Hearing { .. } => self.step_hearing(frame, speech, notices),
            SegmenterPhase::Overlong { .. } => self.step_overlong(speech, notices),
            SegmenterPhase::Missed { quiet } if !speech && quiet + 1 >= BREATH_FRAMES => {
                self.go_idle();
            }
            SegmenterPhase::Missed { quiet } => {
                let quiet = if speech { 0 } else { quiet + 1 };
                self.phase = SegmenterPhase::Missed { quiet };
            }
        }
    }

    fn step_waiting(
        &mut self,
        frame: &ScoredFrame,
        speech: bool,
        notices: &mut Vec<SegmentNotice>,
    ) {
        let SegmenterPhase::Waiting { left, start } = &mut self.phase else {
            return;
        };
        let so_far = start.unwrap_or(SpeechStart {
            began: time_before(frame.at, FRAME_LEN),
            length: 0,
            spoken: 0,
        });
        let spoken = match speech {
            true => so_far.spoken + 1,
            false => so_far.spoken.saturating_sub(1),
        };
        let length = so_far.length + 1;
        let now = SpeechStart {
            length,
            spoken,
            ..so_far
        };
        *start = (now.spoken > 0).then_some(now);
        if now.spoken >= self.rules.min_speech {
            self.begin_utterance(now, notices);
        } else if let Some(left) = left {
            *left = left.saturating_sub(1);
            // Somebody may be starting to speak right now.
            if *left == 0 && now.spoken == 0 {
                self.give_up(notices);
            }
        }
    }

    fn begin_utterance(&mut self, start: SpeechStart, notices: &mut Vec<SegmentNotice>) {
        let mut kept = start.length + self.rules.pre_roll;
        if self.woken.is_some() {
            let paused = self.since_woken.saturating_sub(start.length);
            self.in_one_breath = paused <= BREATH_FRAMES && self.is_mid_speech();
            kept = match self.in_one_breath {
                // All of it: the transcript filter removes what is left of the wake word.
                true => self.recent.len(),
                false => kept.min(self.since_woken),
            };
        }
        let first = self.recent.len().saturating_sub(kept);
        self.samples.clear();
        for frame in self.recent.range(first..) {
            self.samples.extend_from_slice(&frame.samples);
        }
        self.phase = SegmenterPhase::Hearing {
            length: start.length,
            quiet: 0,
            resumed: 0,
            began: start.began,
        };
        notices.push(SegmentNotice::Began);
    }

    fn step_hearing(
        &mut self,
        frame: &ScoredFrame,
        speech: bool,
        notices: &mut Vec<SegmentNotice>,
    ) {
        let SegmenterPhase::Hearing {
            length,
            quiet,
            resumed,
            began,
        } = &mut self.phase
        else {
            return;
        };
        self.samples.extend_from_slice(&frame.samples);
        *length += 1;
        if speech {
            *resumed += 1;
            if *resumed >= self.rules.resumed {
                *quiet = 0;
            }
        } else {
            *resumed = 0;
            *quiet += 1;
        }
        let (length, quiet, began) = (*length, *quiet, *began);
        if quiet >= self.rules.silence && length >= self.rules.min_command {
            self.finish_utterance(began, frame.at, notices);
        } else if length >= self.rules.max_command {
            self.finish_utterance(began, frame.at, notices);
            self.phase = SegmenterPhase::Overlong { quiet, spoken: 0 };
        }
    }

    fn finish_utterance(
        &mut self,
        began: Instant,
        ended: Instant,
        notices: &mut Vec<SegmentNotice>,
    ) {
        let in_one_breath = std::mem::take(&mut self.in_one_breath);
        let (wake_word, began) = self.woken.take().unwrap_or((None, began));
        notices.push(SegmentNotice::Finished(Utterance {
            samples: Arc::from(self.samples.as_slice()),
            began,
            wake_word,
            in_one_breath,
            ended,
            room: self.room.clone(),
        }));
        self.go_idle();
    }

    fn step_overlong(&mut self, speech: bool, notices: &mut Vec<SegmentNotice>) {
        let SegmenterPhase::Overlong { quiet, spoken } = &mut self.phase else {
            return;
        };
        if speech {
            *quiet = 0;
            *spoken += 1;
            return;
        }
        *quiet += 1;
        if *quiet >= self.rules.silence {
            if *spoken >= self.rules.min_speech {
                notices.push(SegmentNotice::Cut(TOO_LONG));
            }
            self.go_idle();
        }
    }

    fn give_up(&mut self, notices: &mut Vec<SegmentNotice>) {
        notices.push(SegmentNotice::Dropped("nothing was said"));
        self.go_idle();
    }

    fn go_idle(&mut self) {
        self.woken = None;
        self.in_one_breath = false;
        self.samples.clear();
        self.phase = match self.listening {
            ArmingMode::Always => SegmenterPhase::Waiting {
                left: None,
                start: None,
            },
            ArmingMode::WhenWoken => SegmenterPhase::Asleep,
        };
    }
}

fn time_before(now: Instant, samples: usize) -> Instant {
    now.checked_sub(sample_time(samples)).unwrap_or(now)
}

#[cfg(test)]
mod tests;
