//! Decides whether a sound can contain words at all. An engine takes a second for that, and often
//! invents words if there are none.

use std::time::Duration;

use crate::DropReason;
use crate::audio::{SAMPLE_RATE, rms, sample_time};
use crate::segment::Utterance;

const MIN_LENGTH: Duration = Duration::from_millis(150);
// A fraction of full scale, -60 dB. Speech is louder even with the worst microphone.
const QUIETEST: f32 = 0.001;
// Quieter frames, relative to the loudest one, don't belong to the voice.
const VOICED_FRACTION: f32 = 0.1;
const FRAME_LEN: usize = SAMPLE_RATE as usize / 50;

pub(crate) fn check_sound(utterance: &Utterance) -> Result<(), DropReason> {
    let sound = SoundMeasurement::measure(&utterance.samples);
    if sound.length < MIN_LENGTH {
        Err(DropReason::TooShort)
    } else if sound.loudest < QUIETEST {
        Err(DropReason::TooQuiet)
    } else {
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SoundMeasurement {
    pub(super) length: Duration,
    pub(super) voiced: Duration,
    /// The loudest 20 ms, as a fraction of full scale.
    pub(super) loudest: f32,
}

impl SoundMeasurement {
    pub(super) fn measure(samples: &[i16]) -> Self {
        let frames: Vec<f32> = samples.chunks(FRAME_LEN).map(rms).collect();
        let loudest = frames.iter().copied().fold(0.0, f32::max);
        let floor = (loudest * VOICED_FRACTION).max(QUIETEST);
        let voiced = frames.iter().filter(|loudness| **loudness >= floor).count();
        Self {
            length: sample_time(samples.len()),
            voiced: sample_time(voiced * FRAME_LEN),
            loudest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sound_is_measured_by_its_loudest_part() {
        let quiet = vec![20; 16_000];
        let voice = vec![8_000; 8_000];
        let both = [quiet.as_slice(), &voice, &quiet].concat();
        let measured = SoundMeasurement::measure(&both);
        assert_eq!(measured.length, Duration::from_millis(2500));
        assert_eq!(measured.voiced, Duration::from_millis(500));
        assert!((measured.loudest - 0.244).abs() < 0.001, "{measured:?}");
        assert_eq!(SoundMeasurement::measure(&[]).loudest, 0.0);
        assert_eq!(
            SoundMeasurement::measure(&[i16::MIN; 640]).voiced,
            Duration::from_millis(40)
        );
        assert_eq!(
            SoundMeasurement::measure(&quiet).voiced,
            Duration::ZERO,
            "a hum is not a voice"
        );
    }

    #[test]
    fn short_or_quiet_sound_is_rejected() {
        let now = tokio::time::Instant::now();
        let utterance = |samples: Vec<i16>| Utterance {
            samples: samples.into(),
            began: now,
            wake_word: None,
            in_one_breath: false,
            ended: now,
            room: None,
        };
        let verdict = |samples| check_sound(&utterance(samples));
        assert_eq!(verdict(vec![9_000; 160]), Err(DropReason::TooShort));
        assert_eq!(verdict(vec![3; 16_000]), Err(DropReason::TooQuiet));
        assert_eq!(verdict(vec![3_000; 16_000]), Ok(()));
    }
}
