//! A spoken request, to the light and back to a spoken answer.

use fakellm::{Answer, FakeLlm, FakeModel, Script};
use serde_json::{Value, json};
use toolgate_journal::JournalReader;

use crate::engines::{EngineProcess, speak};
use crate::house::SimulatedHome;
use crate::program::{VoiceFolder, VoiceRun};

/// Speaks a request and lets the gateway answer it. Returns the transcript of the
/// answer by Whisper too.
async fn asked(
    text: &str,
    home: &SimulatedHome,
    whisper: &EngineProcess,
    model: Value,
) -> (VoiceRun, String, VoiceFolder) {
    let folder = VoiceFolder::new();
    let wav = folder.path("request.wav");
    speak(text, &wav);
    let config = json!({
        "mcpServers": { "zwave": home.server() },
        "mqtt": { "url": home.url() },
        "model": model,
        "voice": { "asr": whisper.address(), "tts": "espeak-ng", "tones": false },
    });
    let (done, answer) = folder.answered(&config, &wav);
    let said = whisper.understands(&answer).await;
    (done, said, folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn vo2_a_spoken_request_switches_the_light_and_the_answer_says_so() {
    let (Some(home), Some(whisper)) = (SimulatedHome::new().await, EngineProcess::whisper()) else {
        return;
    };
    let intents = json!({ "provider": "intents" });
    let (done, said, folder) = asked("turn on switch one", &home, &whisper, intents).await;
    assert_eq!(done.code, Some(0), "{}", done.log);
    assert_eq!(home.state("Switch One"), "on", "{}", done.log);
    let turn = &done.turns[0];
    assert_eq!(
        (done.turns.len(), &turn["outcome"]),
        (1, &json!("answered")),
        "{turn}"
    );
    // "Switch one is off" has an "on" in it too.
    let words: Vec<&str> = said
        .split(|letter: char| !letter.is_alphanumeric())
        .collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    assert!(
        words.contains(&"switch") && words.last() == Some(&"on"),
        "{said}"
    );

    // Each stage is reached in order, and the turn is recorded with its call.
    let stages = [
        "speech_ended_ms",
        "transcribed_ms",
        "first_token_ms",
        "first_audio_ms",
        "ended_ms",
    ];
    let times: Vec<f64> = stages
        .map(|stage| turn["stages"][stage].as_f64().unwrap())
        .to_vec();
    assert!(times.is_sorted(), "{turn}");
    let reader = JournalReader::open(&folder.path(".local/state/toolgate/journal.db")).unwrap();
    let kept = reader.turns(10, None).unwrap();
    assert_eq!(kept.len(), 1);
    let call = reader.call(&kept[0].calls[0]).unwrap().unwrap();
    assert_eq!(
        (call.summary.tool.as_str(), call.summary.origin.as_str()),
        ("control_zwave_device", "voice")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn vo2_the_model_gets_the_transcription_and_its_answer_is_spoken() {
    let (Some(home), Some(whisper)) = (SimulatedHome::new().await, EngineProcess::whisper()) else {
        return;
    };
    let arguments = json!({ "deviceName": "Switch One", "action": "on" });
    let answers = [
        Answer::call("call_1", "control_zwave_device", &arguments),
        Answer::text("The **kitchen** switch is on now."),
    ];
    let llm = FakeLlm::with_model(Script::new(answers), FakeModel::new("qwen3:0.6b")).await;
    let model = json!({ "provider": "ollama", "name": "qwen3:0.6b", "url": llm.url() });
    let (done, said, _folder) = asked("turn on switch one", &home, &whisper, model).await;
    assert_eq!(done.code, Some(0), "{}", done.log);
    assert_eq!(home.state("Switch One"), "on");
    let asked = llm.requests()[0].json()["messages"]
        .to_string()
        .to_lowercase();
    assert!(asked.contains("turn on switch"), "{asked}");
    assert!(said.contains("kitchen switch is on"), "{said}");
}
