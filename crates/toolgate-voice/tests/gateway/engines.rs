//! Engines that die at any moment and come back.

use toolgate_journal::TurnOutcome;
use toolgate_models::{ModelError, Provider};
use toolgate_voice::ListenMode;

use crate::model::ModelStep;
use crate::requests::written;
use crate::stage::{TestStage, speech};

#[tokio::test]
async fn lost_transcription_is_reported_once_and_reconnected() {
    let mut stage = TestStage::new([ModelStep::Words("Yes.")])
        .await
        .ready()
        .await;
    stage.asr.kill().await;
    for failed in 1..=2 {
        stage.ask().await;
        stage.sees("turn failed", failed).await;
    }
    stage.asr.restart().await;
    stage.sees("back transcription", 1).await;
    stage.ask().await;
    stage.sees("turn answered", 1).await;
    assert_eq!(stage.recorder.count("lost transcription"), 1);
    stage.end().await;
}

#[tokio::test]
async fn speech_is_lost_and_found_again() {
    let mut stage = TestStage::new([ModelStep::Words("Yes.")])
        .await
        .ready()
        .await;
    stage.tts.kill().await;
    stage.ask().await;
    stage.sees("lost speech", 1).await;
    stage.tts.restart().await;
    stage.sees("back speech", 1).await;
    stage.ask().await;
    stage.sees("turn answered", 1).await;
    assert_eq!(stage.tts.texts(), ["Yes."]);
    assert_eq!(stage.recorder.count("lost speech"), 1);
    stage.end().await;
}

#[tokio::test]
async fn failed_player_is_reported_as_the_loudspeaker_and_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let stage = TestStage::new([ModelStep::Words("Yes.")])
        .await
        .with(|parts, _| {
            let script = "test -e $1/card || exit 1; exec cat > /dev/null";
            let folder = folder.path().display();
            parts.settings.output = format!("sh -c '{script}' player {folder}");
        });
    let stage = stage.ready().await;
    for failed in 1..=2 {
        stage.ask().await;
        stage.sees("turn failed", failed).await;
    }
    assert_eq!(stage.recorder.count("lost loudspeaker"), 1);
    assert_eq!(stage.recorder.count("lost speech"), 0, "it has spoken");
    std::fs::write(folder.path().join("card"), "").unwrap();
    stage.ask().await;
    stage.sees("turn answered", 1).await;
    assert_eq!(stage.recorder.count("back loudspeaker"), 1);
    stage.end().await;
}

#[tokio::test]
async fn a_lost_model_is_reported_once_replaced_and_used_again() {
    let away = || {
        let error = ModelError::Unreachable {
            provider: Provider::Ollama,
            url: "http://127.0.0.1:1".to_owned(),
            reason: "connection refused".to_owned(),
        };
        ModelStep::Fails("", error)
    };
    let says = [
        ModelStep::Words("Once."),
        away(),
        away(),
        away(),
        ModelStep::Words("Again."),
    ];
    let (stage, handle, _) = TestStage::serving(says).await;
    let story = "tell me a story about bees";
    for (text, ok, expected) in [
        (story, true, "Once."),
        // The announcement must not keep the gateway from what works without the engine.
        ("what time is it", true, "noon"),
        (story, false, "I can't reach my language model right now"),
        ("what time is it", true, "noon"),
        (story, false, "I can't reach my language model right now"),
        (story, true, "Again."),
    ] {
        let (said, answer) = written(&handle, text).await;
        assert_eq!(said, ok, "{text}: {answer}");
        assert!(answer.contains(expected), "{text}: {answer}");
    }
    assert_eq!(
        (
            stage.recorder.count("lost model"),
            stage.recorder.count("back model")
        ),
        (1, 1)
    );
    let models: Vec<String> = stage
        .recorder
        .turns()
        .into_iter()
        .map(|turn| turn.model)
        .collect();
    let by_model = "ollama script";
    assert_eq!(models[..2], [by_model, "intents"], "{models:?}");
    assert_eq!(models[5], by_model);
    stage.end().await;
}

#[tokio::test]
async fn the_microphone_is_lost_and_found_again() {
    let mut stage = TestStage::new([ModelStep::Words("Yes.")])
        .await
        .ready()
        .await;
    stage.mic.kill().await;
    stage.sees("lost microphone", 1).await;
    stage.mic.restart().await;
    stage.sees("back microphone", 1).await;
    stage.ask().await;
    stage.sees("turn answered", 1).await;
    stage.end().await;
}

#[tokio::test]
async fn the_wake_word_is_lost_and_found_again() {
    let stage = TestStage::new([ModelStep::Words("Yes.")]).await;
    let stage = stage.with(|parts, stage| {
        parts.mode = ListenMode::Wake;
        parts.settings.wake = stage.wake.address();
    });
    let mut stage = stage.ready().await;
    stage.mic.send_sound(&speech());
    stage.wake.wait_for_events("audio-chunk", 3).await;
    stage.wake.kill().await;
    stage.sees("lost wake word", 1).await;
    stage.wake.restart().await;
    stage.sees("back wake word", 1).await;
    stage.wake.forget();
    stage.mic.send_sound(&speech());
    stage.wake.wait_for_events("audio-chunk", 3).await;
    stage.wake.detect("ok_nabu");
    stage.sees("state listening", 1).await;
    stage.mic.send_sound(&speech());
    stage.sees("turn answered", 1).await;
    stage.end().await;
}

#[tokio::test]
async fn garbage_from_a_microphone_is_survived() {
    let stage = TestStage::new([ModelStep::Words("Yes.")])
        .await
        .ready()
        .await;
    stage.mic.send_raw(&[0xff; 100_000]);
    stage.sees("lost microphone", 1).await;
    stage.sees("back microphone", 1).await;
    stage.ask().await;
    stage.sees("turn answered", 1).await;
    assert_eq!(stage.recorder.turns()[0].outcome, TurnOutcome::Answered);
    stage.end().await;
}
