//! Decodes the bytes of a program or file into captured sound.

use crate::audio::{AudioFormat, AudioFormatError, CaptureConverter, WavError, WavStream};

// Detected rather than configured: `arecord` writes a WAV header unless told not to.
pub(super) enum SourceDecoder {
    /// The format of raw sound, and the first bytes until they tell WAV from it.
    Unknown(AudioFormat, Vec<u8>),
    Raw(CaptureConverter),
    Wav(WavStream, Option<CaptureConverter>),
}

impl SourceDecoder {
    pub(super) fn raw_or_wav(raw: AudioFormat) -> Result<Self, AudioFormatError> {
        Ok(Self::Unknown(raw.validated()?, Vec::new()))
    }

    pub(super) fn only_wav() -> Self {
        Self::Wav(WavStream::default(), None)
    }

    pub(super) fn decode(&mut self, bytes: &[u8]) -> Result<Vec<i16>, WavError> {
        match self {
            Self::Unknown(raw, first) => {
                first.extend_from_slice(bytes);
                if first.len() < 4 && b"RIFF".starts_with(first) {
                    return Ok(Vec::new());
                }
                let first = std::mem::take(first);
                *self = match first.starts_with(b"RIFF") {
                    true => Self::only_wav(),
                    false => Self::Raw(CaptureConverter::new(*raw)?),
                };
                self.decode(&first)
            }
            Self::Raw(converter) => Ok(converter.convert(bytes)),
            Self::Wav(wav, converter) => {
                let sound = wav.feed(bytes)?;
                let Some(format) = wav.format() else {
                    return Ok(Vec::new());
                };
                let converter = match converter {
                    Some(converter) => converter,
                    none => none.insert(CaptureConverter::new(format)?),
                };
                Ok(converter.convert(&sound))
            }
        }
    }

    pub(super) fn finish(self) -> Result<Vec<i16>, WavError> {
        match self {
            Self::Unknown(..) => Ok(Vec::new()),
            Self::Raw(converter) | Self::Wav(_, Some(converter)) => Ok(converter.finish()),
            Self::Wav(wav, None) if wav.is_empty() => Err(WavError::NotWav("it is empty")),
            Self::Wav(_, None) => Err(WavError::NotWav("it ends in its header")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn wav(rate: u32, samples: &[i16]) -> Vec<u8> {
        let mut file = Cursor::new(Vec::new());
        let spec = hound::WavSpec {
            channels: 1,
            sample_rate: rate,
            bits_per_sample: 16,
            sample_format: hound::SampleFormat::Int,
        };
        let mut writer = hound::WavWriter::new(&mut file, spec).unwrap();
        for sample in samples {
            writer.write_sample(*sample).unwrap();
        }
        writer.finalize().unwrap();
        file.into_inner()
    }

    fn decode(
        mut decoder: SourceDecoder,
        bytes: &[u8],
        piece: usize,
    ) -> Result<Vec<i16>, WavError> {
        let mut heard = Vec::new();
        for bytes in bytes.chunks(piece) {
            heard.extend(decoder.decode(bytes)?);
        }
        heard.extend(decoder.finish()?);
        Ok(heard)
    }

    #[test]
    fn raw_sound_and_wav_are_distinguished() {
        let raw = || SourceDecoder::raw_or_wav(AudioFormat::CAPTURE).unwrap();
        let doubled = wav(32_000, &[100; 640]);
        for piece in [1, 3, 10_000] {
            assert_eq!(decode(raw(), &[1, 0, 2, 0], piece), Ok(vec![1, 2]));
            // Raw sound that starts almost like WAV.
            assert_eq!(decode(raw(), b"RIFE", piece), Ok(vec![0x4952, 0x4546]));
            assert_eq!(decode(raw(), &wav(16_000, &[7, 8]), piece), Ok(vec![7, 8]));
            assert_eq!(decode(raw(), &doubled, piece).unwrap().len(), 320);
            assert_eq!(decode(raw(), &[], piece), Ok(vec![]));
        }
    }

    #[test]
    fn a_file_must_be_wav() {
        for (bytes, problem) in [
            (&b""[..], "it is empty"),
            (b"RI", "it ends in its header"),
            (b"hello", "it has no RIFF header"),
        ] {
            let expected = Err(WavError::NotWav(problem));
            assert_eq!(
                decode(SourceDecoder::only_wav(), bytes, 1),
                expected,
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn invalid_sample_rate_is_rejected() {
        let format = AudioFormat {
            rate: 1,
            ..AudioFormat::CAPTURE
        };
        assert!(SourceDecoder::raw_or_wav(format).is_err());
    }
}
