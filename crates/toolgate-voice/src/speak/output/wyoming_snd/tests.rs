//! A loudspeaker over a socket: alone, and as part of a satellite.

use std::sync::Arc;

use fakewyoming::FakeSatellite;
use tokio::time::Instant;

use super::*;
use crate::capture::open;
use crate::speak::{NoSpeech, SignalTone, Speaker};
use crate::{AudioInput, VoiceVolume};

fn sound(milliseconds: usize) -> Bytes {
    7_i16.to_le_bytes().repeat(milliseconds * 16).into()
}

#[tokio::test]
async fn playback_is_paced_and_waits_for_its_end() {
    let fake = FakeSatellite::start("Kitchen").await;
    let output = WyomingSnd::new(fake.address().parse().unwrap());
    let began = Instant::now();
    let mut playing = output.begin(AudioFormat::CAPTURE).await.unwrap();
    for _ in 0..10 {
        playing.play(sound(40)).await.unwrap();
        assert!(playing.heard() <= began.elapsed());
    }
    playing.end().await.unwrap();
    assert!(
        began.elapsed() >= Duration::from_millis(400),
        "it was heard to its end"
    );
    assert_eq!(fake.heard(), [sound(400)]);
    assert_eq!(fake.complaints(), [""; 0]);
}

#[tokio::test]
async fn stop_closes_the_connection_without_sending_the_rest() {
    let fake = FakeSatellite::start("Kitchen").await;
    let output = WyomingSnd::new(fake.address().parse().unwrap());
    let mut playing = output.begin(AudioFormat::CAPTURE).await.unwrap();
    playing.play(sound(40)).await.unwrap();
    playing.stop().await;
    assert!(playing.play(sound(40)).await.is_err() && playing.end().await.is_err());
    fake.wait_for_events("audio-chunk", 1).await;
    assert_eq!(fake.received_of_kind("audio-chunk").len(), 1);
}

#[tokio::test]
async fn killed_service_is_an_error_until_it_restarts() {
    let mut fake = FakeSatellite::start("Kitchen").await;
    let output = WyomingSnd::new(fake.address().parse().unwrap());
    let mut playing = output.begin(AudioFormat::CAPTURE).await.unwrap();
    playing.play(sound(40)).await.unwrap();
    fake.kill().await;
    let broken = async {
        // The kernel may still accept the first bytes after the end.
        while playing.play(sound(40)).await.is_ok() {}
    };
    timeout(Duration::from_secs(10), broken)
        .await
        .expect("it is noticed");
    assert!(output.begin(AudioFormat::CAPTURE).await.is_err());
    fake.restart().await;
    let mut playing = output.begin(AudioFormat::CAPTURE).await.unwrap();
    playing.play(sound(40)).await.unwrap();
    playing.end().await.unwrap();
    assert_eq!(fake.heard().last(), Some(&sound(40).to_vec()));
}

#[tokio::test]
async fn answer_goes_to_the_satellite_that_asked() {
    let fake = FakeSatellite::start("Kitchen").await;
    let input = AudioInput::Wyoming(fake.address().parse().unwrap());
    let mut opened = open(&input).await.unwrap();
    let link = opened.link.take().unwrap();
    // The source is polled all the time, as in the gateway.
    let listening =
        tokio::spawn(async move { while let Ok(Some(_)) = opened.source.next().await {} });
    let mut playing = link.begin(AudioFormat::CAPTURE).await.unwrap();
    playing.play(sound(40)).await.unwrap();
    playing.play(sound(40)).await.unwrap();
    playing.end().await.unwrap();
    assert_eq!(fake.heard(), [sound(80)]);

    let mut playing = link.begin(AudioFormat::CAPTURE).await.unwrap();
    playing.play(sound(40)).await.unwrap();
    playing.stop().await;
    fake.wait_for_events("audio-stop", 2).await;
    assert_eq!(
        fake.heard().len(),
        2,
        "a stop ends the sound for the satellite too"
    );

    let speaker = Speaker::new(Arc::new(NoSpeech), Arc::new(link), VoiceVolume::default());
    speaker.play_tone(SignalTone::Wake);
    fake.wait_for_events("audio-stop", 3).await;
    assert_eq!(fake.complaints(), [""; 0]);
    listening.abort();
}
