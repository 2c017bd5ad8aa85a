//! Requests and their answers.

use std::time::Duration;

use fakewyoming::{FakeSatellite, Port, ReceivedEvent, ServiceFault, WyomingTestClient};
use serde_json::{Value, json};
use toolgate_journal::TurnOutcome;
use toolgate_voice::{AudioInput, ListenMode, VoiceKey};

use crate::model::ModelStep;
use crate::stage::{HANG, SPOKEN, TestStage, speech};

#[tokio::test]
async fn request_is_captured_answered_and_spoken() {
    let stage = TestStage::new([
        ModelStep::Call("", "datetime"),
        ModelStep::Words("It is noon."),
    ])
    .await;
    let stage = stage.ready().await;
    stage.ask().await;
    stage.sees("turn answered", 1).await;
    assert_eq!(stage.tts.texts(), ["It is noon."]);
    let turn = &stage.recorder.turns()[0];
    assert_eq!(
        (turn.heard.as_str(), turn.source.as_str()),
        ("hello there", "satellite")
    );
    assert_eq!(turn.calls.len(), 1);
    let stages = turn.stages;
    let times = [
        stages.speech_ended_ms,
        stages.transcribed_ms,
        stages.first_token_ms,
        stages.first_audio_ms,
        stages.ended_ms,
    ];
    assert!(times.is_sorted() && times[0].is_some(), "{stages:?}");
    let summary = stage.end().await;
    assert_eq!((summary.turns, summary.failed), (1, 0));
}

#[tokio::test]
async fn request_is_answered_when_its_sound_stalls() {
    let stage = TestStage::new([ModelStep::Words("Yes.")])
        .await
        .ready()
        .await;
    stage.keys.send(VoiceKey::Talk).await.unwrap();
    stage.sees("state listening", 1).await;
    let request = speech();
    // Without the silence after it.
    stage.mic.send_sound(&request[..request.len() - 20_000]);
    stage.sees("turn answered", 1).await;
    stage.end().await;
}

#[tokio::test]
async fn request_is_captured_only_after_the_wake_word() {
    let stage = TestStage::new([ModelStep::Words("Yes.")]).await;
    let stage = stage.with(|parts, stage| {
        parts.mode = ListenMode::Wake;
        parts.settings.wake = stage.wake.address();
    });
    let stage = stage.ready().await;
    stage.mic.send_sound(&speech());
    stage.wake.wait_for_events("audio-chunk", 3).await;
    stage.wake.detect("hey_jarvis");
    stage.sees("state listening", 1).await;
    stage.mic.send_sound(&speech());
    stage.sees("turn answered", 1).await;
    assert_eq!(
        stage.asr.utterances().len(),
        1,
        "the first was nobody's request"
    );
    let turn = &stage.recorder.turns()[0];
    assert_eq!(turn.wake_word.as_deref(), Some("hey_jarvis"));
    // No word is configured, so all known words are requested, because some
    // services load only those.
    let named = stage.wake.received_of_kind("detect");
    assert!(named[0].data.to_string().contains("ok_nabu"), "{named:?}");
    stage.end().await;
}

#[tokio::test]
async fn a_key_cuts_an_answer_short_and_the_next_request_is_heard() {
    const LONG: &str = "This is a very long answer that nobody wants to hear to its end, which is why there is a key.";
    let stage = TestStage::new([ModelStep::Words(LONG), ModelStep::Words("Good.")]).await;
    let stage = stage.ready().await;
    stage.ask().await;
    stage.sees("state speaking", 1).await;
    stage.ask().await;
    stage.sees("turn answered", 1).await;
    let turns = stage.recorder.turns();
    let outcomes = turns.iter().map(|turn| turn.outcome);
    assert!(outcomes.eq([TurnOutcome::Interrupted, TurnOutcome::Answered]));
    stage.end().await;
}

#[tokio::test]
async fn a_gateway_in_always_mode_ignores_its_own_voice() {
    const LONG: &str = "This is a rather long answer, during which nobody is heard.";
    let stage = TestStage::new([
        ModelStep::Call("Let me see what the clock says.", "datetime"),
        ModelStep::Words(LONG),
    ])
    .await;
    let port = Port::reserve();
    let handle = port.address();
    let stage = stage.with(|parts, _| {
        parts.mode = ListenMode::Always;
        // Takes as long as real playback.
        parts.settings.output = "sh -c 'cat >/dev/null'".to_owned();
        parts.settings.handle = handle.clone();
        parts.settings.welcome = "Good morning, everything is ready.".to_owned();
    });
    let stage = stage.ready().await;
    // During the greeting, between its words and a tool, while it speaks, and
    // beside a written request.
    stage.tts.wait_for_events("synthesize", 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    stage.mic.send_sound(&speech());
    stage.sees_quiet().await;
    stage.mic.send_sound(&[0; 8000]);
    stage.mic.send_sound(&speech());
    stage.sees("called datetime true", 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    stage.mic.send_sound(&speech());
    stage.sees("state speaking", 1).await;
    written(&handle, "hello").await;
    stage.mic.send_sound(&speech());
    stage.sees("turn answered", 2).await;
    assert_eq!(stage.asr.utterances().len(), 1);
    assert_eq!(stage.end().await.dropped, 0);
}

#[tokio::test]
async fn a_satellite_hears_its_answer() {
    let satellite = FakeSatellite::start("Kitchen").await;
    let stage = TestStage::new([ModelStep::Words("Done.")]).await;
    let stage = stage.with(|parts, _| {
        parts.mode = ListenMode::Wake;
        parts.settings.output = String::new();
        parts.input = Some(AudioInput::parse(&satellite.address()).unwrap());
    });
    let stage = stage.ready().await;
    satellite.wake("hey_jarvis");
    satellite.send_sound(&speech());
    stage.sees("turn answered", 1).await;
    let turn = &stage.recorder.turns()[0];
    assert_eq!(
        (turn.room.as_deref(), turn.wake_word.as_deref()),
        (Some("Kitchen"), Some("hey_jarvis"))
    );
    assert!(satellite.heard().iter().any(|sound| !sound.is_empty()));
    stage.end().await;
}

#[tokio::test]
async fn satellite_receives_only_its_own_transcripts() {
    let satellite = FakeSatellite::start("Kitchen").await;
    let port = Port::reserve();
    let handle = port.address();
    let stage = TestStage::new([ModelStep::Words("Done.")])
        .await
        .with(|parts, _| {
            parts.mode = ListenMode::Wake;
            parts.input = Some(AudioInput::parse(&satellite.address()).unwrap());
            parts.settings.handle = handle.clone();
        });
    let stage = stage.ready().await;
    stage
        .asr
        .inject_fault(ServiceFault::Delay(Duration::from_secs(2)));
    satellite.wake("hey_jarvis");
    satellite.send_sound(&speech());
    stage.sees("state transcribing", 1).await;
    written(&handle, "what is two plus two").await;
    stage.sees("turn answered", 2).await;
    satellite.wait_for_events("transcript", 1).await;
    let told = satellite.received_of_kind("transcript");
    let told: Vec<_> = told.iter().map(|event| &event.data["text"]).collect();
    assert_eq!(told, ["hello there"]);
    stage.end().await;
}

#[tokio::test]
async fn a_file_is_answered_to_its_end() {
    let mut stage = TestStage::new([ModelStep::Words("Yes.")])
        .await
        .with(|parts, _| {
            parts.input = Some(AudioInput::Wav(vec![SPOKEN.into(); 6]));
            parts.mode = ListenMode::Always;
            parts.settings.queue = 1;
        });
    stage = stage.start();
    let summary = stage.over().await.unwrap();
    assert_eq!(
        (summary.turns, summary.dropped),
        (6, 0),
        "a file waits for its answers"
    );
    assert_eq!(stage.tts.texts().len(), 6);
}

#[tokio::test]
async fn clients_can_send_text_and_have_text_spoken() {
    let (stage, handle, tts) = TestStage::serving([ModelStep::Words("The light is on.")]).await;
    let answer = written(&handle, "turn on the light").await;
    assert_eq!(answer, (true, "The light is on.".to_owned()));
    assert!(
        stage.tts.texts().is_empty(),
        "whoever reads is not spoken to"
    );
    let text = json!({ "text": "Hello." });
    ask(&tts, "synthesize", &text, &["audio-stop"]).await;
    stage.end().await;
}

/// Sends a written request. True if it was handled, with the answer.
pub(crate) async fn written(address: &str, text: &str) -> (bool, String) {
    let question = json!({ "text": text });
    let ends = ["handled", "not-handled"];
    let answer = ask(address, "transcript", &question, &ends).await;
    let text = answer.data["text"].as_str().unwrap().to_owned();
    (answer.kind == "handled", text)
}

/// Sends one event, and waits for one of those that answer it.
pub(crate) async fn ask(
    address: &str,
    kind: &str,
    data: &Value,
    answers: &[&str],
) -> ReceivedEvent {
    let asking = async {
        let mut client = WyomingTestClient::connect(address).await?;
        client.send(kind, data, &[]).await?;
        client.wait_for(answers).await
    };
    let answer = tokio::time::timeout(HANG, asking).await.unwrap();
    answer.unwrap()
}
