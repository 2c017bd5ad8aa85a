//! Reads WAV from a stream.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use bytes::{Buf, Bytes, BytesMut};

use super::{AudioFormat, AudioFormatError};

// A real header is never longer, whatever extra chunks it has.
const MAX_HEADER_LEN: usize = 64 * 1024;
// A program that writes to a pipe doesn't know the length in advance. It writes 0 or a
// length near the maximum.
const ENDLESS_LENGTH: u32 = 0x7fff_0000;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WavError {
    #[error("this is not WAV: {0}")]
    NotWav(&'static str),
    #[error(
        "this WAV cannot be used: it must be uncompressed, with 8, 16, 24 or 32 bits; convert it with `sox OLD.wav -e signed -b 16 NEW.wav`"
    )]
    Unsupported,
    #[error(transparent)]
    Format(#[from] AudioFormatError),
}

/// Checks that a file can be read and starts as WAV, before anything is started for it.
///
/// # Errors
/// If it can't be read, or is not WAV that the gateway can use.
pub fn check_wav(file: &Path) -> io::Result<()> {
    let mut header = Vec::new();
    let file = File::open(file)?;
    file.take(MAX_HEADER_LEN as u64).read_to_end(&mut header)?;
    let begun = WavStream::default().feed(&header);
    begun.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(())
}

#[derive(Debug, Default)]
pub(crate) struct WavStream {
    buffer: BytesMut,
    header: Option<WavHeader>,
}

#[derive(Debug)]
struct WavHeader {
    format: AudioFormat,
    encoding: SampleEncoding,
    /// Bytes of sound still to come. What follows them is metadata. `None` for an endless stream.
    left: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
enum SampleEncoding {
    Signed,
    Unsigned,
    Float,
}

impl WavStream {
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Bytes, WavError> {
        self.buffer.extend_from_slice(bytes);
        if self.header.is_none() {
            let Some((header, header_len)) = parse_header(&self.buffer)? else {
                return Ok(Bytes::new());
            };
            self.buffer.advance(header_len);
            self.header = Some(header);
        }
        Ok(self.take_sound())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.header.is_none()
    }

    pub(crate) fn format(&self) -> Option<AudioFormat> {
        self.header.as_ref().map(|header| header.format)
    }

    fn take_sound(&mut self) -> Bytes {
        let Some(header) = &mut self.header else {
            return Bytes::new();
        };
        if let Some(left) = header.left
            && self.buffer.len() > left
        {
            self.buffer.truncate(left);
        }
        let whole = self.buffer.len() - self.buffer.len() % header.format.frame_bytes();
        if let Some(left) = &mut header.left {
            *left -= whole;
        }
        let mut sound = self.buffer.split_to(whole);
        // Whatever follows the sound is metadata and must not pile up.
        if header.left == Some(0) {
            self.buffer.clear();
        }
        match header.encoding {
            SampleEncoding::Signed => {}
            SampleEncoding::Unsigned => sound.iter_mut().for_each(|byte| *byte ^= 0x80),
            SampleEncoding::Float => sound.chunks_exact_mut(4).for_each(float_to_integer),
        }
        sound.freeze()
    }
}

fn float_to_integer(bytes: &mut [u8]) {
    let mut value = [0; 4];
    value.copy_from_slice(bytes);
    // The cast turns NaN into 0 and clamps what is too loud.
    let wide = (f32::from_le_bytes(value) * -(i32::MIN as f32)) as i32;
    bytes.copy_from_slice(&wide.to_le_bytes());
}

/// Parses the header and returns its length. `None` while a part of it is missing.
fn parse_header(bytes: &[u8]) -> Result<Option<(WavHeader, usize)>, WavError> {
    let start = &bytes[..bytes.len().min(12)];
    if !b"RIFF".starts_with(&start[..start.len().min(4)])
        || !b"WAVE".starts_with(start.get(8..).unwrap_or_default())
    {
        return Err(WavError::NotWav("it has no RIFF header"));
    }
    let (mut at, mut described) = (12, None);
    while let Some((name, length)) = parse_chunk_header(bytes, at) {
        at += 8;
        if name == *b"data" {
            let (format, encoding) = described.ok_or(WavError::NotWav(
                "its 'data' chunk comes before its 'fmt ' chunk",
            ))?;
            let left = (1..ENDLESS_LENGTH)
                .contains(&length)
                .then_some(length as usize);
            return Ok(Some((
                WavHeader {
                    format,
                    encoding,
                    left,
                },
                at,
            )));
        }
        // Chunks are padded to an even length.
        let end = at + length as usize + length as usize % 2;
        if name == *b"fmt "
            && let Some(description) = bytes.get(at..end)
        {
            described = Some(parse_format(description)?);
        }
        at = end;
    }
    if at.max(bytes.len()) > MAX_HEADER_LEN {
        return Err(WavError::NotWav("its header is longer than 64 KiB"));
    }
    Ok(None)
}

fn parse_chunk_header(bytes: &[u8], at: usize) -> Option<([u8; 4], u32)> {
    let (name, rest) = bytes.get(at..)?.split_first_chunk()?;
    let (length, _) = rest.split_first_chunk()?;
    Some((*name, u32::from_le_bytes(*length)))
}

fn parse_format(chunk: &[u8]) -> Result<(AudioFormat, SampleEncoding), WavError> {
    const INTEGERS: u16 = 1;
    const FLOATS: u16 = 3;
    const EXTENDED: u16 = 0xfffe;
    let number = |at: usize| Some(u16::from_le_bytes([*chunk.get(at)?, *chunk.get(at + 1)?]));
    let [
        Some(kind),
        Some(channels),
        Some(low),
        Some(high),
        Some(block),
        Some(bits),
    ] = [0, 2, 4, 6, 12, 14].map(number)
    else {
        return Err(WavError::NotWav("its format is cut off"));
    };
    // An extended format stores its kind further back, at the start of a GUID.
    let kind = number(24).filter(|_| kind == EXTENDED).unwrap_or(kind);
    let encoding = match (kind, bits) {
        (INTEGERS, 8) => SampleEncoding::Unsigned,
        (INTEGERS, 16 | 24 | 32) => SampleEncoding::Signed,
        (FLOATS, 32) => SampleEncoding::Float,
        _ => return Err(WavError::Unsupported),
    };
    let rate = u32::from(low) | u32::from(high) << 16;
    let format = AudioFormat::new(rate, bits / 8, channels).validated()?;
    // A padded block size would shift every later sample.
    if usize::from(block) != format.frame_bytes() {
        return Err(WavError::Unsupported);
    }
    Ok((format, encoding))
}

#[cfg(test)]
mod tests;
