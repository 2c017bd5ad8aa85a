//! Whether there can be words in a sound at all. An engine takes a second to find out, and then often makes some up.

use std::time::Duration;

use crate::Reason;
use crate::audio::RATE;
use crate::listen::Utterance;

/// No word is shorter.
const SHORTEST: Duration = Duration::from_millis(150);

/// Speech into the worst microphone is louder, as a share of full scale: -60 dB.
const QUIETEST: f32 = 0.001;

/// A frame that is a tenth as loud as the loudest is no longer of the same voice.
const SHARE: f32 = 0.1;

/// Samples of a frame: 20 ms.
const FRAME: usize = RATE as usize / 50;

pub(crate) fn worth(utterance: &Utterance) -> Result<(), Reason> {
    let sound = Measured::of(&utterance.samples);
    if sound.length < SHORTEST {
        Err(Reason::TooShort)
    } else if sound.loudest < QUIETEST {
        Err(Reason::TooQuiet)
    } else {
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    pub(super) length: Duration,
    /// How long something sounded that is not much quieter than its loudest part.
    pub(super) voiced: Duration,
    /// The loudest 20 ms, as a share of full scale.
    pub(super) loudest: f32,
}

impl Measured {
    pub(super) fn of(samples: &[i16]) -> Self {
        let frames: Vec<f32> = samples.chunks(FRAME).map(loudness).collect();
        let loudest = frames.iter().copied().fold(0.0, f32::max);
        let floor = (loudest * SHARE).max(QUIETEST);
        let voiced = frames.iter().filter(|loudness| **loudness >= floor).count();
        Self {
            length: length(samples.len()),
            voiced: length(voiced * FRAME),
            loudest,
        }
    }
}

fn length(samples: usize) -> Duration {
    Duration::from_secs_f64(samples as f64 / f64::from(RATE))
}

fn loudness(samples: &[i16]) -> f32 {
    let square = |sample: &i16| f64::from(*sample) * f64::from(*sample);
    let sum: f64 = samples.iter().map(square).sum();
    let mean = sum / samples.len().max(1) as f64;
    (mean.sqrt() / f64::from(i16::MAX)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sound_is_measured_by_its_loudest_part() {
        let quiet = vec![20; 16_000];
        let voice = vec![8_000; 8_000];
        let both = [quiet.as_slice(), &voice, &quiet].concat();
        let measured = Measured::of(&both);
        assert_eq!(measured.length, Duration::from_millis(2500));
        assert_eq!(measured.voiced, Duration::from_millis(500));
        assert!((measured.loudest - 0.244).abs() < 0.001, "{measured:?}");
        assert_eq!(Measured::of(&[]).loudest, 0.0);
        assert_eq!(
            Measured::of(&[i16::MIN; 640]).voiced,
            Duration::from_millis(40)
        );
        assert_eq!(
            Measured::of(&quiet).voiced,
            Duration::ZERO,
            "a hum is no voice"
        );
    }

    #[test]
    fn what_is_too_short_or_too_quiet_is_no_request() {
        let now = tokio::time::Instant::now();
        let utterance = |samples: Vec<i16>| Utterance {
            samples: samples.into(),
            began: now,
            wake_word: None,
            in_one_breath: false,
            ended: now,
            room: None,
        };
        let verdict = |samples| worth(&utterance(samples));
        assert_eq!(verdict(vec![9_000; 160]), Err(Reason::TooShort));
        assert_eq!(verdict(vec![3; 16_000]), Err(Reason::TooQuiet));
        assert_eq!(verdict(vec![3_000; 16_000]), Ok(()));
    }
}
