//! Engines that die in the middle of a turn. The turn may be lost; the next is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fakellm::{Answer, Api, FakeLlm};
use fakewyoming::ServiceFault;
use futures::FutureExt;
use tokio::time::timeout;
use toolgate_journal::{TurnOutcome, VoiceTurn};
use toolgate_models::{ConnectedModel, ModelClient, ModelSettings, OllamaClient};
use toolgate_voice::{ListenMode, VoiceKey};

use crate::model::ModelStep;
use crate::stage::{HANG, TestStage, speech};

const LONG: &str = "This is an answer that is so long that there is time enough for an engine to die before it has been spoken.";

/// A turn, counted from 0, however it ends.
async fn turn(stage: &TestStage, index: usize) -> VoiceTurn {
    let turn = stage.recorder.turn(index);
    timeout(HANG, turn).await.unwrap()
}

/// Checks that the next request is answered aloud.
async fn answers(stage: &TestStage, index: usize) {
    let spoken = stage.tts.texts().len();
    stage.ask().await;
    let next = turn(stage, index).await;
    assert_eq!(next.outcome, TurnOutcome::Answered, "{next:?}");
    assert!(stage.tts.texts().len() > spoken);
}

#[tokio::test]
async fn transcription_is_killed_while_transcribing() {
    let mut stage = TestStage::new([ModelStep::Words("Yes.")])
        .await
        .ready()
        .await;
    stage.asr.inject_fault(ServiceFault::Hang);
    stage.ask().await;
    stage.asr.wait_for_events("audio-stop", 1).await;
    stage.asr.kill().await;
    let lost = turn(&stage, 0).await;
    assert_eq!(lost.outcome, TurnOutcome::Failed, "{lost:?}");
    stage.asr.restart().await;
    answers(&stage, 1).await;
    stage.end().await;
}

#[tokio::test]
async fn speech_engine_is_killed_while_speaking() {
    let stage = TestStage::new([ModelStep::Words(LONG), ModelStep::Words("Yes.")]).await;
    let mut stage = stage.ready().await;
    // A second of sound, and then nothing.
    stage.tts.inject_fault(ServiceFault::HangAfter(20));
    stage.ask().await;
    stage.sees("state speaking", 1).await;
    stage.tts.kill().await;
    let lost = turn(&stage, 0).await;
    assert_eq!(lost.outcome, TurnOutcome::Failed, "{lost:?}");
    stage.tts.restart().await;
    answers(&stage, 1).await;
    stage.end().await;
}

#[tokio::test]
async fn microphone_is_killed_during_a_request() {
    let mut stage = TestStage::new([ModelStep::Words("Yes.")])
        .await
        .ready()
        .await;
    let request = speech();
    stage.keys.send(VoiceKey::Talk).await.unwrap();
    stage.sees("state listening", 1).await;
    // It ends within a word.
    stage.mic.send_sound(&request[..16_000]);
    stage.sees("state hearing", 1).await;
    stage.mic.kill().await;
    stage.sees("lost microphone", 1).await;
    stage.mic.restart().await;
    stage.sees("back microphone", 1).await;
    stage.ask().await;
    stage.sees("turn answered", 1).await;
    let longest = request.len() * 2;
    let heard = stage.asr.utterances().pop().unwrap();
    assert!(
        heard.len() <= longest,
        "the half request is no part of the next"
    );
    stage.end().await;
}

#[tokio::test]
async fn wake_word_service_is_killed_after_a_detection() {
    let stage = TestStage::new([ModelStep::Words("Yes.")]).await;
    let stage = stage.with(|parts, stage| {
        parts.mode = ListenMode::Wake;
        parts.settings.wake = stage.wake.address();
    });
    let mut stage = stage.ready().await;
    stage.mic.send_sound(&speech());
    stage.wake.wait_for_events("audio-chunk", 3).await;
    stage.wake.detect("ok_nabu");
    stage.sees("state listening", 1).await;
    stage.wake.kill().await;
    stage.sees("lost wake word", 1).await;
    stage.mic.send_sound(&speech());
    let woken = turn(&stage, 0).await;
    assert_eq!(
        (woken.outcome, woken.wake_word.as_deref()),
        (TurnOutcome::Answered, Some("ok_nabu")),
        "it has done its part"
    );
    stage.wake.restart().await;
    stage.sees("back wake word", 1).await;
    answers(&stage, 1).await;
    stage.end().await;
}

#[tokio::test]
async fn model_is_killed_while_answering() {
    let is_dead = Arc::new(AtomicBool::new(true));
    let dead = Arc::clone(&is_dead);
    let script = fakellm::Script::from_fn(move |_| match dead.load(Ordering::Relaxed) {
        true => Answer::text(LONG).cut_in(Api::Ollama, "an engine to die"),
        false => Answer::text("Yes."),
    });
    let llm = FakeLlm::lenient(script).await;
    let mut settings = ModelSettings::default();
    settings.name = "fake".to_owned();
    settings.url = llm.url().to_owned();
    let client: Arc<dyn ModelClient> = Arc::new(OllamaClient::new(&settings).unwrap());
    let stage = TestStage::new([ModelStep::Words("never asked")]).await;
    let stage = stage.with(|parts, _| {
        parts.model = Arc::new(move || {
            let chosen = ConnectedModel {
                router: Arc::clone(&client).into(),
                settings: settings.clone(),
                why: "the test says so".to_owned(),
                skipped: Vec::new(),
            };
            async move { Ok(chosen) }.boxed()
        });
    });
    let stage = stage.ready().await;
    stage.ask().await;
    let lost = turn(&stage, 0).await;
    assert_eq!(lost.outcome, TurnOutcome::Failed, "{lost:?}");
    is_dead.store(false, Ordering::Relaxed);
    answers(&stage, 1).await;
    assert_eq!(stage.tts.texts().last().unwrap(), "Yes.");
    stage.end().await;
}

#[tokio::test]
async fn player_is_killed_while_playing() {
    const ANSWER: &str = "This is long enough for somebody to die.";
    let folder = tempfile::tempdir().unwrap();
    let stage = TestStage::new([ModelStep::Words(ANSWER), ModelStep::Words("Yes.")]).await;
    let stage = stage.with(|parts, _| {
        // The first reads a little and dies; the next ones play.
        let script = "if mkdir $1/first 2> /dev/null; then head -c 20000 > /dev/null; kill -9 $$; fi; exec cat > /dev/null";
        let folder = folder.path().display();
        parts.settings.output = format!("sh -c '{script}' player {folder}");
    });
    let stage = stage.ready().await;
    stage.ask().await;
    let lost = turn(&stage, 0).await;
    assert!(folder.path().join("first").exists(), "one has died");
    assert_eq!(
        (lost.outcome, lost.answer.as_str()),
        (TurnOutcome::Answered, ANSWER),
        "the rest is played by the next"
    );
    answers(&stage, 1).await;
    stage.end().await;
}
