//! What is asked and answered.

use std::time::Duration;

use fakewyoming::{Client, FakeSatellite, Fault, Got, Port};
use serde_json::{Value, json};
use toolgate_journal::TurnOutcome;
use toolgate_voice::{Input, Key, Mode};

use crate::model::Say;
use crate::stage::{HANG, SPOKEN, Stage, speech};

#[tokio::test]
async fn a_request_is_heard_answered_and_spoken() {
    let stage = Stage::new([Say::Call("", "datetime"), Say::Words("It is noon.")]).await;
    let stage = stage.ready().await;
    stage.ask().await;
    stage.sees("turn answered", 1).await;
    assert_eq!(stage.tts.texts(), ["It is noon."]);
    let turn = &stage.watch.turns()[0];
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
async fn a_request_whose_sound_just_stops_is_answered() {
    let stage = Stage::new([Say::Words("Yes.")]).await.ready().await;
    stage.keys.send(Key::Talk).await.unwrap();
    stage.sees("state listening", 1).await;
    let request = speech();
    // Without the silence behind it.
    stage.mic.hear(&request[..request.len() - 20_000]);
    stage.sees("turn answered", 1).await;
    stage.end().await;
}

#[tokio::test]
async fn without_its_name_nothing_is_heard_and_with_it_the_request_is() {
    let stage = Stage::new([Say::Words("Yes.")]).await;
    let stage = stage.with(|parts, stage| {
        parts.mode = Mode::Wake;
        parts.settings.wake = stage.wake.address();
    });
    let stage = stage.ready().await;
    stage.mic.hear(&speech());
    stage.wake.until("audio-chunk", 3).await;
    stage.wake.detect("hey_jarvis");
    stage.sees("state listening", 1).await;
    stage.mic.hear(&speech());
    stage.sees("turn answered", 1).await;
    assert_eq!(
        stage.asr.utterances().len(),
        1,
        "the first was nobody's request"
    );
    let turn = &stage.watch.turns()[0];
    assert_eq!(turn.wake_word.as_deref(), Some("hey_jarvis"));
    // Nobody named a word, so all that the service knows are: some load no others.
    let named = stage.wake.got_of("detect");
    assert!(named[0].data.to_string().contains("ok_nabu"), "{named:?}");
    stage.end().await;
}

#[tokio::test]
async fn a_key_cuts_an_answer_short_and_the_next_request_is_heard() {
    const LONG: &str = "This is a very long answer that nobody wants to hear to its end, which is why there is a key.";
    let stage = Stage::new([Say::Words(LONG), Say::Words("Good.")]).await;
    let stage = stage.ready().await;
    stage.ask().await;
    stage.sees("state speaking", 1).await;
    stage.ask().await;
    stage.sees("turn answered", 1).await;
    let turns = stage.watch.turns();
    let outcomes = turns.iter().map(|turn| turn.outcome);
    assert!(outcomes.eq([TurnOutcome::Interrupted, TurnOutcome::Answered]));
    stage.end().await;
}

#[tokio::test]
async fn whoever_listens_all_the_time_does_not_listen_to_itself() {
    const LONG: &str = "This is a rather long answer, during which nobody is heard.";
    let stage = Stage::new([
        Say::Call("Let me see what the clock says.", "datetime"),
        Say::Words(LONG),
    ])
    .await;
    let port = Port::take();
    let handle = port.address();
    let stage = stage.with(|parts, _| {
        parts.mode = Mode::Always;
        // Takes as long as a loudspeaker.
        parts.settings.output = "sh -c 'cat >/dev/null'".to_owned();
        parts.settings.handle = handle.clone();
        parts.settings.welcome = "Good morning, everything is ready.".to_owned();
    });
    let stage = stage.ready().await;
    // While it greets, between its words and a tool, and while it speaks; also beside somebody who asks in writing.
    stage.tts.until("synthesize", 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    stage.mic.hear(&speech());
    stage.sees_quiet().await;
    stage.mic.hear(&[0; 8000]);
    stage.mic.hear(&speech());
    stage.sees("called datetime true", 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    stage.mic.hear(&speech());
    stage.sees("state speaking", 1).await;
    written(&handle, "hello").await;
    stage.mic.hear(&speech());
    stage.sees("turn answered", 2).await;
    assert_eq!(stage.asr.utterances().len(), 1);
    assert_eq!(stage.end().await.dropped, 0);
}

#[tokio::test]
async fn a_satellite_hears_its_answer() {
    let satellite = FakeSatellite::start("Kitchen").await;
    let stage = Stage::new([Say::Words("Done.")]).await;
    let stage = stage.with(|parts, _| {
        parts.mode = Mode::Wake;
        parts.settings.output = String::new();
        parts.input = Some(Input::parse(&satellite.address()).unwrap());
    });
    let stage = stage.ready().await;
    satellite.wake("hey_jarvis");
    satellite.hear(&speech());
    stage.sees("turn answered", 1).await;
    let turn = &stage.watch.turns()[0];
    assert_eq!(
        (turn.room.as_deref(), turn.wake_word.as_deref()),
        (Some("Kitchen"), Some("hey_jarvis"))
    );
    assert!(satellite.heard().iter().any(|sound| !sound.is_empty()));
    stage.end().await;
}

#[tokio::test]
async fn a_satellite_is_given_its_own_words_and_nobody_elses() {
    let satellite = FakeSatellite::start("Kitchen").await;
    let port = Port::take();
    let handle = port.address();
    let stage = Stage::new([Say::Words("Done.")]).await.with(|parts, _| {
        parts.mode = Mode::Wake;
        parts.input = Some(Input::parse(&satellite.address()).unwrap());
        parts.settings.handle = handle.clone();
    });
    let stage = stage.ready().await;
    stage.asr.fault(Fault::Delay(Duration::from_secs(2)));
    satellite.wake("hey_jarvis");
    satellite.hear(&speech());
    stage.sees("state transcribing", 1).await;
    written(&handle, "what is two plus two").await;
    stage.sees("turn answered", 2).await;
    satellite.until("transcript", 1).await;
    let told = satellite.got_of("transcript");
    let told: Vec<_> = told.iter().map(|event| &event.data["text"]).collect();
    assert_eq!(told, ["hello there"]);
    stage.end().await;
}

#[tokio::test]
async fn a_file_is_answered_to_its_end() {
    let mut stage = Stage::new([Say::Words("Yes.")]).await.with(|parts, _| {
        parts.input = Some(Input::Wav(vec![SPOKEN.into(); 6]));
        parts.mode = Mode::Always;
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
async fn others_ask_in_text_and_have_text_spoken() {
    let (stage, handle, tts) = Stage::serving([Say::Words("The light is on.")]).await;
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

/// Asks in writing. True if it was handled, with the answer.
pub(crate) async fn written(address: &str, text: &str) -> (bool, String) {
    let question = json!({ "text": text });
    let ends = ["handled", "not-handled"];
    let answer = ask(address, "transcript", &question, &ends).await;
    let text = answer.data["text"].as_str().unwrap().to_owned();
    (answer.kind == "handled", text)
}

/// Sends one event, and waits for one of those that answer it.
pub(crate) async fn ask(address: &str, kind: &str, data: &Value, answers: &[&str]) -> Got {
    let asking = async {
        let mut client = Client::connect(address).await?;
        client.send(kind, data, &[]).await?;
        client.wait_for(answers).await
    };
    let answer = tokio::time::timeout(HANG, asking).await.unwrap();
    answer.unwrap()
}
