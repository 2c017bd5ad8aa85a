use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use toolgate_core::{ToolCall, ToolError};

use super::*;

fn view(is_interactive: bool, json: bool) -> VoiceView {
    let options = ViewOptions {
        is_interactive,
        draws: false,
        json,
        waits_for: "Enter",
        keys: false,
    };
    let redactor = Redactor::new(["hunter22".to_owned()]);
    VoiceView::new(options, redactor, Spinner::new(""), None)
}

/// The output so far, without colors.
fn told(view: &VoiceView) -> Vec<String> {
    let texts = view
        .0
        .canvas
        .take_pending()
        .into_iter()
        .map(|said| match said {
            VoiceOutput::Line(text) => text,
            VoiceOutput::Result(text) | VoiceOutput::Record(text) => format!("stdout: {text}"),
            VoiceOutput::Info(text) => format!("info: {text}"),
        });
    texts
        .map(|text| anstream::adapter::strip_str(&text).to_string())
        .collect()
}

fn turn(outcome: TurnOutcome, error: Option<&str>) -> VoiceTurn {
    VoiceTurn {
        id: "0123".to_owned(),
        started_at: Timestamp::UNIX_EPOCH,
        source: "wav".to_owned(),
        room: None,
        wake_word: None,
        heard: "turn on switch one".to_owned(),
        answer: "Switch One\u{1b}[2K is on.".to_owned(),
        outcome,
        error: error.map(str::to_owned),
        model: "intents en".to_owned(),
        stages: TurnStages {
            speech_ended_ms: Some(1000.0),
            transcribed_ms: Some(1620.4),
            first_token_ms: Some(1632.0),
            first_audio_ms: Some(1700.0),
            ended_ms: Some(3000.0),
        },
        calls: vec!["a".to_owned()],
    }
}

fn heard(text: &str) -> VoiceEvent<'_> {
    VoiceEvent::Heard {
        source: "wav",
        text,
        took: None,
    }
}

fn tell_all(view: &VoiceView) {
    view.event(VoiceEvent::Phase {
        name: "transcription",
        took: Duration::from_millis(12),
        problem: None,
    });
    view.event(VoiceEvent::Phase {
        name: "wake word",
        took: Duration::from_secs(3),
        problem: Some("cannot reach\u{1b}it with hunter22"),
    });
    view.event(VoiceEvent::Ready {
        degraded: Some("no wake word"),
    });
    view.event(heard(" turn on\u{1b} switch one"));
    view.event(VoiceEvent::Dropped {
        source: "microphone",
        heard: "",
        why: "too quiet",
    });
    view.event(VoiceEvent::Dropped {
        source: "microphone",
        heard: "",
        why: &DropReason::QueueFull.to_string(),
    });
    let [call, none] = ["echo", "none"].map(|name| ToolCall::new(name, json!({})));
    for (call, arguments) in [(&call, "{\"a\":\"hunter22\"}"), (&none, "{}")] {
        let (id, name) = (call.id(), call.name());
        view.event(VoiceEvent::Calling {
            id,
            name,
            arguments,
        });
    }
    let error = ToolError::NotFound {
        name: "echo".to_owned(),
        known: Vec::new(),
        nearest: Vec::new(),
    };
    view.event(VoiceEvent::Called(&ToolOutcome::rejected(&call, error)));
    view.event(VoiceEvent::Words("Switch One"));
    view.event(VoiceEvent::Turn(&turn(TurnOutcome::Answered, None)));
    view.event(VoiceEvent::Lost {
        role: EngineRole::Wake,
        why: "gone",
    });
    view.event(VoiceEvent::Back(EngineRole::Wake));
}

#[tokio::test]
async fn a_terminal_shows_what_was_heard_called_and_answered() {
    let view = view(true, false);
    tell_all(&view);
    assert_eq!(
        told(&view),
        [
            "✓ transcription 12 ms",
            "✗ wake word 3.0 s\n    cannot reach\\u{1b}it with [REDACTED]",
            "Ready, with limits: no wake word",
            "› turn on\\u{1b} switch one",
            "· too quiet",
            "· the queue is full",
            "✗ echo {\"a\":\"[REDACTED]\"} 0 ms\n    Tool 'echo' not found",
            "stdout: Switch One is on.",
            "transcribed in 620 ms · first word after 11 ms · sound after 68 ms · 1 call\n",
            "✗ wake word is not available: gone",
            "✓ wake word is back",
        ]
    );
}

#[tokio::test]
async fn without_a_terminal_events_are_logged() {
    let view = view(false, false);
    tell_all(&view);
    assert_eq!(
        told(&view),
        [
            "info: heard: turn on\\u{1b} switch one",
            "info: not answered: too quiet",
            "stdout: Switch One is on.",
            "info: transcribed in 620 ms · first word after 11 ms · sound after 68 ms · 1 call",
        ]
    );
}

#[tokio::test]
async fn a_missing_engine_is_reported_once() {
    let view = view(true, false);
    let phase = |problem| VoiceEvent::Phase {
        name: "transcription",
        took: Duration::ZERO,
        problem,
    };
    view.event(VoiceEvent::Lost {
        role: EngineRole::Transcription,
        why: "refused",
    });
    view.event(phase(Some("nobody answers")));
    view.event(VoiceEvent::Ready {
        degraded: Some("I can't understand speech."),
    });
    assert_eq!(
        told(&view),
        [
            "✗ transcription is not available: refused",
            "Ready, with limits: I can't understand speech.\n'toolgate doctor' says how to get what is missing.",
        ]
    );
    view.event(VoiceEvent::Back(EngineRole::Transcription));
    view.event(phase(Some("nobody answers")));
    assert_eq!(
        told(&view),
        [
            "✓ transcription is back",
            "✗ transcription 0 ms\n    nobody answers"
        ]
    );
}

#[tokio::test]
async fn servers_lost_and_recovered_after_the_start_are_reported() {
    let view = view(true, false);
    let missing = Some("the smart home");
    view.event(VoiceEvent::Tools { missing });
    view.event(VoiceEvent::Ready { degraded: None });
    view.event(VoiceEvent::Tools { missing });
    view.event(VoiceEvent::Tools { missing: None });
    assert_eq!(
        told(&view),
        [
            "Ready.",
            "✗ the smart home can't be reached",
            "✓ all MCP servers are back"
        ]
    );
}

#[tokio::test]
async fn a_failed_turn_is_reported() {
    for (outcome, error, expected) in [
        (TurnOutcome::Interrupted, None, "interrupted · "),
        (
            TurnOutcome::Failed,
            Some("the model\u{1b} is gone"),
            "✗ the model\\u{1b} is gone\nfailed · ",
        ),
    ] {
        let view = view(true, false);
        view.event(VoiceEvent::Turn(&turn(outcome, error)));
        let told = told(&view);
        assert!(told[1].starts_with(expected), "{told:?}");
        let failure = error.map(toolgate_core::text::escape);
        assert_eq!(view.failure(), failure.as_deref());
    }
}

#[tokio::test]
async fn json_output_has_one_object_per_turn() {
    let view = view(false, true);
    view.event(VoiceEvent::Turn(&turn(TurnOutcome::Answered, None)));
    let read = &records(&view)[0];
    assert_eq!(
        (
            &read["heard"],
            &read["outcome"],
            &read["stages"]["ended_ms"]
        ),
        (
            &json!("turn on switch one"),
            &json!("answered"),
            &json!(3000.0)
        )
    );
}

fn records(view: &VoiceView) -> Vec<serde_json::Value> {
    let told = told(view);
    let lines = told.iter().filter_map(|text| text.strip_prefix("stdout: "));
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn json_output_has_a_line_per_utterance_with_its_file() {
    let view = view(false, true);
    view.event(VoiceEvent::File(Path::new("one.wav")));
    view.event(VoiceEvent::Dropped {
        source: "wav",
        heard: " Never mind",
        why: "a request to stop",
    });
    view.event(VoiceEvent::File(Path::new("two.wav")));
    view.event(VoiceEvent::Turn(&turn(TurnOutcome::Answered, None)));
    let written = VoiceTurn {
        source: "handle".to_owned(),
        ..turn(TurnOutcome::Answered, None)
    };
    view.event(VoiceEvent::Turn(&written));
    let records = records(&view);
    assert_eq!(
        records[0],
        json!({ "source": "wav", "file": "one.wav", "heard": "Never mind", "outcome": "dropped", "reason": "a request to stop" })
    );
    assert_eq!(records[1]["file"], "two.wav");
    assert_eq!(records[1]["outcome"], "answered");
    assert_eq!((records.len(), records[2].get("file")), (3, None));
}

#[tokio::test]
async fn once_ends_after_one_turn() {
    let stop_after_one = CancellationToken::new();
    let options = ViewOptions {
        is_interactive: false,
        draws: false,
        json: false,
        waits_for: "Enter",
        keys: false,
    };
    let redactor = Redactor::default();
    let view = VoiceView::new(
        options,
        redactor,
        Spinner::new(""),
        Some(stop_after_one.clone()),
    );
    view.event(heard("hello"));
    assert!(!stop_after_one.is_cancelled());
    view.event(VoiceEvent::Turn(&turn(TurnOutcome::Answered, None)));
    assert!(stop_after_one.is_cancelled());
}

#[test]
fn a_costs_line_shows_only_known_times() {
    let none = TurnStages::default();
    let typed = TurnStages {
        transcribed_ms: Some(0.0),
        first_token_ms: Some(1500.0),
        ..none
    };
    let backwards = TurnStages {
        speech_ended_ms: Some(9.0),
        transcribed_ms: Some(1.0),
        ..none
    };
    let (good, bad) = (TurnOutcome::Answered, TurnOutcome::Failed);
    for (outcome, stages, calls, expected) in [
        (good, none, 0, "answered"),
        (good, none, 2, "2 calls"),
        (good, typed, 0, "first word after 1.5 s"),
        (good, backwards, 0, "transcribed in 0 ms"),
        (bad, none, 0, "failed"),
        (bad, none, 1, "failed · 1 call"),
    ] {
        assert_eq!(cost(outcome, &stages, calls), expected);
    }
}
