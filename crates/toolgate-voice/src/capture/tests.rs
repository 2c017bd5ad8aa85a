//! Whole sources against fake engines.

use std::time::Duration;

use bytes::Bytes;
use fakewyoming::{FakeMic, FakeSatellite};
use tokio::time::{Instant, timeout};

use super::*;
use crate::VoiceSettings;
use crate::audio::AudioFormat;
use crate::segment::Utterance;
use crate::segment::{ArmingMode, SegmentNotice, Segmenter};
use crate::wyoming::WyomingEvent;

const HANG: Duration = Duration::from_secs(60);

/// espeak-ng says "turn on switch one".
fn spoken() -> Vec<i16> {
    let wav = &include_bytes!("../../tests/sounds/turn-on-switch-one.wav")[..];
    let samples = hound::WavReader::new(wav).unwrap().into_samples();
    let silence = vec![0; 20_000];
    [
        silence[..8_000].to_vec(),
        samples.map(Result::unwrap).collect(),
        silence,
    ]
    .concat()
}

async fn opened(address: &str) -> Result<OpenInput, EngineError> {
    open(&AudioInput::parse(address).unwrap()).await
}

async fn next(opened: &mut OpenInput) -> Result<Option<CaptureEvent>, EngineError> {
    timeout(HANG, opened.source.next()).await.expect("no hang")
}

/// The first utterance.
async fn utterance(opened: &mut OpenInput, listening: ArmingMode) -> Utterance {
    let settings = VoiceSettings::default();
    let mut segmenter = Segmenter::new(&settings, listening, opened.room.clone());
    loop {
        let notices = match next(opened).await.unwrap().expect("it goes on") {
            CaptureEvent::Sound(samples) => segmenter.feed(&samples, Instant::now()),
            CaptureEvent::Woken(name) => segmenter.arm(name, Instant::now()),
            CaptureEvent::FileBegins(_) | CaptureEvent::FileEnds => continue,
        };
        for notice in notices {
            if let SegmentNotice::Finished(utterance) = notice {
                return utterance;
            }
        }
    }
}

#[tokio::test]
async fn a_satellite_request_is_captured_and_answered() {
    let satellite = FakeSatellite::start("Kitchen").await;
    let mut opened = opened(&satellite.address()).await.unwrap();
    satellite.wake("hey_jarvis");
    satellite.send_sound(&spoken());
    let utterance = utterance(&mut opened, ArmingMode::WhenWoken).await;
    assert_eq!(utterance.wake_word.as_deref(), Some("hey_jarvis"));
    assert_eq!(utterance.room.as_deref(), Some("Kitchen"));

    let link = opened.link.clone().unwrap();
    let format = AudioFormat::CAPTURE;
    let timestamp = None;
    link.send(WyomingEvent::AudioStart { format, timestamp })
        .await
        .unwrap();
    let bytes = Bytes::from_static(&[1, 2, 3, 4]);
    link.send(WyomingEvent::AudioChunk {
        format,
        timestamp,
        bytes,
    })
    .await
    .unwrap();
    assert_eq!(link.finish_playback(HANG).await, Ok(true));
    assert_eq!(satellite.heard(), [[1, 2, 3, 4]]);
    assert!(
        satellite.complaints().is_empty(),
        "{:?}",
        satellite.complaints()
    );
}

#[tokio::test]
async fn killed_microphone_is_lost_and_can_be_reopened() {
    let mut microphone = FakeMic::start().await;
    let address = microphone.address();
    for _ in 0..3 {
        let mut source = opened(&address).await.unwrap();
        microphone.send_sound(&spoken());
        let utterance = utterance(&mut source, ArmingMode::Always).await;
        assert!(utterance.samples.len() > 20_000);
        microphone.kill().await;
        while let Some(_heard) = next(&mut source).await.unwrap_or_default() {}
        assert_eq!(next(&mut source).await, Ok(None));
        assert!(opened(&address).await.is_err(), "nobody is there");
        microphone.restart().await;
    }
}

#[tokio::test]
async fn invalid_frames_lose_only_the_microphone() {
    let endless = vec![b'x'; 100_000];
    for bytes in [
        &b"no json at all\n"[..],
        b"{\"type\":\"audio-chunk\",\"payload_length\":1000000000000}\n",
        b"{\"type\":\"audio-chunk\",\"data\":{\"rate\":1,\"width\":2,\"channels\":1},\"payload_length\":2}\nxx",
        &endless,
    ] {
        let microphone = FakeMic::start().await;
        let mut source = opened(&microphone.address()).await.unwrap();
        microphone.send_sound(&[1; 1_024]);
        assert_eq!(next(&mut source).await, Ok(Some(CaptureEvent::Sound(vec![1; 1_024]))));
        microphone.send_raw(bytes);
        let error = next(&mut source).await.unwrap_err();
        assert!(matches!(error, EngineError::Protocol { .. }), "{error}");
        assert_eq!(next(&mut source).await, Ok(None));
    }
}
