//! Sound: formats, samples, and what is made of them.

use bytes::Bytes;

/// Samples per second of everything that is heard.
pub const RATE: u32 = 16_000;

/// How samples are laid out: little-endian, signed, interleaved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Samples per second and channel.
    pub rate: u32,
    /// Bytes per sample.
    pub width: u16,
    /// Channels.
    pub channels: u16,
}

impl Format {
    /// What everything that is heard is made into.
    pub const HEARD: Self = Self {
        rate: RATE,
        width: 2,
        channels: 1,
    };
}

/// A piece of sound on its way out, in the format of whoever made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sound {
    /// Its format.
    pub format: Format,
    /// Whole frames.
    pub bytes: Bytes,
}
