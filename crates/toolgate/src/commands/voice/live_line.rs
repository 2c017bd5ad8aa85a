//! The live lines: what the gateway is doing, how loud it is, and the answer so far.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;
use toolgate_core::text::escape;
use toolgate_voice::VoiceState;

use crate::clean::TextCleaner;
use crate::spinner::FRAMES;
use crate::wrap::wrap_lines;

// Levels side by side: two seconds or a bit more.
const LEVELS: usize = 16;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
// Only the last lines of a longer answer are drawn. All of it is printed at the end.
const MAX_LINES: usize = 6;
// Bytes of an answer that are kept for drawing.
const MAX_WORDS: usize = 4096;
const INDENT: &str = "  ";

pub(super) struct LiveLine {
    state: VoiceState,
    since: Instant,
    levels: VecDeque<f32>,
    words: String,
    /// How many bytes of `words` can no longer be retracted.
    final_length: usize,
    cleaner: TextCleaner,
    frame: usize,
    waits_for: &'static str,
    has_keys: bool,
    lacks_microphone: bool,
}

impl LiveLine {
    pub(super) fn new(waits_for: &'static str, has_keys: bool, now: Instant) -> Self {
        Self {
            state: VoiceState::Starting,
            since: now,
            levels: VecDeque::with_capacity(LEVELS),
            words: String::new(),
            final_length: 0,
            cleaner: TextCleaner::default(),
            frame: 0,
            waits_for,
            has_keys,
            lacks_microphone: false,
        }
    }

    pub(super) fn set_state(&mut self, state: &VoiceState, now: Instant) {
        if self.state != *state {
            self.state = state.clone();
            self.since = now;
        }
    }

    pub(super) fn set_microphone_lost(&mut self, lacks_microphone: bool) {
        self.lacks_microphone = lacks_microphone;
        self.levels.clear();
    }

    pub(super) fn push_level(&mut self, level: f32) {
        if self.levels.len() == LEVELS {
            self.levels.pop_front();
        }
        self.levels.push_back(level);
    }

    pub(super) fn push_words(&mut self, words: &str) {
        self.words.push_str(&self.cleaner.push(words));
        let excess = self.words.len().saturating_sub(MAX_WORDS);
        let excess = self.words.ceil_char_boundary(excess);
        self.words.drain(..excess);
        self.final_length = self.final_length.saturating_sub(excess);
    }

    pub(super) fn keep_words(&mut self) {
        self.final_length = self.words.len();
    }

    pub(super) fn retract_words(&mut self) {
        self.words.truncate(self.final_length);
        self.cleaner = TextCleaner::default();
    }

    pub(super) fn clear_words(&mut self) {
        self.words.clear();
        self.final_length = 0;
        self.cleaner = TextCleaner::default();
    }

    pub(super) fn draw(&mut self, width: usize, now: Instant) -> Vec<String> {
        self.frame += 1;
        let mut lines = wrap_lines(&self.words, width.saturating_sub(INDENT.len()));
        let hidden = lines.len().saturating_sub(MAX_LINES);
        lines.drain(..hidden);
        let words = lines.into_iter().map(|line| format!("{INDENT}{line}"));
        words.chain([self.status_text(now)]).collect()
    }

    fn status_text(&self, now: Instant) -> String {
        let turning = FRAMES[self.frame % FRAMES.len()];
        let (mark, text) = match &self.state {
            VoiceState::Waiting | VoiceState::Listening | VoiceState::Hearing
                if self.lacks_microphone =>
            {
                ('○', "waiting for a microphone".to_owned())
            }
            VoiceState::Waiting => ('○', format!("waiting for {}", self.waits_for)),
            VoiceState::Listening => ('○', "listening".to_owned()),
            VoiceState::Hearing => ('●', "hearing".to_owned()),
            VoiceState::Transcribing => (turning, "transcribing".to_owned()),
            VoiceState::Thinking => (turning, "thinking".to_owned()),
            VoiceState::Calling(tool) => (turning, format!("calling {}", escape(tool))),
            VoiceState::Speaking if self.has_keys => ('♪', "speaking, Enter stops it".to_owned()),
            VoiceState::Speaking => ('♪', "speaking".to_owned()),
            // Starting, and states that are added later.
            _ => (turning, "starting".to_owned()),
        };
        let rest = match &self.state {
            VoiceState::Waiting | VoiceState::Listening | VoiceState::Hearing => self.meter(),
            _ => tenths(now.duration_since(self.since)),
        };
        format!("{mark} {text} {rest}").trim_end().to_owned()
    }

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
    fn every_state_is_shown_in_one_line() {
        for (has_keys, state, expected) in [
            (false, VoiceState::Starting, "⠙ starting 2.0 s"),
            (false, VoiceState::Waiting, "○ waiting for Enter ▁▅█"),
            (false, VoiceState::Listening, "○ listening ▁▅█"),
            (true, VoiceState::Hearing, "● hearing ▁▅█"),
            (false, VoiceState::Transcribing, "⠙ transcribing 2.0 s"),
            (false, VoiceState::Thinking, "⠙ thinking 2.0 s"),
            (
                false,
                VoiceState::Calling("a\u{1b}[2K".to_owned()),
                "⠙ calling a\\u{1b}[2K 2.0 s",
            ),
            (false, VoiceState::Speaking, "♪ speaking 2.0 s"),
            (
                true,
                VoiceState::Speaking,
                "♪ speaking, Enter stops it 2.0 s",
            ),
        ] {
            let now = Instant::now();
            let mut line = LiveLine::new("Enter", has_keys, now);
            for level in [-1.0, 0.5, 7.0] {
                line.push_level(level);
            }
            let later = now + Duration::from_secs(2);
            line.set_state(&state, now);
            line.set_state(&state, later);
            assert_eq!(line.draw(80, later), [expected], "{state:?}");
        }
    }

    #[test]
    fn without_a_microphone_the_line_does_not_say_listening() {
        let now = Instant::now();
        let mut line = LiveLine::new("Enter", false, now);
        line.push_level(0.5);
        for (lacks_microphone, state, expected) in [
            (true, VoiceState::Listening, "○ waiting for a microphone"),
            (true, VoiceState::Speaking, "♪ speaking 0.0 s"),
            (true, VoiceState::Waiting, "○ waiting for a microphone"),
            (false, VoiceState::Listening, "○ listening"),
        ] {
            line.set_microphone_lost(lacks_microphone);
            line.set_state(&state, now);
            assert_eq!(line.draw(80, now), [expected], "{state:?}");
        }
    }

    #[test]
    fn the_answer_streams_above_the_state() {
        let now = Instant::now();
        let mut line = LiveLine::new("Enter", false, now);
        line.set_state(&VoiceState::Speaking, now);
        line.push_words("The light is ");
        line.push_words("on.\u{1b}[2K");
        assert_eq!(
            line.draw(12, now),
            ["  The light", "  is on.", "♪ speaking 0.0 s"]
        );
        line.push_words(&"\nmore".repeat(MAX_LINES));
        let drawn = line.draw(12, now);
        assert_eq!((drawn.len(), drawn[0].as_str()), (MAX_LINES + 1, "  more"));
        line.clear_words();
        assert_eq!(line.draw(12, now), ["♪ speaking 0.0 s"]);
    }

    #[test]
    fn retracted_words_disappear() {
        let now = Instant::now();
        let mut line = LiveLine::new("Enter", false, now);
        line.set_state(&VoiceState::Speaking, now);
        line.push_words("Let me see. ");
        line.keep_words();
        line.push_words("The light was\u{1b}[");
        line.retract_words();
        line.push_words("It is on.");
        assert_eq!(
            line.draw(40, now),
            ["  Let me see. It is on.", "♪ speaking 0.0 s"]
        );
        line.push_words(&"é".repeat(MAX_WORDS));
        line.retract_words();
        assert_eq!(line.words, "", "what is kept was too long ago");
    }

    #[test]
    fn words_and_levels_are_bounded() {
        let mut line = LiveLine::new("Enter", false, Instant::now());
        for _ in 0..10_000 {
            line.push_words("日本");
            line.push_level(0.5);
        }
        assert!(line.words.len() <= MAX_WORDS);
        assert_eq!(line.levels.len(), LEVELS);
    }
}
