//! Short signal tones, used where words would take too long.

use std::f32::consts::TAU;

use crate::audio::{AudioClip, AudioFormat};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub(crate) enum SignalTone {
    Wake,
    Working,
    Error,
    Ready,
}

// The format of most engines, so that the output isn't reopened between a tone and speech.
const FORMAT: AudioFormat = AudioFormat::new(22_050, 2, 1);

// A quarter of full scale: a pure tone seems louder than speech.
const AMPLITUDE: f32 = 0.25 * i16::MAX as f32;
// The fade-in and fade-out in samples (5 ms). Without it, the tone clicks.
const RAMP: usize = 110;

impl SignalTone {
    fn notes(self) -> &'static [(u16, u32)] {
        match self {
            Self::Wake => &[(800, 150)],
            Self::Working => &[(500, 100)],
            Self::Error => &[(300, 200)],
            Self::Ready => &[(600, 80), (900, 120)],
        }
    }

    pub(super) fn sound(self) -> AudioClip {
        let samples = self.notes().iter().flat_map(|(pitch, length)| {
            let count = (FORMAT.rate * length / 1000) as usize;
            (0..count).map(move |index| sample(f32::from(*pitch), index, count))
        });
        AudioClip {
            format: FORMAT,
            bytes: samples.flat_map(i16::to_le_bytes).collect(),
        }
    }
}

fn sample(pitch: f32, index: usize, count: usize) -> i16 {
    let edge = index.min(count - 1 - index).min(RAMP) as f32 / RAMP as f32;
    let wave = (TAU * pitch * index as f32 / FORMAT.rate as f32).sin();
    (AMPLITUDE * edge * wave) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tone_is_short_quiet_and_faded() {
        for tone in [
            SignalTone::Wake,
            SignalTone::Working,
            SignalTone::Error,
            SignalTone::Ready,
        ] {
            let sound = tone.sound();
            let samples: Vec<i16> = sound
                .bytes
                .chunks_exact(2)
                .map(|sample| i16::from_le_bytes([sample[0], sample[1]]))
                .collect();
            let milliseconds = samples.len() * 1000 / FORMAT.rate as usize;
            assert!(
                (50..=300).contains(&milliseconds),
                "{tone:?} {milliseconds}"
            );
            let loudest = samples.iter().map(|sample| sample.unsigned_abs()).max();
            assert!((7_000..9_000).contains(&loudest.unwrap()), "{tone:?}");
            let steepest = samples
                .windows(2)
                .map(|pair| (pair[0] - pair[1]).unsigned_abs());
            assert!(steepest.max().unwrap() < 2_500, "{tone:?} clicks");
            assert_eq!(
                (samples.first(), samples.last()),
                (Some(&0), Some(&0)),
                "{tone:?}"
            );
        }
    }
}
