//! Answers, and what is said when there is none.

use std::sync::Arc;
use std::time::Duration;

use crate::EngineError;
use serde_json::{Value, json};
use tokio::time::advance;
use toolgate_core::{Annotations, FunctionTool, Redactor, Tool, ToolDefinition, ToolError};
use toolgate_intents::{Pack, SentenceInterpreter};
use toolgate_journal::{Journal, JournalSettings, TurnOutcome};
use toolgate_models::{Message, ModelError, Provider, SentenceRouter};

use super::support::{FakeTool, FakeTranscript, ModelStep, TestPlan, away};

fn model_away() -> ModelError {
    ModelError::Unreachable {
        provider: Provider::Ollama,
        url: "http://10.0.0.8:11434".to_owned(),
        reason: "connection refused (os error 111)".to_owned(),
    }
}

/// Fails if technical details are spoken.
fn expect_friendly(spoken: &str) {
    for odd in ["10.0.0", "os error", "ollama", "://", "There is no answer:"] {
        assert!(!spoken.contains(odd), "{odd} in {spoken}");
    }
}

#[tokio::test(start_paused = true)]
async fn ai3_spoken_requests_use_the_injected_executor() {
    let work = FakeTool::default();
    let bell = work.tool("ring_bell", Duration::ZERO, Annotations::default());
    let says = [
        ModelStep::Call("", "ring_bell"),
        ModelStep::Words("It rang."),
    ];
    let gateway = TestPlan::new([FakeTranscript::Is(" Ring the bell.")], says)
        .with([bell])
        .build();
    let turn = gateway.turn().await;
    assert_eq!((work.begun(), work.done()), (1, 1));
    assert_eq!(
        (turn.heard.as_str(), turn.answer.as_str()),
        ("Ring the bell", "It rang.")
    );
    assert_eq!((turn.outcome, turn.calls.len()), (TurnOutcome::Answered, 1));
    assert_eq!(gateway.spoken(), "It rang.");
    assert_eq!(gateway.recorder.count("called ring_bell true"), 1);
}

#[tokio::test(start_paused = true)]
async fn ai3_no_tool_is_called_without_one_in_the_executor() {
    let says = [
        ModelStep::Call("", "ring_bell"),
        ModelStep::Words("There is no bell."),
    ];
    let gateway = TestPlan::new([FakeTranscript::Is("Ring the bell.")], says).build();
    let turn = gateway.turn().await;
    assert_eq!(gateway.recorder.count("called ring_bell false"), 1);
    assert_eq!(turn.answer, "There is no bell.");
    let Some(Message::Tool { results }) = gateway.model.asked()[1].last().cloned() else {
        panic!("no result");
    };
    assert!(
        results[0].is_error && results[0].text.contains("ring_bell"),
        "{results:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn every_stage_has_its_time_in_order() {
    let step = Duration::from_millis(250);
    let plan = TestPlan::new(
        [FakeTranscript::After(step, "Tell me something.")],
        [ModelStep::Slowly(step, &["Bees sleep. ", "Ants do not."])],
    );
    let turn = plan.build().turn().await;
    let stages = turn.stages;
    let times = [
        Some(0.0),
        stages.speech_ended_ms,
        stages.transcribed_ms,
        stages.first_token_ms,
        stages.first_audio_ms,
        stages.ended_ms,
    ];
    assert!(
        times.iter().all(Option::is_some) && times.is_sorted(),
        "{stages:?}"
    );
    assert_eq!(stages.speech_ended_ms, Some(1000.0));
    assert!(
        (1250.0..1260.0).contains(&stages.transcribed_ms.unwrap()),
        "{stages:?}"
    );
    assert!(
        (1500.0..1520.0).contains(&stages.first_token_ms.unwrap()),
        "{stages:?}"
    );
    assert!(
        stages.ended_ms.unwrap() >= 1500.0 + 5.0 * 200.0,
        "five words: {stages:?}"
    );
    assert_eq!(
        (turn.source.as_str(), turn.room.as_deref()),
        ("microphone", Some("Kitchen"))
    );
    assert_eq!(
        (turn.wake_word.as_deref(), turn.model.as_str()),
        (Some("hey_jarvis"), "ollama script")
    );
    assert!(turn.id.len() == 32 && turn.id.bytes().all(|digit| digit.is_ascii_hexdigit()));
}

#[tokio::test(start_paused = true)]
async fn states_are_reported_in_order() {
    let bell = FakeTool::default().tool("ring_bell", Duration::ZERO, Annotations::default());
    let says = [
        ModelStep::Call("", "ring_bell"),
        ModelStep::Words("It rang."),
    ];
    let gateway = TestPlan::new([FakeTranscript::Is("Ring")], says)
        .with([bell])
        .build();
    gateway.turn().await;
    let expected = [
        "state transcribing",
        "heard Ring",
        "state thinking",
        "state calling ring_bell",
        "calling ring_bell {}",
        "called ring_bell true",
        "state thinking",
        "state speaking",
        "words It rang.",
        "turn answered",
    ];
    assert_eq!(gateway.recorder.events(), expected);
}

#[tokio::test(start_paused = true)]
async fn conversation_continues_until_it_is_forgotten() {
    let gateway = TestPlan::new([FakeTranscript::Is("Hello")], [ModelStep::Words("Hi.")]).build();
    let forget = Duration::from_secs(120);
    for (pause, expected) in [
        (Duration::ZERO, 1),
        (Duration::ZERO, 3),
        (forget - Duration::from_secs(1), 5),
        (forget, 1),
        (Duration::ZERO, 3),
    ] {
        advance(pause).await;
        gateway.turn().await;
        let sent = gateway.model.asked().pop().unwrap();
        assert_eq!(sent.len(), expected, "after {pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn unreachable_model_is_apologized_for_and_used_once_it_is_back() {
    let says = [
        ModelStep::Fails("", model_away()),
        ModelStep::Fails("It is aw", model_away()),
        ModelStep::Words("Here I am."),
    ];
    let gateway = TestPlan::new([FakeTranscript::Is("Hello")], says).build();
    for _ in 0..2 {
        let turn = gateway.turn().await;
        assert_eq!(turn.outcome, TurnOutcome::Failed);
        assert!(
            turn.answer.contains("can't reach my language model"),
            "{}",
            turn.answer
        );
        assert!(
            turn.error.unwrap().contains("os error 111"),
            "an operator is told more"
        );
    }
    expect_friendly(&gateway.spoken());
    assert!(
        !gateway.spoken().contains("It is aw"),
        "what broke off is taken back"
    );
    let turn = gateway.turn().await;
    assert_eq!(
        (turn.outcome, turn.answer.as_str()),
        (TurnOutcome::Answered, "Here I am.")
    );
}

#[tokio::test(start_paused = true)]
async fn model_failure_after_a_tool_call_is_apologized_for() {
    let bell = FakeTool::default().tool("ring_bell", Duration::ZERO, Annotations::default());
    let says = [
        ModelStep::Call("", "ring_bell"),
        ModelStep::Fails("", model_away()),
        ModelStep::Words("Yes?"),
    ];
    let gateway = TestPlan::new([FakeTranscript::Is("Ring")], says)
        .with([bell])
        .build();
    let turn = gateway.turn().await;
    assert_eq!((turn.outcome, turn.calls.len()), (TurnOutcome::Failed, 1));
    assert!(turn.answer.contains("Please check"), "{}", turn.answer);
    expect_friendly(&gateway.spoken());
    expect_friendly(
        &gateway
            .recorder
            .events()
            .join("\n")
            .replace("ollama script", ""),
    );
    assert_eq!(gateway.turn().await.answer, "Yes?");
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_is_too_long_starts_over() {
    let error = ModelError::TooLong {
        model: "script".to_owned(),
        reason: "it takes 9000 tokens".to_owned(),
    };
    // The model is tried again with a shorter history.
    let fails = ModelStep::Fails("", error);
    let says = [
        ModelStep::Words("Hi."),
        fails.clone(),
        fails,
        ModelStep::Words("Hi."),
    ];
    let gateway = TestPlan::new([FakeTranscript::Is("Hello")], says).build();
    gateway.turn().await;
    let turn = gateway.turn().await;
    assert!(turn.answer.contains("start over"), "{}", turn.answer);
    gateway.turn().await;
    assert_eq!(gateway.model.asked().pop().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn panic_ends_only_its_turn() {
    let says = [ModelStep::Panics, ModelStep::Words("Still here.")];
    let gateway = TestPlan::new([FakeTranscript::Is("Hello")], says).build();
    let turn = gateway.turn().await;
    assert_eq!(turn.outcome, TurnOutcome::Failed);
    assert!(
        gateway.spoken().contains("something went wrong"),
        "{}",
        gateway.spoken()
    );
    assert_eq!(gateway.turn().await.answer, "Still here.");
}

#[tokio::test(start_paused = true)]
async fn lost_transcription_is_reported_and_spoken_once() {
    let mut texts = vec![FakeTranscript::Is("Hello")];
    texts.extend(vec![FakeTranscript::Fails(away()); 3]);
    texts.extend([
        FakeTranscript::Is("Hello"),
        FakeTranscript::Fails(away()),
        FakeTranscript::Is("Hello"),
    ]);
    let gateway = TestPlan::new(texts, [ModelStep::Words("Hi.")]).build();
    for outcome in [true, false, false, false, true, false, true] {
        let turn = gateway.turn().await;
        assert_eq!(turn.outcome == TurnOutcome::Answered, outcome, "{turn:?}");
        assert_eq!(turn.stages.transcribed_ms.is_some(), outcome);
    }
    let (lost, back) = ("lost transcription", "back transcription");
    assert_eq!(
        (gateway.recorder.count(lost), gateway.recorder.count(back)),
        (2, 2)
    );
    expect_friendly(&gateway.spoken());
    assert_eq!(
        gateway.spoken().matches("can't understand speech").count(),
        2
    );
}

#[tokio::test(start_paused = true)]
async fn hanging_transcription_times_out() {
    let texts = [FakeTranscript::Never, FakeTranscript::Is("Hello")];
    let gateway = TestPlan::new(texts, [ModelStep::Words("Hi.")]).build();
    let turn = gateway.turn().await;
    assert_eq!(turn.outcome, TurnOutcome::Failed);
    assert!(turn.answer.contains("too long"), "{}", turn.answer);
    assert_eq!(gateway.turn().await.answer, "Hi.");
}

#[tokio::test(start_paused = true)]
async fn lost_speech_engine_is_reported_once_and_the_answer_recorded() {
    let gateway = TestPlan::new([FakeTranscript::Is("Hello")], [ModelStep::Words("Hi.")]).build();
    let error = EngineError::Closed {
        at: "tcp://10.0.0.9:10200".to_owned(),
    };
    for (fails, outcome) in [
        (Some(error.clone()), TurnOutcome::Failed),
        (Some(error), TurnOutcome::Failed),
        (None, TurnOutcome::Answered),
    ] {
        *gateway.synthesizer.fails.lock() = fails;
        let turn = gateway.turn().await;
        assert_eq!((turn.outcome, turn.answer.as_str()), (outcome, "Hi."));
    }
    assert_eq!(
        (
            gateway.recorder.count("lost speech"),
            gateway.recorder.count("back speech")
        ),
        (1, 1)
    );
    assert_ne!(gateway.model.has_said()[0], "Hi.", "nobody heard it");
}

#[tokio::test(start_paused = true)]
async fn words_that_were_taken_back_are_neither_spoken_nor_shown() {
    let says = [ModelStep::Corrects("It is no", "It is noon.")];
    let gateway = TestPlan::new([FakeTranscript::Is("What time is it?")], says).build();
    assert_eq!(gateway.turn().await.answer, "It is noon.");
    assert_eq!(gateway.spoken(), "It is noon.");
    let events = gateway.recorder.events();
    let told = events
        .iter()
        .filter(|event| event.starts_with("words") || *event == "TakenBack");
    let expected = ["words It is no", "TakenBack", "words It is noon."];
    assert!(told.eq(&expected), "{events:#?}");
}

fn switches() -> Vec<Arc<dyn Tool>> {
    let tool = |name: &str, parameters: Value, annotations, answer: Value| {
        let definition = ToolDefinition::builder(name, "…", parameters).annotations(annotations);
        let run = move |_: Value, _| {
            let answer = answer.clone();
            async move { Ok::<_, ToolError>(answer) }
        };
        Arc::new(FunctionTool::with_definition(definition, run).unwrap()) as Arc<dyn Tool>
    };
    let devices = json!({ "devices": [
        { "name": "Switch One", "location": "Demo", "state": "off" },
        { "name": "Lamp 21", "location": "Hall", "state": "off" },
    ] });
    let mut changing = Annotations::default();
    changing.read_only = Some(false);
    changing.destructive = Some(false);
    let control = json!({ "type": "object", "required": ["deviceName", "action"], "properties": {
        "deviceName": { "type": "string" }, "action": { "enum": ["on", "off", "dim"] }, "level": { "type": "number" } } });
    let done = json!({ "message": "It is on." });
    vec![
        tool(
            "list_zwave_devices",
            json!({ "type": "object" }),
            Annotations::READ_ONLY,
            devices,
        ),
        tool("control_zwave_device", control, changing, done),
    ]
}

#[tokio::test(start_paused = true)]
async fn names_are_understood_as_engines_spell_them() {
    let mut plan = TestPlan::new(
        [
            FakeTranscript::Is(" Turn on switch one."),
            FakeTranscript::Is("TURN ON SWITCH 1"),
            FakeTranscript::Is("Turn on Switch #1."),
            FakeTranscript::Is("turn on lamp twenty one"),
            FakeTranscript::Is("Tell me a joke."),
        ],
        [ModelStep::Words("No.")],
    )
    .with(switches());
    plan.client = |toolbox, script| {
        let sentences = SentenceInterpreter::new(toolbox.clone(), Pack::english()).unwrap();
        SentenceRouter::from(script).sentences_first(Arc::new(sentences))
    };
    let gateway = plan.build();
    for (device, model) in [
        ("Switch One", "intents"),
        ("Switch One", "intents"),
        ("Switch One", "intents"),
        ("Lamp 21", "intents"),
        ("", "ollama script"),
    ] {
        let before = gateway.recorder.events().len();
        let turn = gateway.turn().await;
        assert_eq!(
            (turn.outcome, turn.model.as_str()),
            (TurnOutcome::Answered, model)
        );
        let events = gateway.recorder.events().split_off(before).join("\n");
        let call =
            format!(r#"calling control_zwave_device {{"deviceName":"{device}","action":"on"}}"#);
        assert_eq!(events.contains(&call), !device.is_empty(), "{events}");
    }
}

#[tokio::test]
async fn turns_are_kept_in_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("journal.db");
    let settings = JournalSettings::default();
    let journal = Journal::open(&file, &settings, Redactor::default(), "test").unwrap();
    let mut plan = TestPlan::new([FakeTranscript::Is("Hello")], [ModelStep::Words("Hi.")]);
    plan.at_once = true;
    plan.journal = Some(journal.clone());
    let turn = plan.build().turn().await;
    journal.flush().await;
    let kept = journal.reader().turn(&turn.id).unwrap().unwrap();
    assert_eq!(
        (kept.heard, kept.answer, kept.stages),
        (turn.heard, turn.answer, turn.stages)
    );
    journal.close().await;
}
