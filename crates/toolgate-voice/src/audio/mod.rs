//! Sound: formats, samples, and what is made of them.

mod convert;
mod level;
mod wav;

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub(crate) use self::convert::ToHeard;
pub(crate) use self::level::level;
pub use self::wav::check_wav;
pub(crate) use self::wav::{WavError, WavStream};

/// Samples per second of everything that is heard.
pub(crate) const RATE: u32 = 16_000;

/// How samples are laid out: little-endian, signed, interleaved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedFormat")]
pub(crate) struct Format {
    /// Samples per second and channel.
    pub(crate) rate: u32,
    /// Bytes per sample.
    pub(crate) width: u16,
    pub(crate) channels: u16,
}

/// A format as a peer writes it, who may write anything.
#[derive(Deserialize)]
struct UncheckedFormat {
    rate: u32,
    width: u16,
    channels: u16,
}

impl TryFrom<UncheckedFormat> for Format {
    type Error = FormatError;

    fn try_from(told: UncheckedFormat) -> Result<Self, FormatError> {
        let format = Self {
            rate: told.rate,
            width: told.width,
            channels: told.channels,
        };
        format.check()
    }
}

impl Format {
    pub(crate) const HEARD: Self = Self {
        rate: RATE,
        width: 2,
        channels: 1,
    };

    /// That sound of this format can be used. Whoever sends sound may write anything into its head.
    pub(crate) fn check(self) -> Result<Self, FormatError> {
        match self {
            Self { rate, .. } if !(8_000..=192_000).contains(&rate) => Err(FormatError::Rate(rate)),
            Self { width, .. } if !(1..=4).contains(&width) => Err(FormatError::Width(width)),
            Self { channels, .. } if !(1..=8).contains(&channels) => {
                Err(FormatError::Channels(channels))
            }
            usable => Ok(usable),
        }
    }

    pub(crate) fn frame_bytes(self) -> usize {
        usize::from(self.width) * usize::from(self.channels)
    }

    pub(crate) fn duration(self, bytes: usize) -> Duration {
        let a_second = self.frame_bytes().max(1) as f64 * f64::from(self.rate.max(1));
        Duration::from_secs_f64(bytes as f64 / a_second)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FormatError {
    #[error("sound at {0} Hz cannot be used: it must be from 8000 to 192000 Hz")]
    Rate(u32),
    #[error("sound with {0} bytes per sample cannot be used: there must be 1 to 4")]
    Width(u16),
    #[error("sound with {0} channels cannot be used: there must be 1 to 8")]
    Channels(u16),
}

/// A piece of sound on its way out, in the format of whoever made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sound {
    pub(crate) format: Format,
    pub(crate) bytes: Bytes,
}

#[cfg(test)]
pub(crate) fn format(rate: u32, width: u16, channels: u16) -> Format {
    Format {
        rate,
        width,
        channels,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_nobody_could_play_is_refused_with_what_it_must_be() {
        for (given, problem) in [
            (format(16_000, 2, 1), None),
            (format(8_000, 1, 8), None),
            (format(192_000, 4, 2), None),
            (format(0, 2, 1), Some(FormatError::Rate(0))),
            (format(7_999, 2, 1), Some(FormatError::Rate(7_999))),
            (format(192_001, 2, 1), Some(FormatError::Rate(192_001))),
            (format(u32::MAX, 0, 0), Some(FormatError::Rate(u32::MAX))),
            (format(16_000, 0, 1), Some(FormatError::Width(0))),
            (format(16_000, 5, 1), Some(FormatError::Width(5))),
            (format(16_000, 2, 0), Some(FormatError::Channels(0))),
            (format(16_000, 2, 9), Some(FormatError::Channels(9))),
        ] {
            assert_eq!(given.check().err(), problem, "{given:?}");
        }
    }

    #[test]
    fn the_length_of_sound_is_known_even_for_a_senseless_format() {
        assert_eq!(Format::HEARD.duration(32_000), Duration::from_secs(1));
        assert_eq!(
            format(48_000, 4, 2).duration(38_400),
            Duration::from_millis(100)
        );
        assert_eq!(format(0, 0, 0).duration(3), Duration::from_secs(3));
    }
}
