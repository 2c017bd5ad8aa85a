//! Breaks the protocol on every socket of the gateway in every way. The next
//! request must be answered.

use std::time::Duration;

use fakewyoming::FakeSatellite;
use futures::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use toolgate_journal::TurnOutcome;
use toolgate_voice::{AudioInput, ListenMode, VoiceSettings};

use crate::hostile_proxy::{HostileProxy, frames};
use crate::model::ModelStep;
use crate::requests::ask;
use crate::stage::{HANG, TestStage, speech};

/// Engines that use one connection per request: one request meets the hostile proxy,
/// the next is answered.
async fn run_poisoned_request(
    name: &str,
    trigger: &'static str,
    place: fn(&mut VoiceSettings) -> &mut String,
    poison: Vec<u8>,
) -> TurnOutcome {
    let loudspeaker = FakeSatellite::start("").await;
    let mut stage = TestStage::new([ModelStep::Words("Yes.")]).await;
    let settings = &mut stage.parts.as_mut().unwrap().settings;
    settings.output = loudspeaker.address();
    let engine = place(settings);
    let villain = HostileProxy::before(engine, trigger, poison).await;
    *engine = villain.address();
    let stage = stage.ready().await;
    stage.ask().await;
    let met = timeout(HANG, stage.recorder.turn(0)).await.expect(name);
    timeout(HANG, villain.done()).await.expect(name);
    stage.ask().await;
    let next = timeout(HANG, stage.recorder.turn(1)).await.expect(name);
    assert_eq!(next.outcome, TurnOutcome::Answered, "{name}: {next:?}");
    assert!(!loudspeaker.heard().is_empty(), "{name}");
    stage.end().await;
    met.outcome
}

#[tokio::test]
async fn transcription_protocol_error_costs_one_request() {
    join_all(frames().into_iter().map(async |(name, frame)| {
        let met = run_poisoned_request(name, "audio-stop", |all| &mut all.asr, frame).await;
        assert_eq!(met, TurnOutcome::Failed, "{name}");
    }))
    .await;
}

#[tokio::test]
async fn speech_is_retried_once_after_a_protocol_error() {
    join_all(frames().into_iter().map(async |(name, frame)| {
        let met = run_poisoned_request(name, "synthesize", |all| &mut all.tts, frame).await;
        assert_eq!(met, TurnOutcome::Answered, "{name}");
    }))
    .await;
}

#[tokio::test]
async fn loudspeaker_protocol_error_costs_at_most_one_answer() {
    join_all(frames().into_iter().map(async |(name, frame)| {
        run_poisoned_request(name, "audio-start", |all| &mut all.output, frame).await;
    }))
    .await;
}

#[tokio::test]
async fn wake_word_service_is_reconnected_after_a_protocol_error() {
    join_all(frames().into_iter().map(async |(name, frame)| {
        let stage = TestStage::new([ModelStep::Words("Yes.")]).await;
        let villain = HostileProxy::before(&stage.wake.address(), "audio-chunk", frame).await;
        let stage = stage.with(|parts, _| {
            parts.mode = ListenMode::Wake;
            parts.settings.wake = villain.address();
        });
        let stage = stage.ready().await;
        stage.mic.send_sound(&speech());
        stage
            .pump(|stage| stage.recorder.count("lost wake word") > 0)
            .await;
        stage.sees("lost wake word", 1).await;
        stage.sees("back wake word", 1).await;
        stage.wake.forget();
        stage.mic.send_sound(&speech());
        stage.wake.wait_for_events("audio-chunk", 3).await;
        stage.wake.detect("hey_jarvis");
        stage.sees("state listening", 1).await;
        stage.mic.send_sound(&speech());
        stage.sees("turn answered", 1).await;
        let turn = &stage.recorder.turns()[0];
        assert_eq!(turn.wake_word.as_deref(), Some("hey_jarvis"), "{name}");
        stage.end().await;
    }))
    .await;
}

#[tokio::test]
async fn microphone_is_reopened_after_a_protocol_error() {
    join_all(frames().into_iter().map(async |(name, frame)| {
        let stage = TestStage::new([ModelStep::Words("Yes.")])
            .await
            .ready()
            .await;
        stage.mic.send_raw(&frame);
        stage.sees("lost microphone", 1).await;
        stage.sees("back microphone", 1).await;
        stage.ask().await;
        stage.sees("turn answered", 1).await;
        assert_eq!(stage.recorder.count("lost microphone"), 1, "{name}");
        stage.end().await;
    }))
    .await;
}

#[tokio::test]
async fn satellite_is_reopened_after_a_protocol_error() {
    join_all(frames().into_iter().map(async |(name, frame)| {
        let satellite = FakeSatellite::start("Kitchen").await;
        let stage = TestStage::new([ModelStep::Words("Done.")]).await;
        let stage = stage.with(|parts, _| {
            parts.mode = ListenMode::Wake;
            parts.settings.output = String::new();
            parts.input = Some(AudioInput::parse(&satellite.address()).unwrap());
        });
        let stage = stage.ready().await;
        satellite.send_raw(&frame);
        stage.sees("lost microphone", 1).await;
        satellite.wait_for_events("run-satellite", 2).await;
        satellite.wake("hey_jarvis");
        satellite.send_sound(&speech());
        stage.sees("turn answered", 1).await;
        let has_heard = satellite.heard().iter().any(|sound| !sound.is_empty());
        assert!(has_heard, "{name}");
        stage.end().await;
    }))
    .await;
}

#[tokio::test]
async fn clients_with_protocol_errors_are_closed_and_others_served() {
    let (stage, handle, tts) = TestStage::serving([ModelStep::Words("The light is on.")]).await;
    let mut quiet = Vec::new();
    for address in [&handle, &tts] {
        // A client sends half an event and stays connected.
        let mut half = connect(address).await;
        half.write_all(b"{\"type\": \"trans").await.unwrap();
        quiet.push(half);
        for (name, frame) in frames() {
            assert_rejected(address, name, &frame).await;
            assert_eq!(told(&handle).await, "The light is on.", "{name}");
            assert_eq!(spoken(&tts).await, "sound", "{name}");
        }
    }
    stage.end().await;
}

async fn connect(address: &str) -> TcpStream {
    let address = address.trim_start_matches("tcp://");
    let connecting = timeout(HANG, TcpStream::connect(address)).await;
    connecting.unwrap().unwrap()
}

/// The server closes the connection without saying much, although the client keeps it open.
async fn assert_rejected(address: &str, name: &str, frame: &[u8]) {
    let mut stream = connect(address).await;
    let sending = async {
        // A client that is rejected early can neither send everything nor read the error.
        drop(stream.write_all(frame).await);
        let mut said = Vec::new();
        drop(stream.read_to_end(&mut said).await);
        said.len()
    };
    let said = timeout(Duration::from_secs(20), sending).await.expect(name);
    assert!(said < 2_000, "{name}: {said} bytes");
}

async fn told(handle: &str) -> String {
    let question = json!({ "text": "turn on the light", "language": "en" });
    let answer = ask(handle, "transcript", &question, &["handled"]).await;
    answer.data["text"].as_str().unwrap().to_owned()
}

async fn spoken(tts: &str) -> String {
    ask(
        tts,
        "synthesize",
        &json!({ "text": "Hello." }),
        &["audio-stop"],
    )
    .await;
    "sound".to_owned()
}
