use std::io::Cursor;

use hound::{SampleFormat, WavSpec, WavWriter};

use super::*;

/// A WAV as another program writes it.
fn written(spec: WavSpec, samples: &[i32]) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    let mut writer = WavWriter::new(&mut file, spec).unwrap();
    for sample in samples {
        match spec.sample_format {
            SampleFormat::Int => writer.write_sample(*sample).unwrap(),
            SampleFormat::Float => writer.write_sample(*sample as f32 / 4.0).unwrap(),
        }
    }
    writer.finalize().unwrap();
    file.into_inner()
}

fn spec(bits: u16, channels: u16, sample_format: SampleFormat) -> WavSpec {
    WavSpec {
        channels,
        sample_rate: 22_050,
        bits_per_sample: bits,
        sample_format,
    }
}

/// A header of 44 bytes with whatever is wanted in it.
fn raw(kind: u16, channels: u16, rate: u32, block: u16, bits: u16, length: u32) -> Vec<u8> {
    let mut bytes = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0".to_vec();
    bytes.extend(kind.to_le_bytes());
    bytes.extend(channels.to_le_bytes());
    bytes.extend(rate.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(block.to_le_bytes());
    bytes.extend(bits.to_le_bytes());
    bytes.extend(b"data");
    bytes.extend(length.to_le_bytes());
    bytes
}

/// All of its sound, fed in pieces of this size.
fn read(wav: &[u8], piece: usize) -> Result<(Option<AudioFormat>, Vec<u8>), WavError> {
    let mut stream = WavStream::default();
    let mut sound = Vec::new();
    for bytes in wav.chunks(piece) {
        sound.extend(stream.feed(bytes)?);
    }
    Ok((stream.format(), sound))
}

#[test]
fn every_usual_wav_is_read_in_pieces_of_any_size() {
    let cases: [(WavSpec, &[i32], &[u8]); 5] = [
        (
            spec(8, 1, SampleFormat::Int),
            &[-128, 0, 127],
            &[0x80, 0, 0x7f],
        ),
        (
            spec(16, 1, SampleFormat::Int),
            &[1, -2],
            &[1, 0, 0xfe, 0xff],
        ),
        (
            spec(24, 2, SampleFormat::Int),
            &[1, -1],
            &[1, 0, 0, 0xff, 0xff, 0xff],
        ),
        (spec(32, 1, SampleFormat::Int), &[1 << 24], &[0, 0, 0, 1]),
        // A quarter, minus a half, and ten times too loud.
        (
            spec(32, 1, SampleFormat::Float),
            &[1, -2, 40],
            &[0, 0, 0, 0x20, 0, 0, 0, 0xc0, 0xff, 0xff, 0xff, 0x7f],
        ),
    ];
    for (spec, samples, expected) in cases {
        let wav = written(spec, samples);
        for piece in [1, 3, 7, wav.len()] {
            let (format, sound) = read(&wav, piece).unwrap();
            let format = format.unwrap();
            assert_eq!(sound, expected, "{spec:?} in pieces of {piece}");
            assert_eq!(format.rate, 22_050);
            assert_eq!(format.width * 8, spec.bits_per_sample);
            assert_eq!(format.channels, spec.channels);
        }
    }
}

#[test]
fn only_a_known_length_ends_the_sound() {
    for (length, expected) in [
        (0, 8),
        (u32::MAX, 8),
        (0x7fff_ffff, 8),
        (0x7fff_f000, 8),
        (4, 4),
        (5, 4),
        (6, 6),
        (100, 8),
    ] {
        let mut wav = raw(1, 1, 16_000, 2, 16, length);
        wav.extend([1; 8]);
        for piece in [1, 5, 100] {
            let (_, sound) = read(&wav, piece).unwrap();
            assert_eq!(sound.len(), expected, "{length} in pieces of {piece}");
        }
    }
}

#[test]
fn chunks_before_the_sound_are_skipped() {
    let mut wav = raw(1, 1, 16_000, 2, 16, 2);
    // An odd length, so a padding byte follows.
    wav.splice(12..12, *b"LIST\x03\0\0\0abc\0");
    wav.extend([7, 7]);
    assert_eq!(read(&wav, 1).unwrap().1, [7, 7]);
}

#[test]
fn invalid_wav_is_rejected_with_a_reason() {
    let unsupported = Err(WavError::Unsupported);
    let not = |why: &'static str| Err(WavError::NotWav(why));
    let mut headless = b"RIFF\0\0\0\0WAVEdata\x04\0\0\0".to_vec();
    headless.extend([0; 4]);
    let mut short = b"RIFF\0\0\0\0WAVEfmt \x04\0\0\0".to_vec();
    short.extend([0; 4]);
    let mut long = b"RIFF\0\0\0\0WAVEjunk\0\0\x10\0".to_vec();
    long.extend([0; 100]);
    for (name, wav, expected) in [
        (
            "text",
            b"hello, world".to_vec(),
            not("it has no RIFF header"),
        ),
        ("one byte", b"x".to_vec(), not("it has no RIFF header")),
        (
            "avi",
            b"RIFF\0\0\0\0AVI ".to_vec(),
            not("it has no RIFF header"),
        ),
        ("ADPCM", raw(2, 1, 16_000, 2, 16, 4), unsupported.clone()),
        ("12 bits", raw(1, 1, 16_000, 2, 12, 4), unsupported.clone()),
        (
            "a wrong block",
            raw(1, 2, 16_000, 2, 16, 4),
            unsupported.clone(),
        ),
        ("a wide float", raw(3, 1, 16_000, 8, 64, 4), unsupported),
        (
            "no rate",
            raw(1, 1, 0, 2, 16, 4),
            Err(AudioFormatError::Rate(0).into()),
        ),
        (
            "no channel",
            raw(1, 0, 8_000, 0, 16, 4),
            Err(AudioFormatError::Channels(0).into()),
        ),
        (
            "no format",
            headless,
            not("its 'data' chunk comes before its 'fmt ' chunk"),
        ),
        ("a short format", short, not("its format is cut off")),
        (
            "a megabyte of notes",
            long,
            not("its header is longer than 64 KiB"),
        ),
    ] {
        for piece in [1, 1000] {
            assert_eq!(read(&wav, piece), expected, "{name}");
        }
    }
}

#[test]
fn missing_header_yields_no_sound() {
    let wav = raw(1, 1, 16_000, 2, 16, 4);
    assert_eq!(read(&wav[..40], 1), Ok((None, Vec::new())));
}

proptest::proptest! {
    #[test]
    fn arbitrary_headers_do_not_panic(bytes: Vec<u8>, head in 0..=44_usize, piece in 1..50_usize) {
        let mut wav = raw(1, 2, 44_100, 4, 16, 12);
        wav.truncate(head);
        wav.extend(bytes);
        let _any = read(&wav, piece);
    }
}
