//! From bytes that a program writes to what is heard.

use crate::audio::{Format, FormatError, ToHeard, WavError, WavStream};

/// A stream of bytes that is raw sound, or WAV if it begins as such: `arecord` writes a header unless it is told not to.
pub(super) struct Decoder {
    raw: Option<Format>,
    /// The bytes from which it will be known what this is.
    first: Vec<u8>,
    form: Option<Form>,
}

enum Form {
    Raw(ToHeard),
    Wav(WavStream, Option<ToHeard>),
}

impl Decoder {
    /// What does not begin as WAV is raw sound of this format.
    pub(super) fn raw_or_wav(raw: Format) -> Result<Self, FormatError> {
        Ok(Self {
            raw: Some(raw.check()?),
            first: Vec::new(),
            form: None,
        })
    }

    /// What does not begin as WAV is refused.
    pub(super) fn only_wav() -> Self {
        Self {
            raw: None,
            first: Vec::new(),
            form: None,
        }
    }

    pub(super) fn decode(&mut self, bytes: &[u8]) -> Result<Vec<i16>, WavError> {
        let Some(form) = &mut self.form else {
            self.first.extend_from_slice(bytes);
            if self.raw.is_some() && b"RIFF".starts_with(&self.first) && self.first.len() < 4 {
                return Ok(Vec::new());
            }
            let first = std::mem::take(&mut self.first);
            self.form = Some(match self.raw {
                Some(raw) if !first.starts_with(b"RIFF") => Form::Raw(ToHeard::new(raw)?),
                _ => Form::Wav(WavStream::default(), None),
            });
            return self.decode(&first);
        };
        match form {
            Form::Raw(to_heard) => Ok(to_heard.convert(bytes)),
            Form::Wav(wav, to_heard) => {
                let sound = wav.feed(bytes)?;
                let Some(format) = wav.format() else {
                    return Ok(Vec::new());
                };
                match to_heard {
                    Some(to_heard) => Ok(to_heard.convert(&sound)),
                    None => Ok(to_heard.insert(ToHeard::new(format)?).convert(&sound)),
                }
            }
        }
    }

    /// What is still inside when no more bytes come. A WAV without a whole header is no WAV.
    pub(super) fn finish(self) -> Result<Vec<i16>, WavError> {
        match self.form {
            Some(Form::Raw(to_heard) | Form::Wav(_, Some(to_heard))) => Ok(to_heard.finish()),
            Some(Form::Wav(_, None)) => Err(WavError::NotWav("it ends in its header".to_owned())),
            None if self.raw.is_some() => Ok(Vec::new()),
            None => Err(WavError::NotWav("it is empty".to_owned())),
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

    fn decode(mut decoder: Decoder, bytes: &[u8], piece: usize) -> Result<Vec<i16>, WavError> {
        let mut heard = Vec::new();
        for bytes in bytes.chunks(piece) {
            heard.extend(decoder.decode(bytes)?);
        }
        heard.extend(decoder.finish()?);
        Ok(heard)
    }

    #[test]
    fn raw_sound_and_wav_are_told_apart() {
        let raw = || Decoder::raw_or_wav(Format::HEARD).unwrap();
        let doubled = wav(32_000, &[100; 640]);
        for piece in [1, 3, 10_000] {
            assert_eq!(decode(raw(), &[1, 0, 2, 0], piece), Ok(vec![1, 2]));
            // Raw sound that begins nearly as WAV does.
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
            (b"hello", "it does not begin as one"),
        ] {
            let expected = Err(WavError::NotWav(problem.to_owned()));
            assert_eq!(decode(Decoder::only_wav(), bytes, 1), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_rate_nobody_could_record_is_refused() {
        let format = Format {
            rate: 1,
            ..Format::HEARD
        };
        assert!(Decoder::raw_or_wav(format).is_err());
    }
}
