//! The rules and phases of the segmenter, counted in frames.

use std::time::Duration;

use tokio::time::Instant;

use crate::VoiceSettings;
use crate::audio::SAMPLE_RATE;

/// Samples per frame of the speech detector: 16 milliseconds.
pub(super) const FRAME_LEN: usize = 256;
// Bounds memory whatever is configured. Nobody gives orders for two minutes.
const MAX_COMMAND: Duration = Duration::from_secs(120);
const MAX_PRE_ROLL: Duration = Duration::from_secs(5);
// A service needs some sound after the wake word to recognize it. So it reports the word this long
// after its end, at most and at least.
const WAKE_WORD_ENDED: [Duration; 2] = [Duration::from_millis(600), Duration::from_millis(100)];
/// How late a wake word may be reported without losing a word after it.
const MAX_REPORT_DELAY: Duration = Duration::from_secs(2);
// Shorter sounds, such as a click, don't restart the count of silence.
const MIN_RESUMED: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmenterRules {
    pub(super) silence: usize,
    pub(super) pre_roll: usize,
    pub(super) min_speech: usize,
    pub(super) min_command: usize,
    pub(super) max_command: usize,
    pub(super) patience: usize,
    pub(super) resumed: usize,
    /// How far back the end of the wake word may be, at most and at least.
    pub(super) wake_word_ended: [usize; 2],
    pub(super) recent: usize,
}

impl SegmenterRules {
    pub(super) fn new(settings: &VoiceSettings) -> Self {
        let pre_roll = to_frames(settings.pre_roll.min(MAX_PRE_ROLL));
        let max_command = to_frames(settings.max_command.min(MAX_COMMAND)).max(1);
        let min_speech = to_frames(settings.min_speech).clamp(1, max_command);
        Self {
            silence: to_frames(settings.silence).max(1),
            pre_roll,
            min_speech,
            min_command: to_frames(settings.min_command).min(max_command),
            max_command,
            patience: to_frames(settings.wake_patience).max(min_speech),
            resumed: to_frames(MIN_RESUMED),
            wake_word_ended: WAKE_WORD_ENDED.map(to_frames),
            // Speech is detected `min_speech` late, and later if it starts haltingly.
            recent: pre_roll
                + 2 * min_speech
                + to_frames(MAX_REPORT_DELAY)
                + to_frames(WAKE_WORD_ENDED[0]),
        }
    }
}

fn to_frames(time: Duration) -> usize {
    let samples = time.as_secs_f64() * f64::from(SAMPLE_RATE);
    // A float-to-integer cast saturates, so `Duration::MAX` is safe.
    (samples / FRAME_LEN as f64).ceil() as usize
}

#[derive(Clone, Copy)]
pub(super) struct ScoredFrame {
    pub(super) samples: [i16; FRAME_LEN],
    pub(super) score: f32,
    pub(super) at: Instant,
}

/// All counts are in frames.
pub(super) enum SegmenterPhase {
    Asleep,
    Waiting {
        left: Option<usize>,
        start: Option<SpeechStart>,
    },
    Hearing {
        length: usize,
        quiet: usize,
        resumed: usize,
        began: Instant,
    },
    /// The start was missed: what is said until the next pause is not a request.
    Missed {
        quiet: usize,
    },
    /// The request was cut: what is said until the next pause still belongs to it.
    Overlong {
        quiet: usize,
        spoken: usize,
    },
}

#[derive(Clone, Copy)]
pub(super) struct SpeechStart {
    pub(super) began: Instant,
    pub(super) length: usize,
    /// Frames with speech minus frames without.
    pub(super) spoken: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_become_bounded_frame_counts() {
        let usual = SegmenterRules::new(&VoiceSettings::default());
        assert_eq!(
            (usual.silence, usual.min_speech, usual.max_command),
            (44, 19, 938)
        );
        let mut settings = VoiceSettings::default();
        for time in [Duration::ZERO, Duration::MAX] {
            settings.silence = time;
            settings.pre_roll = time;
            settings.min_speech = time;
            settings.min_command = time;
            settings.max_command = time;
            settings.wake_patience = time;
            let rules = SegmenterRules::new(&settings);
            assert!((1..=7_500).contains(&rules.max_command), "{rules:?}");
            assert!(
                (1..=rules.max_command).contains(&rules.min_speech),
                "{rules:?}"
            );
            assert!(rules.recent <= 16_000 && rules.silence > 0, "{rules:?}");
        }
    }
}
