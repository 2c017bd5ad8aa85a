use std::f64::consts::TAU;

use proptest::prelude::*;

use super::*;
use crate::audio::level;

/// A second of a tone at half of full scale, the same on all channels.
fn tone(frequency: f64, format: AudioFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    for index in 0..format.rate {
        let phase = TAU * frequency * f64::from(index) / f64::from(format.rate);
        let wide = (phase.sin() * 0.5 * f64::from(i32::MAX)) as i32;
        for _ in 0..format.channels {
            bytes.extend(&wide.to_le_bytes()[4 - usize::from(format.width)..]);
        }
    }
    bytes
}

fn convert(format: AudioFormat, bytes: &[u8], piece: usize) -> Vec<i16> {
    let mut converter = CaptureConverter::new(format).unwrap();
    let mut heard = Vec::new();
    for bytes in bytes.chunks(piece) {
        heard.extend(converter.convert(bytes));
    }
    heard.extend(converter.finish());
    heard
}

/// How much of this frequency is in the samples: 0.5 for a tone at half of full scale.
fn amount(frequency: f64, samples: &[i16]) -> f64 {
    let (mut real, mut imaginary) = (0.0, 0.0);
    for (index, sample) in samples.iter().enumerate() {
        let phase = TAU * frequency * index as f64 / f64::from(SAMPLE_RATE);
        real += f64::from(*sample) * phase.cos();
        imaginary += f64::from(*sample) * phase.sin();
    }
    real.hypot(imaginary) * 2.0 / samples.len() as f64 / 32_768.0
}

#[test]
fn tone_survives_conversion_from_every_format() {
    for (rate, width, channels) in [
        (8_000, 1, 1),
        (8_000, 2, 1),
        (11_025, 2, 2),
        (16_000, 3, 2),
        (22_050, 2, 1),
        (32_000, 4, 1),
        (44_100, 2, 2),
        (48_000, 2, 2),
        (48_000, 4, 8),
        (192_000, 3, 1),
    ] {
        let format = AudioFormat::new(rate, width, channels);
        for frequency in [200.0, 1_000.0, 3_000.0] {
            let heard = convert(format, &tone(frequency, format), 4_096);
            assert_eq!(heard.len(), 16_000, "{format:?}");
            let found = amount(frequency, &heard);
            assert!(
                (found - 0.5).abs() < 0.02,
                "{frequency} Hz, {format:?}: {found}"
            );
        }
    }
}

#[test]
fn frequencies_above_speech_do_not_alias() {
    for (rate, frequency) in [
        (22_050, 10_000.0),
        (44_100, 12_000.0),
        (48_000, 15_000.0),
        (192_000, 40_000.0),
    ] {
        let format = AudioFormat::new(rate, 2, 1);
        let heard = convert(format, &tone(frequency, format), 4_096);
        // The tone itself would have a level near 1.
        let quiet = level(&heard[800..15_200]);
        assert_eq!(quiet, 0.0, "{frequency} Hz at {rate} Hz");
    }
}

#[test]
fn conversion_does_not_shift_sound() {
    for rate in [8_000, 44_100, 48_000] {
        let format = AudioFormat::new(rate, 2, 1);
        let mut bytes = vec![0; rate as usize];
        bytes.extend(tone(1_000.0, format));
        let heard = convert(format, &bytes, 999);
        let begins = heard
            .iter()
            .position(|sample| sample.abs() > 3_000)
            .unwrap();
        // Half a second of silence is 8000 samples, and a tone needs a few to rise.
        assert!((7_990..8_010).contains(&begins), "{rate}: {begins}");
    }
}

#[test]
fn capture_format_is_not_changed() {
    let samples = [0, 1, -1, i16::MAX, i16::MIN];
    let bytes: Vec<u8> = samples
        .iter()
        .flat_map(|sample| sample.to_le_bytes())
        .collect();
    assert_eq!(convert(AudioFormat::CAPTURE, &bytes, 3), samples);
}

#[test]
fn channels_are_mixed() {
    let bytes: Vec<u8> = [1_000_i16, 3_000, -5, 5]
        .iter()
        .flat_map(|sample| sample.to_le_bytes())
        .collect();
    assert_eq!(
        convert(AudioFormat::new(SAMPLE_RATE, 2, 2), &bytes, 1),
        [2_000, 0]
    );
}

#[test]
fn partial_frame_at_the_end_is_dropped() {
    assert_eq!(
        convert(
            AudioFormat::new(SAMPLE_RATE, 2, 2),
            &[1, 0, 1, 0, 9, 9, 9],
            100
        ),
        [1]
    );
    assert_eq!(
        convert(AudioFormat::new(48_000, 2, 1), &[1], 100),
        Vec::<i16>::new()
    );
}

#[test]
fn unplayable_format_is_rejected() {
    let problem = CaptureConverter::new(AudioFormat::new(16_000, 2, 0)).err();
    assert_eq!(problem, Some(AudioFormatError::Channels(0)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn conversion_ignores_chunk_boundaries(
        bytes in prop::collection::vec(any::<u8>(), 0..4_000),
        rate in prop::sample::select(vec![8_000_u32, 16_000, 22_050, 44_100, 48_000]),
        width in 1..=4_u16,
        channels in 1..=3_u16,
        piece in 1..700_usize,
    ) {
        let format = AudioFormat::new(rate, width, channels);
        let whole = convert(format, &bytes, usize::MAX);
        prop_assert_eq!(&convert(format, &bytes, piece), &whole);
        let frames = bytes.len() / format.frame_bytes();
        let due = (frames as f64 * 16_000.0 / f64::from(rate)).ceil() as usize;
        prop_assert_eq!(whole.len(), due);
    }
}
