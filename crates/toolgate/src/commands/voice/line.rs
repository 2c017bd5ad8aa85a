//! The lines that change while the gateway works: what it is doing, how loud it is, and the words of the answer so far.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;
use toolgate_core::escape;
use toolgate_voice::State;

use crate::clean::Cleaner;
use crate::spinner::FRAMES;
use crate::wrap::wrapped;

/// How many levels are seen side by side: two seconds, or a bit more.
const LEVELS: usize = 16;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Of a longer answer the last lines are seen; all of it is printed at its end.
const MOST_LINES: usize = 6;
/// How much of an answer is kept to be drawn.
const MOST_WORDS: usize = 4096;
/// Where the words begin, below the state.
const INDENT: &str = "  ";

pub(super) struct Line {
    state: State,
    since: Instant,
    levels: VecDeque<f32>,
    words: String,
    /// How many bytes of them nobody takes back.
    kept: usize,
    cleaner: Cleaner,
    frame: usize,
    waits_for: &'static str,
    has_keys: bool,
    is_deaf: bool,
}

impl Line {
    pub(super) fn new(waits_for: &'static str, has_keys: bool, now: Instant) -> Self {
        Self {
            state: State::Starting,
            since: now,
            levels: VecDeque::with_capacity(LEVELS),
            words: String::new(),
            kept: 0,
            cleaner: Cleaner::default(),
            frame: 0,
            waits_for,
            has_keys,
            is_deaf: false,
        }
    }

    pub(super) fn state(&mut self, state: &State, now: Instant) {
        if self.state != *state {
            self.state = state.clone();
            self.since = now;
        }
    }

    pub(super) fn deaf(&mut self, is_deaf: bool) {
        self.is_deaf = is_deaf;
        self.levels.clear();
    }

    pub(super) fn level(&mut self, level: f32) {
        if self.levels.len() == LEVELS {
            self.levels.pop_front();
        }
        self.levels.push_back(level);
    }

    pub(super) fn words(&mut self, words: &str) {
        self.words.push_str(&self.cleaner.push(words));
        let excess = self.words.len().saturating_sub(MOST_WORDS);
        let excess = self.words.ceil_char_boundary(excess);
        self.words.drain(..excess);
        self.kept = self.kept.saturating_sub(excess);
    }

    /// What came so far stays, whatever is taken back later.
    pub(super) fn keep_words(&mut self) {
        self.kept = self.words.len();
    }

    /// What came since is no part of the answer.
    pub(super) fn take_back(&mut self) {
        self.words.truncate(self.kept);
        self.cleaner = Cleaner::default();
    }

    pub(super) fn forget_words(&mut self) {
        self.words.clear();
        self.kept = 0;
        self.cleaner = Cleaner::default();
    }

    pub(super) fn drawn(&mut self, width: usize, now: Instant) -> Vec<String> {
        self.frame += 1;
        let mut lines = wrapped(&self.words, width.saturating_sub(INDENT.len()));
        let hidden = lines.len().saturating_sub(MOST_LINES);
        lines.drain(..hidden);
        let words = lines.into_iter().map(|line| format!("{INDENT}{line}"));
        words.chain([self.doing(now)]).collect()
    }

    fn doing(&self, now: Instant) -> String {
        let turning = FRAMES[self.frame % FRAMES.len()];
        let (mark, text) = match &self.state {
            State::Waiting | State::Listening | State::Hearing if self.is_deaf => {
                ('○', "waiting for a microphone".to_owned())
            }
            State::Waiting => ('○', format!("waiting for {}", self.waits_for)),
            State::Listening => ('○', "listening".to_owned()),
            State::Hearing => ('●', "hearing".to_owned()),
            State::Transcribing => (turning, "transcribing".to_owned()),
            State::Thinking => (turning, "thinking".to_owned()),
            State::Calling(tool) => (turning, format!("calling {}", escape(tool))),
            State::Speaking if self.has_keys => ('♪', "speaking, Enter stops it".to_owned()),
            State::Speaking => ('♪', "speaking".to_owned()),
            // Starting, and whatever else will be told one day.
            _ => (turning, "starting".to_owned()),
        };
        let rest = match &self.state {
            State::Waiting | State::Listening | State::Hearing => self.meter(),
            _ => tenths(now.duration_since(self.since)),
        };
        format!("{mark} {text} {rest}").trim_end().to_owned()
    }

    /// How loud it was in the last moments.
    fn meter(&self) -> String {
        self.levels.iter().map(|level| bar(*level)).collect()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a level from 0 to 1 in eight steps"
)]
fn bar(level: f32) -> char {
    let step = (level.clamp(0.0, 1.0) * 8.0) as usize;
    BARS[step.min(BARS.len() - 1)]
}

fn tenths(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_told_in_one_line() {
        for (has_keys, state, expected) in [
            (false, State::Starting, "⠙ starting 2.0 s"),
            (false, State::Waiting, "○ waiting for Enter ▁▅█"),
            (false, State::Listening, "○ listening ▁▅█"),
            (true, State::Hearing, "● hearing ▁▅█"),
            (false, State::Transcribing, "⠙ transcribing 2.0 s"),
            (false, State::Thinking, "⠙ thinking 2.0 s"),
            (
                false,
                State::Calling("a\u{1b}[2K".to_owned()),
                "⠙ calling a\\u{1b}[2K 2.0 s",
            ),
            (false, State::Speaking, "♪ speaking 2.0 s"),
            (true, State::Speaking, "♪ speaking, Enter stops it 2.0 s"),
        ] {
            let now = Instant::now();
            let mut line = Line::new("Enter", has_keys, now);
            for level in [-1.0, 0.5, 7.0] {
                line.level(level);
            }
            let later = now + Duration::from_secs(2);
            line.state(&state, now);
            line.state(&state, later);
            assert_eq!(line.drawn(80, later), [expected], "{state:?}");
        }
    }

    #[test]
    fn without_a_microphone_nobody_seems_to_listen() {
        let now = Instant::now();
        let mut line = Line::new("Enter", false, now);
        line.level(0.5);
        for (is_deaf, state, expected) in [
            (true, State::Listening, "○ waiting for a microphone"),
            (true, State::Speaking, "♪ speaking 0.0 s"),
            (true, State::Waiting, "○ waiting for a microphone"),
            (false, State::Listening, "○ listening"),
        ] {
            line.deaf(is_deaf);
            line.state(&state, now);
            assert_eq!(line.drawn(80, now), [expected], "{state:?}");
        }
    }

    #[test]
    fn the_words_of_the_answer_stand_above_the_state_while_they_come() {
        let now = Instant::now();
        let mut line = Line::new("Enter", false, now);
        line.state(&State::Speaking, now);
        line.words("The light is ");
        line.words("on.\u{1b}[2K");
        assert_eq!(
            line.drawn(12, now),
            ["  The light", "  is on.", "♪ speaking 0.0 s"]
        );
        line.words(&"\nmore".repeat(MOST_LINES));
        let drawn = line.drawn(12, now);
        assert_eq!((drawn.len(), drawn[0].as_str()), (MOST_LINES + 1, "  more"));
        line.forget_words();
        assert_eq!(line.drawn(12, now), ["♪ speaking 0.0 s"]);
    }

    #[test]
    fn words_that_are_taken_back_are_seen_no_more() {
        let now = Instant::now();
        let mut line = Line::new("Enter", false, now);
        line.state(&State::Speaking, now);
        line.words("Let me see. ");
        line.keep_words();
        line.words("The light was\u{1b}[");
        line.take_back();
        line.words("It is on.");
        assert_eq!(
            line.drawn(40, now),
            ["  Let me see. It is on.", "♪ speaking 0.0 s"]
        );
        line.words(&"é".repeat(MOST_WORDS));
        line.take_back();
        assert_eq!(line.words, "", "what is kept was too long ago");
    }

    #[test]
    fn a_long_night_of_words_and_levels_takes_no_more_room() {
        let mut line = Line::new("Enter", false, Instant::now());
        for _ in 0..10_000 {
            line.words("日本");
            line.level(0.5);
        }
        assert!(line.words.len() <= MOST_WORDS);
        assert_eq!(line.levels.len(), LEVELS);
    }
}
