//! Requests and answers of a voice gateway, in the dashboard of another process.

use std::path::Path;

use jiff::Timestamp;
use serde_json::json;
use toolgate_core::{ToolCall, ToolExecutor};
use toolgate_journal::{TurnOutcome, TurnStages, VoiceTurn};

use crate::browser::{run_script, with_journal};
use crate::support::{ServeProcess, browser_tools, pause};

#[test]
fn the_dashboard_shows_voice_turns_as_they_end() {
    let Some(tools) = browser_tools() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let gateway = ServeProcess::start(folder.path(), &json!({}));
    let (some, many) = (folder.path().join("some"), folder.path().join("many"));
    let (home, signals) = (folder.path().to_owned(), [some.clone(), many.clone()]);
    std::thread::spawn(move || {
        await_file(&signals[0]);
        speak_some(&home);
        await_file(&signals[1]);
        speak_much(&home);
    });
    let signals = [some, many].map(|path| path.to_string_lossy().into_owned());
    run_script(&tools, "voice.mjs", &gateway, &[&signals[0], &signals[1]]);
}

/// Waits until the script creates the file, with a limit in case the script fails.
fn await_file(file: &Path) {
    for _ in 0..3000 {
        if file.exists() {
            return;
        }
        pause(20);
    }
    panic!("nobody made {}", file.display());
}

/// One turn of each kind; the last one is the newest.
fn speak_some(home: &Path) {
    with_journal(home, "toolgate voice", async |journal, executor| {
        let mut hostile = turn(executor).await;
        hostile.heard = "<img src=x onerror=document.title='owned'> \u{202e}turned".to_owned();
        hostile.answer = format!("A <b>long</b> story. {}the end", "And so on. ".repeat(200));
        hostile.room = Some("a room with a very long name ".repeat(6));
        let mut failed = turn(executor).await;
        failed.heard = String::new();
        failed.answer = "Sorry, I could not understand you.".to_owned();
        failed.outcome = TurnOutcome::Failed;
        failed.error = Some("the speech service did not answer within 10 s".to_owned());
        failed.stages.transcribed_ms = None;
        failed.stages.first_token_ms = None;
        failed.stages.first_audio_ms = Some(11_350.0);
        failed.stages.ended_ms = Some(13_700.0);
        failed.calls = Vec::new();
        let mut interrupted = turn(executor).await;
        interrupted.heard = "what is the weather like in the mountains".to_owned();
        interrupted.answer = "In the mountains it".to_owned();
        interrupted.outcome = TurnOutcome::Interrupted;
        interrupted.room = None;
        interrupted.source = "microphone".to_owned();
        interrupted.wake_word = None;
        interrupted.calls.push(format!("{:032x}", 7));
        for turn in [hostile, failed, interrupted, turn(executor).await] {
            journal.record_turn(&turn);
        }
    });
}

fn speak_much(home: &Path) {
    with_journal(home, "toolgate voice", async |journal, executor| {
        for _ in 0..60 {
            journal.record_turn(&turn(executor).await);
        }
    });
}

/// A turn that used a tool.
async fn turn(executor: &ToolExecutor) -> VoiceTurn {
    let call = ToolCall::new("counting", json!({}));
    let called = call.id().to_string();
    executor.execute(call).await;
    VoiceTurn {
        id: ToolCall::new("turn", json!({})).id().to_string(),
        started_at: Timestamp::now(),
        source: "satellite".to_owned(),
        room: Some("kitchen".to_owned()),
        wake_word: Some("ok nabu".to_owned()),
        heard: "turn on switch one".to_owned(),
        answer: "Switch one is on.".to_owned(),
        outcome: TurnOutcome::Answered,
        error: None,
        model: "intents en".to_owned(),
        stages: TurnStages {
            speech_ended_ms: Some(1200.0),
            transcribed_ms: Some(1650.0),
            first_token_ms: Some(1658.0),
            first_audio_ms: Some(1900.0),
            ended_ms: Some(3100.0),
        },
        calls: vec![called],
    }
}
