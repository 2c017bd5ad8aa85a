//! WAV as it comes through a pipe.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use bytes::{Buf, Bytes, BytesMut};

use super::{Format, FormatError};

/// A header with all its notes is never longer.
const LONGEST_HEADER: usize = 64 * 1024;
/// Who writes into a pipe does not know how long it gets, and says so with nothing or with a length near the highest.
const ENDLESS: u32 = 0x7fff_0000;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WavError {
    #[error("this is not WAV: {0}")]
    NotWav(String),
    #[error(
        "this WAV cannot be used: it must be uncompressed, with 8, 16, 24 or 32 bits; sox OLD.wav -e signed -b 16 NEW.wav makes it so"
    )]
    Unsupported,
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Fails if a file can't be read or doesn't begin as WAV, before anything is started for it.
pub fn check_wav(file: &Path) -> io::Result<()> {
    let mut header = Vec::new();
    let file = File::open(file)?;
    file.take(LONGEST_HEADER as u64).read_to_end(&mut header)?;
    let begun = WavStream::default().feed(&header);
    begun.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(())
}

/// Takes a WAV apart while it still comes: first its header, then its sound, of whatever length.
#[derive(Debug, Default)]
pub(crate) struct WavStream {
    waiting: BytesMut,
    found: Option<Found>,
}

#[derive(Debug)]
struct Found {
    format: Format,
    encoding: Encoding,
    /// How many bytes of sound are still to come; what follows them are notes.
    left: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
enum Encoding {
    Signed,
    /// WAV has its 8-bit samples without a sign.
    Unsigned,
    Float,
}

impl WavStream {
    /// The sound in these bytes and those before: whole frames, as [`format`](Self::format) says.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Bytes, WavError> {
        self.waiting.extend_from_slice(bytes);
        if self.found.is_none() {
            let Some((found, header)) = header(&self.waiting)? else {
                return Ok(Bytes::new());
            };
            self.waiting.advance(header);
            self.found = Some(found);
        }
        Ok(self.sound())
    }

    pub(crate) fn format(&self) -> Option<Format> {
        self.found.as_ref().map(|found| found.format)
    }

    fn sound(&mut self) -> Bytes {
        let Some(found) = &mut self.found else {
            return Bytes::new();
        };
        if let Some(left) = found.left
            && self.waiting.len() > left
        {
            self.waiting.truncate(left);
        }
        let whole = self.waiting.len() - self.waiting.len() % found.format.frame_bytes();
        if let Some(left) = &mut found.left {
            *left -= whole;
        }
        let mut sound = self.waiting.split_to(whole);
        if found.left == Some(0) {
            self.waiting.clear();
        }
        match found.encoding {
            Encoding::Signed => {}
            Encoding::Unsigned => sound.iter_mut().for_each(|byte| *byte ^= 0x80),
            Encoding::Float => sound.chunks_exact_mut(4).for_each(to_integer),
        }
        sound.freeze()
    }
}

/// A float of 32 bits becomes an integer of 32 bits, in its place.
fn to_integer(bytes: &mut [u8]) {
    let mut value = [0; 4];
    value.copy_from_slice(bytes);
    // What is not a number becomes 0, and what is too loud stops at the end of the range.
    let wide = (f32::from_le_bytes(value) * -(i32::MIN as f32)) as i32;
    bytes.copy_from_slice(&wide.to_le_bytes());
}

/// What the header says and how long it is; none while a part of it is missing.
fn header(bytes: &[u8]) -> Result<Option<(Found, usize)>, WavError> {
    let start = &bytes[..bytes.len().min(12)];
    if !b"RIFF".starts_with(&start[..start.len().min(4)])
        || !b"WAVE".starts_with(start.get(8..).unwrap_or_default())
    {
        return Err(WavError::NotWav("it does not begin as one".to_owned()));
    }
    let (mut at, mut described) = (12, None);
    while let Some((name, length)) = chunk(bytes, at) {
        at += 8;
        if name == *b"data" {
            let (format, encoding) = described
                .ok_or_else(|| WavError::NotWav("its sound comes before its format".to_owned()))?;
            let left = (1..ENDLESS).contains(&length).then_some(length as usize);
            let found = Found {
                format,
                encoding,
                left,
            };
            return Ok(Some((found, at)));
        }
        // Every chunk begins at an even place.
        let end = at + length as usize + length as usize % 2;
        if name == *b"fmt "
            && let Some(description) = bytes.get(at..end)
        {
            described = Some(describe(description)?);
        }
        at = end;
    }
    if at.max(bytes.len()) > LONGEST_HEADER {
        return Err(WavError::NotWav(
            "its header does not end within 64 KiB".to_owned(),
        ));
    }
    Ok(None)
}

fn chunk(bytes: &[u8], at: usize) -> Option<([u8; 4], u32)> {
    let (name, rest) = bytes.get(at..)?.split_first_chunk()?;
    let (length, _) = rest.split_first_chunk()?;
    Some((*name, u32::from_le_bytes(*length)))
}

fn describe(chunk: &[u8]) -> Result<(Format, Encoding), WavError> {
    const INTEGERS: u16 = 1;
    const FLOATS: u16 = 3;
    const EXTENDED: u16 = 0xfffe;
    let number = |at: usize| Some(u16::from_le_bytes([*chunk.get(at)?, *chunk.get(at + 1)?]));
    let (Some(kind), Some(channels), Some(low), Some(high), Some(block), Some(bits)) = (
        number(0),
        number(2),
        number(4),
        number(6),
        number(12),
        number(14),
    ) else {
        return Err(WavError::NotWav("its format is cut off".to_owned()));
    };
    // An extended description has the kind further behind, as the beginning of a longer name.
    let kind = if kind == EXTENDED {
        number(24).unwrap_or(kind)
    } else {
        kind
    };
    let encoding = match (kind, bits) {
        (INTEGERS, 8) => Encoding::Unsigned,
        (INTEGERS, 16 | 24 | 32) => Encoding::Signed,
        (FLOATS, 32) => Encoding::Float,
        _ => return Err(WavError::Unsupported),
    };
    let rate = u32::from(low) | u32::from(high) << 16;
    let format = Format {
        rate,
        width: bits / 8,
        channels,
    }
    .check()?;
    if usize::from(block) != format.frame_bytes() {
        return Err(WavError::Unsupported);
    }
    Ok((format, encoding))
}

#[cfg(test)]
mod tests;
