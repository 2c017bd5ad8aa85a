//! The settings that say what speech is, counted in frames.

use std::time::Duration;

use crate::VoiceSettings;
use crate::audio::RATE;

/// How many samples the detector looks at: 16 milliseconds.
pub(super) const FRAME: usize = 256;
/// What a request may need at most, whatever is configured: memory is not endless, and nobody gives orders for two minutes.
const LONGEST: Duration = Duration::from_secs(120);
/// The most that is kept from before speech.
const LONGEST_PRE_ROLL: Duration = Duration::from_secs(5);
/// How long before a wake word is reported it ended at most, and at least: services need what is behind it.
const NAME_ENDED: [Duration; 2] = [Duration::from_millis(600), Duration::from_millis(100)];
/// How late a wake word may be reported without a word behind it being lost.
const LATE: Duration = Duration::from_secs(2);
/// Speech this long starts the count of silence anew. A click does not.
const RESUMED: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) silence: usize,
    pub(super) pre_roll: usize,
    pub(super) min_speech: usize,
    pub(super) min_command: usize,
    pub(super) max_command: usize,
    pub(super) patience: usize,
    pub(super) resumed: usize,
    /// How far back the end of a name is, behind which somebody went on in the same breath: at most, and at least.
    pub(super) name_ended: [usize; 2],
    pub(super) recent: usize,
}

impl Rules {
    pub(super) fn new(settings: &VoiceSettings) -> Self {
        let pre_roll = frames(settings.pre_roll.min(LONGEST_PRE_ROLL));
        let max_command = frames(settings.max_command.min(LONGEST)).max(1);
        let min_speech = frames(settings.min_speech).clamp(1, max_command);
        Self {
            silence: frames(settings.silence).max(1),
            pre_roll,
            min_speech,
            min_command: frames(settings.min_command).min(max_command),
            max_command,
            patience: frames(settings.wake_patience).max(min_speech),
            resumed: frames(RESUMED),
            name_ended: NAME_ENDED.map(frames),
            // Speech is noticed late by what it must last, and more if it begins haltingly.
            recent: pre_roll + 2 * min_speech + frames(LATE) + frames(NAME_ENDED[0]),
        }
    }
}

fn frames(time: Duration) -> usize {
    let samples = time.as_secs_f64() * f64::from(RATE);
    // A conversion of a float to an integer stops at the ends of its range.
    (samples / FRAME as f64).ceil() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_frames_and_stay_in_their_bounds() {
        let usual = Rules::new(&VoiceSettings::default());
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
            let rules = Rules::new(&settings);
            assert!((1..=7_500).contains(&rules.max_command), "{rules:?}");
            assert!(
                (1..=rules.max_command).contains(&rules.min_speech),
                "{rules:?}"
            );
            assert!(rules.recent <= 16_000 && rules.silence > 0, "{rules:?}");
        }
    }
}
