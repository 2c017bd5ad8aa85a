//! Where speech begins and ends.
//!
//! Time is counted in sound, not by a clock: a file that is read at once is cut as a microphone would be.

mod phase;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use earshot::Detector;
use tokio::time::Instant;

use self::phase::{Frame, Phase, Start};
use super::Utterance;
use super::rules::{FRAME, Rules};
use crate::VoiceSettings;
use crate::audio::{RATE, level};

const FRAME_TIME: Duration = Duration::from_millis(16);
/// The level is told once for this many frames, about eight times a second.
const METER: usize = 8;
const NOTHING_SAID: &str = "it was called, and nothing was said";
const TOO_LONG: &str = "the request was longer than 'maxCommand' allows; the rest was left out";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listening {
    Always,
    /// Only what follows [`Segmenter::arm`].
    WhenWoken,
}

/// How long it must be quiet between what was missed and a request, in frames of 16 ms: a third of a second. Whoever goes on
/// sooner speaks in one breath.
const BREATH: usize = 20;
/// The pauses within words, before a plosive for example, in frames: a fifth of a second.
const WITHIN_WORDS: usize = 12;

#[derive(Debug, Clone)]
pub(crate) enum Notice {
    Began,
    /// How loud it is, from 0 to 1.
    Level(f32),
    Over(Utterance),
    /// The last request, which is being answered, was cut; the text says why.
    Cut(&'static str),
    /// Something came to nothing; the text says what.
    Dropped(&'static str),
}

/// Cuts a stream of sound into utterances, by Home Assistant's rules but one: a short pause is forgotten as soon as speech goes
/// on, so that somebody who halts twice in a sentence is not cut off.
pub(crate) struct Segmenter {
    detector: Box<Detector>,
    sensitivity: f32,
    rules: Rules,
    listening: Listening,
    room: Option<String>,
    phase: Phase,
    /// The wake word that allows the request, and when it was heard.
    woken: Option<(Option<String>, Instant)>,
    rest: Vec<i16>,
    recent: VecDeque<Frame>,
    /// How much of `recent`, at its end, was heard since the wake word.
    since_woken: usize,
    /// The wake word is part of what is being said.
    in_one_breath: bool,
    /// What is being said. Kept between requests, so that it grows only once.
    samples: Vec<i16>,
    meter: Vec<i16>,
}

impl Segmenter {
    /// Hears nothing yet. `room` is where its microphone is.
    pub(crate) fn new(
        settings: &VoiceSettings,
        listening: Listening,
        room: Option<String>,
    ) -> Self {
        let rules = Rules::new(settings);
        let mut segmenter = Self {
            detector: Detector::default_boxed(),
            sensitivity: settings.sensitivity,
            rules,
            listening,
            room,
            phase: Phase::Asleep,
            woken: None,
            rest: Vec::with_capacity(FRAME),
            recent: VecDeque::with_capacity(rules.recent),
            since_woken: 0,
            in_one_breath: false,
            samples: Vec::new(),
            meter: Vec::with_capacity(METER * FRAME),
        };
        segmenter.reset();
        segmenter
    }

    /// Hears more; its last sample was heard at `now`.
    pub(crate) fn hear(&mut self, samples: &[i16], now: Instant) -> Vec<Notice> {
        let mut notices = Vec::new();
        let mut samples = samples;
        while self.rest.len() + samples.len() >= FRAME {
            let (part, after) = samples.split_at(FRAME - self.rest.len());
            samples = after;
            self.rest.extend_from_slice(part);
            let mut frame = [0; FRAME];
            frame.copy_from_slice(&self.rest);
            self.rest.clear();
            let frame = Frame {
                samples: frame,
                score: self.detector.predict_i16(&frame),
                at: before(now, samples.len()),
            };
            self.step(&frame, &mut notices);
        }
        self.rest.extend_from_slice(samples);
        notices
    }

    /// A wake word, or a key: what is said after `heard` counts, if it begins soon. What was said before is forgotten, even a
    /// request that has begun; but what is said behind a wake word in the same breath counts from its beginning, for a service reports
    /// the word when the first one of the request was said already.
    pub(crate) fn arm(&mut self, wake_word: Option<String>, heard: Instant) -> Vec<Notice> {
        self.woken = Some((wake_word, heard));
        self.phase = Phase::Waiting {
            left: Some(self.rules.patience),
            start: None,
        };
        // The news may be late, and whoever speaks does not wait for it.
        let before = self.recent.iter().rposition(|frame| frame.at <= heard);
        let first = before.map_or(0, |last| last + 1);
        let behind: Vec<Frame> = self.recent.drain(first..).collect();
        let named = self.woken.as_ref().is_some_and(|(name, _)| name.is_some());
        let kept = if named { self.breath() } else { 0 };
        self.recent.drain(..first - kept);
        self.since_woken = 0;
        let mut notices = Vec::new();
        for frame in &behind {
            self.step_quietly(frame, &mut notices);
        }
        notices
    }

    /// What was heard until then is no part of a request, whatever is said behind it: it was the gateway's own voice.
    pub(crate) fn forget_until(&mut self, then: Instant) {
        self.recent.retain(|frame| frame.at > then);
    }

    /// True if somebody was speaking when the wake word was reported, and still may be.
    pub(crate) fn goes_on(&self) -> bool {
        self.recent.len() > self.since_woken
    }

    /// How many of the frames heard last are a request that began in the same breath as its name: from the quietest place where
    /// the name may have ended.
    fn breath(&self) -> usize {
        let [most, least] = self.rules.name_ended;
        let breath = self.speech_without_pause(most);
        let loudness = |ago: &usize| {
            let around = self.recent.iter().rev().skip(ago - 2).take(3);
            let samples = around.flat_map(|frame| frame.samples);
            samples
                .map(|sample| u32::from(sample.unsigned_abs()))
                .sum::<u32>()
        };
        let ends = (least.max(2)..=breath).rev();
        ends.min_by_key(loudness).unwrap_or(breath)
    }

    /// How many of the frames heard last are speech without a pause.
    fn speech_without_pause(&self, most: usize) -> usize {
        let (mut breath, mut next) = (0, None);
        let frames = self.recent.iter().rev().take(most);
        for (index, frame) in frames.enumerate() {
            // Sound that is missing is a pause too.
            let is_missing = next.is_some_and(|next| frame.at + 4 * FRAME_TIME < next);
            if is_missing || index - breath >= WITHIN_WORDS {
                break;
            }
            next = Some(frame.at);
            if frame.score > self.sensitivity {
                breath = index + 1;
            }
        }
        breath
    }

    /// Whatever is being said is over now: the key was released, or no more sound will come.
    pub(crate) fn end(&mut self, now: Instant) -> Vec<Notice> {
        let mut notices = Vec::new();
        match self.phase {
            Phase::Hearing { began, .. } => self.over(began, now, &mut notices),
            Phase::Waiting { left: Some(_), .. } => self.give_up(&mut notices),
            _ => {}
        }
        notices
    }

    /// Starts anew: the next sound has nothing to do with what was heard before.
    pub(crate) fn reset(&mut self) {
        self.detector.reset();
        self.rest.clear();
        self.recent.clear();
        self.meter.clear();
        self.sleep();
    }

    /// Starts anew, once it was quiet for a moment: the rest of a sentence whose beginning was missed is no request.
    pub(crate) fn reset_until_quiet(&mut self) {
        self.reset();
        if let Listening::Always = self.listening {
            self.phase = Phase::Missed { quiet: 0 };
        }
    }

    fn step(&mut self, frame: &Frame, notices: &mut Vec<Notice>) {
        self.meter.extend_from_slice(&frame.samples);
        if self.meter.len() >= METER * FRAME {
            notices.push(Notice::Level(level(&self.meter)));
            self.meter.clear();
        }
        self.step_quietly(frame, notices);
    }

    fn step_quietly(&mut self, frame: &Frame, notices: &mut Vec<Notice>) {
        if self.recent.len() == self.rules.recent {
            self.recent.pop_front();
        }
        self.recent.push_back(*frame);
        self.since_woken = (self.since_woken + 1).min(self.recent.len());
        let speech = frame.score > self.sensitivity;
        match self.phase {
            Phase::Asleep => {}
            Phase::Waiting { .. } => self.wait(frame, speech, notices),
            Phase::Hearing { .. } => self.listen(frame, speech, notices),
            Phase::Overlong { .. } => self.pass_over(speech, notices),
            Phase::Missed { .. } => self.miss(speech),
        }
    }

    fn wait(&mut self, frame: &Frame, speech: bool, notices: &mut Vec<Notice>) {
        let Phase::Waiting { left, start } = &mut self.phase else {
            return;
        };
        let so_far = start.unwrap_or(Start {
            began: before(frame.at, FRAME),
            length: 0,
            spoken: 0,
        });
        let now = Start {
            length: so_far.length + 1,
            spoken: if speech {
                so_far.spoken + 1
            } else {
                so_far.spoken.saturating_sub(1)
            },
            ..so_far
        };
        *start = (now.spoken > 0).then_some(now);
        if now.spoken >= self.rules.min_speech {
            self.begin(now, notices);
        } else if let Some(left) = left {
            *left = left.saturating_sub(1);
            // Somebody may just be beginning.
            if *left == 0 && now.spoken == 0 {
                self.give_up(notices);
            }
        }
    }

    fn begin(&mut self, start: Start, notices: &mut Vec<Notice>) {
        let mut kept = start.length + self.rules.pre_roll;
        if self.woken.is_some() {
            let paused = self.since_woken.saturating_sub(start.length);
            self.in_one_breath = paused <= BREATH && self.goes_on();
            kept = match self.in_one_breath {
                // Behind the name, which perhaps is not all gone.
                true => self.recent.len(),
                false => kept.min(self.since_woken),
            };
        }
        let first = self.recent.len().saturating_sub(kept);
        self.samples.clear();
        for frame in self.recent.range(first..) {
            self.samples.extend_from_slice(&frame.samples);
        }
        self.phase = Phase::Hearing {
            length: start.length,
            quiet: 0,
            resumed: 0,
            began: start.began,
        };
        notices.push(Notice::Began);
    }

    fn listen(&mut self, frame: &Frame, speech: bool, notices: &mut Vec<Notice>) {
        let Phase::Hearing {
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
            self.over(began, frame.at, notices);
        } else if length >= self.rules.max_command {
            self.over(began, frame.at, notices);
            self.phase = Phase::Overlong { quiet, spoken: 0 };
        }
    }

    fn over(&mut self, began: Instant, ended: Instant, notices: &mut Vec<Notice>) {
        let in_one_breath = std::mem::take(&mut self.in_one_breath);
        let (wake_word, began) = self.woken.take().unwrap_or((None, began));
        notices.push(Notice::Over(Utterance {
            samples: Arc::from(self.samples.as_slice()),
            began,
            wake_word,
            in_one_breath,
            ended,
            room: self.room.clone(),
        }));
        self.sleep();
    }

    fn pass_over(&mut self, speech: bool, notices: &mut Vec<Notice>) {
        let Phase::Overlong { quiet, spoken } = &mut self.phase else {
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
                notices.push(Notice::Cut(TOO_LONG));
            }
            self.sleep();
        }
    }

    fn miss(&mut self, speech: bool) {
        let Phase::Missed { quiet } = &mut self.phase else {
            return;
        };
        *quiet = if speech { 0 } else { *quiet + 1 };
        if *quiet >= BREATH {
            self.sleep();
        }
    }

    fn give_up(&mut self, notices: &mut Vec<Notice>) {
        notices.push(Notice::Dropped(NOTHING_SAID));
        self.sleep();
    }

    /// As it is without a wake word and before anything is said.
    fn sleep(&mut self) {
        self.woken = None;
        self.in_one_breath = false;
        self.samples.clear();
        self.phase = match self.listening {
            Listening::Always => Phase::Waiting {
                left: None,
                start: None,
            },
            Listening::WhenWoken => Phase::Asleep,
        };
    }
}

/// When the sample was heard that came so many samples before.
fn before(now: Instant, samples: usize) -> Instant {
    let time = Duration::from_secs_f64(samples as f64 / f64::from(RATE));
    now.checked_sub(time).unwrap_or(now)
}

#[cfg(test)]
mod tests;
