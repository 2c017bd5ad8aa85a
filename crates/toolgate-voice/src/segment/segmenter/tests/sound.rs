//! The segmenter with the real detector and real sound.

use std::f32::consts::TAU;

use super::*;
use crate::audio::{AudioFormat, CaptureConverter, SAMPLE_RATE};

/// espeak-ng says "turn on switch one".
const SPOKEN: &[u8] = include_bytes!("../../../../tests/sounds/turn-on-switch-one.wav");

fn spoken() -> Vec<i16> {
    let reader = hound::WavReader::new(SPOKEN).unwrap();
    reader.into_samples().map(Result::unwrap).collect()
}

fn silence(seconds: f32) -> Vec<i16> {
    vec![0; (seconds * 16_000.0) as usize]
}

fn noise(seconds: f32, loudness: i16) -> Vec<i16> {
    let mut random = fastrand::Rng::with_seed(7);
    let length = (seconds * 16_000.0) as usize;
    (0..length)
        .map(|_| random.i16(-loudness..=loudness))
        .collect()
}

/// A sustained chord.
fn chord(seconds: f32) -> Vec<i16> {
    let length = (seconds * 16_000.0) as usize;
    let at = |index: usize| {
        let tone = |frequency: f32| (TAU * frequency * index as f32 / 16_000.0).sin() * 4_000.0;
        tone(440.0) + tone(554.37) + tone(659.25)
    };
    (0..length).map(|index| at(index) as i16).collect()
}

fn clicks(seconds: f32) -> Vec<i16> {
    let mut sound = silence(seconds);
    for click in sound.chunks_mut(8_000) {
        click[..20].fill(20_000);
    }
    sound
}

/// All utterances found, with the sound fed in pieces of this length.
fn found(sound: &[i16], piece: usize) -> Vec<SegmentNotice> {
    let mut segmenter = always();
    let mut now = Instant::now();
    let mut notices = Vec::new();
    for samples in sound.chunks(piece) {
        now += Duration::from_secs_f64(samples.len() as f64 / 16_000.0);
        notices.extend(segmenter.feed(samples, now));
    }
    notices
}

#[test]
fn noise_is_not_detected_as_speech() {
    for (name, sound) in [
        ("silence", silence(4.0)),
        ("quiet noise", noise(4.0, 60)),
        ("loud noise", noise(4.0, 4_000)),
        ("a chord", chord(4.0)),
        ("clicks", clicks(4.0)),
        (
            "a cough",
            [silence(0.5), noise(0.2, 12_000), silence(2.0)].concat(),
        ),
    ] {
        assert!(describe_notices(&found(&sound, 1_024)).is_empty(), "{name}");
    }
}

#[test]
fn speech_is_found_whole_in_any_surroundings() {
    let sentence = spoken();
    let quiet = |seconds| noise(seconds, 60);
    for (name, before, after) in [
        ("silence", silence(0.6), silence(1.5)),
        ("a quiet room", quiet(0.6), quiet(1.5)),
        (
            "a chord before",
            [chord(1.0), quiet(0.6)].concat(),
            quiet(1.5),
        ),
        ("clicks", clicks(1.0), clicks(2.0)),
    ] {
        let sound = [&before[..], &sentence, &after].concat();
        for piece in [160, 1_024, 5_000] {
            let notices = found(&sound, piece);
            let told = describe_notices(&notices);
            assert_eq!((told.len(), &*told[0]), (2, "began"), "{name}: {told:?}");
            let Some(SegmentNotice::Finished(utterance)) = notices
                .iter()
                .find(|notice| matches!(notice, SegmentNotice::Finished(_)))
            else {
                panic!("{name}: {told:?}");
            };
            // The whole sentence, and not much more than the pre-roll and the silence.
            let whole = utterance
                .samples
                .windows(sentence.len())
                .any(|window| window == sentence);
            assert!(whole, "{name}: {told:?}");
            let more = utterance.samples.len() - sentence.len();
            assert!(more < 16_000 * 5 / 4, "{name}: {told:?}");
        }
    }
}

/// The same sound as recorded by another microphone, in stereo.
fn recorded(sound: &[i16], rate: u32) -> Vec<u8> {
    let length = sound.len() as u64 * u64::from(rate) / u64::from(SAMPLE_RATE);
    let sample = |index: u64| {
        let at = index as f64 * f64::from(SAMPLE_RATE) / f64::from(rate);
        let (from, share) = (at as usize, at.fract());
        let next = sound.get(from + 1).copied().unwrap_or_default();
        f64::from(sound[from]) * (1.0 - share) + f64::from(next) * share
    };
    (0..length)
        .flat_map(|index| {
            let [low, high] = (sample(index) as i16).to_le_bytes();
            [low, high, low, high]
        })
        .collect()
}

#[test]
fn speech_is_found_in_any_format() {
    let sound = [silence(0.5), spoken(), silence(1.2)].concat();
    for rate in [8_000, 22_050, 44_100, 48_000] {
        let format = AudioFormat {
            rate,
            width: 2,
            channels: 2,
        };
        let heard = CaptureConverter::new(format)
            .unwrap()
            .convert(&recorded(&sound, rate));
        let told = describe_notices(&found(&heard, 1_024));
        assert_eq!((told.len(), &*told[0]), (2, "began"), "{rate}: {told:?}");
    }
}

#[test]
fn a_pause_within_a_sentence_does_not_end_it() {
    let sentence = spoken();
    for (pause, expected) in [(0.3, 1), (0.5, 1), (1.5, 2)] {
        let sound = [
            silence(0.5),
            sentence.clone(),
            silence(pause),
            sentence.clone(),
            silence(1.5),
        ]
        .concat();
        let told = describe_notices(&found(&sound, 1_024));
        assert_eq!(told.len(), expected * 2, "{pause}: {told:?}");
    }
}

#[test]
fn level_is_reported_several_times_a_second() {
    let notices = found(&[silence(1.0), chord(1.0)].concat(), 160);
    let levels: Vec<f32> = notices
        .iter()
        .filter_map(|notice| match notice {
            SegmentNotice::Level(level) => Some(*level),
            _ => None,
        })
        .collect();
    assert_eq!(levels.len(), 15);
    assert!(levels[3] == 0.0 && levels[12] > 0.8, "{levels:?}");
}
