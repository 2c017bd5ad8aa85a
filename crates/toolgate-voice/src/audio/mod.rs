//! Audio formats, conversion and WAV.

mod convert;
mod wav;

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub(crate) use self::convert::CaptureConverter;
pub use self::wav::check_wav;
pub(crate) use self::wav::{WavError, WavStream};

pub(crate) const SAMPLE_RATE: u32 = 16_000;

/// The length of this many samples at [`SAMPLE_RATE`].
pub(crate) fn sample_time(samples: usize) -> Duration {
    Duration::from_secs_f64(samples as f64 / f64::from(SAMPLE_RATE))
}

// In decibels of full scale. Quieter sound is silence to a person, louder sound is shouting.
const SILENCE_DB: f32 = -60.0;
const LOUD_DB: f32 = -12.0;

/// The perceived loudness, from 0 to 1. The scale is logarithmic, as hearing is.
pub(crate) fn level(samples: &[i16]) -> f32 {
    let decibels = 20.0 * rms(samples).log10();
    ((decibels - SILENCE_DB) / (LOUD_DB - SILENCE_DB)).clamp(0.0, 1.0)
}

/// The root mean square, as a fraction of full scale.
pub(crate) fn rms(samples: &[i16]) -> f32 {
    let square = |sample: &i16| f64::from(*sample) * f64::from(*sample);
    let sum: f64 = samples.iter().map(square).sum();
    let mean = sum / samples.len().max(1) as f64;
    (mean.sqrt() / f64::from(i16::MAX)) as f32
}

/// A PCM format. Samples are little-endian, signed and interleaved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AudioFormat {
    /// Frames per second, in Hz.
    pub(crate) rate: u32,
    /// In bytes per sample.
    pub(crate) width: u16,
    pub(crate) channels: u16,
}

impl AudioFormat {
    /// The format of captured sound, also sent to engines: 16-bit mono at 16 kHz.
    pub(crate) const CAPTURE: Self = Self::new(SAMPLE_RATE, 2, 1);

    pub(crate) const fn new(rate: u32, width: u16, channels: u16) -> Self {
        Self {
            rate,
            width,
            channels,
        }
    }

    /// Fails for a format this program can't handle. Headers come from outside
    /// and may say anything.
    pub(crate) fn validated(self) -> Result<Self, AudioFormatError> {
        match self {
            _ if !(8_000..=192_000).contains(&self.rate) => Err(AudioFormatError::Rate(self.rate)),
            _ if !(1..=4).contains(&self.width) => Err(AudioFormatError::Width(self.width)),
            _ if !(1..=8).contains(&self.channels) => {
                Err(AudioFormatError::Channels(self.channels))
            }
            usable => Ok(usable),
        }
    }

    pub(crate) fn frame_bytes(self) -> usize {
        usize::from(self.width) * usize::from(self.channels)
    }

    pub(crate) fn duration(self, bytes: usize) -> Duration {
        // Guards against division by zero: an unchecked format may hold any numbers.
        let a_second = self.frame_bytes().max(1) as f64 * f64::from(self.rate.max(1));
        Duration::from_secs_f64(bytes as f64 / a_second)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AudioFormatError {
    #[error("sound at {0} Hz cannot be used: it must be from 8000 to 192000 Hz")]
    Rate(u32),
    #[error("sound with {0} bytes per sample cannot be used: there must be 1 to 4")]
    Width(u16),
    #[error("sound with {0} channels cannot be used: there must be 1 to 8")]
    Channels(u16),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AudioClip {
    pub(crate) format: AudioFormat,
    pub(crate) bytes: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_format_is_rejected_with_the_valid_range() {
        for (given, problem) in [
            (AudioFormat::new(16_000, 2, 1), None),
            (AudioFormat::new(8_000, 1, 8), None),
            (AudioFormat::new(192_000, 4, 2), None),
            (AudioFormat::new(0, 2, 1), Some(AudioFormatError::Rate(0))),
            (
                AudioFormat::new(7_999, 2, 1),
                Some(AudioFormatError::Rate(7_999)),
            ),
            (
                AudioFormat::new(192_001, 2, 1),
                Some(AudioFormatError::Rate(192_001)),
            ),
            (
                AudioFormat::new(u32::MAX, 0, 0),
                Some(AudioFormatError::Rate(u32::MAX)),
            ),
            (
                AudioFormat::new(16_000, 0, 1),
                Some(AudioFormatError::Width(0)),
            ),
            (
                AudioFormat::new(16_000, 5, 1),
                Some(AudioFormatError::Width(5)),
            ),
            (
                AudioFormat::new(16_000, 2, 0),
                Some(AudioFormatError::Channels(0)),
            ),
            (
                AudioFormat::new(16_000, 2, 9),
                Some(AudioFormatError::Channels(9)),
            ),
        ] {
            assert_eq!(given.validated().err(), problem, "{given:?}");
        }
    }

    #[test]
    fn duration_is_finite_even_for_an_invalid_format() {
        assert_eq!(
            AudioFormat::CAPTURE.duration(32_000),
            Duration::from_secs(1)
        );
        assert_eq!(
            AudioFormat::new(48_000, 4, 2).duration(38_400),
            Duration::from_millis(100)
        );
        assert_eq!(
            AudioFormat::new(0, 0, 0).duration(3),
            Duration::from_secs(3)
        );
    }

    #[test]
    fn level_follows_loudness_within_its_bounds() {
        // A square wave has its amplitude as its power: 32767 is 0 dB, a tenth of it -20 dB.
        for (amplitude, expected) in [
            (0, 0.0),
            (10, 0.0),
            (328, 20.0 / 48.0),
            (3277, 40.0 / 48.0),
            (i16::MAX, 1.0),
            (i16::MIN, 1.0),
        ] {
            let found = level(&[amplitude; 100]);
            assert!((found - expected).abs() < 0.001, "{amplitude}: {found}");
        }
    }
}
