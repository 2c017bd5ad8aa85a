//! Written requests.

use std::sync::Arc;
use std::time::Duration;

use crate::services::{HandleRequest, RequestHandler};
use crate::speak::AnswerScript;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use toolgate_core::{Annotations, FunctionTool, Tool, ToolDefinition, ToolError};
use toolgate_journal::TurnOutcome;
use toolgate_models::{ModelError, Provider};

use super::support::{FakeTool, FakeTranscript, ModelStep, TestPlan, utterance};

fn question(text: &str, conversation: &str) -> HandleRequest {
    HandleRequest {
        text: text.to_owned(),
        satellite_id: Some("Hall".to_owned()),
        conversation_id: Some(conversation.to_owned()),
        ..HandleRequest::default()
    }
}

#[tokio::test(start_paused = true)]
async fn ai3_written_requests_use_the_injected_executor() {
    let work = FakeTool::default();
    let bell = work.tool("ring_bell", Duration::from_secs(5), Annotations::default());
    let says = [
        ModelStep::Call("", "ring_bell"),
        ModelStep::Words("It **rang**."),
    ];
    let gateway = TestPlan::new([FakeTranscript::Never], says)
        .with([bell])
        .build();
    let answer = gateway
        .transcriber
        .ask(question(" Ring the bell. ", "a"))
        .await;
    assert_eq!((answer.text.as_str(), answer.ok), ("It **rang**.", true));
    assert_eq!(
        (work.done(), gateway.spoken().as_str()),
        (1, ""),
        "nothing is spoken here"
    );
    let turn = gateway.recorder.turn(0).await;
    assert_eq!(
        (turn.source.as_str(), turn.room.as_deref()),
        ("handle", Some("Hall"))
    );
    assert_eq!((turn.outcome, turn.calls.len()), (TurnOutcome::Answered, 1));
    assert_eq!(
        gateway.recorder.count("state thinking"),
        0,
        "these are the states of the voice"
    );
}

#[tokio::test(start_paused = true)]
async fn wyoming_requests_belong_to_their_satellite() {
    let gateway = TestPlan::new([FakeTranscript::Never], [ModelStep::Words("Hi.")]).build();
    let asked = |satellite: &str, conversation: Option<&str>| HandleRequest {
        text: "Hello".to_owned(),
        satellite_id: Some(satellite.to_owned()),
        conversation_id: conversation.map(str::to_owned),
        ..HandleRequest::default()
    };
    let nobody = |connection: u64| HandleRequest {
        text: "Hello".to_owned(),
        connection,
        ..HandleRequest::default()
    };
    for (asked, expected) in [
        (nobody(7), 1),
        (nobody(8), 1),
        (nobody(7), 3),
        (asked("kitchen", None), 1),
        (asked("hall", None), 1),
        (asked("kitchen", None), 3),
        (asked("hall", Some("1")), 1),
        (asked("kitchen", Some("1")), 3),
    ] {
        let answered = gateway
            .transcriber
            .respond(asked.clone(), Arc::default())
            .await;
        assert_eq!((answered.text.as_str(), answered.ok), ("Hi.", true));
        assert_eq!(
            gateway.model.asked().pop().unwrap().len(),
            expected,
            "{asked:?}"
        );
    }
    assert_eq!(gateway.recorder.turn(4).await.room.as_deref(), Some("hall"));
}

#[tokio::test(start_paused = true)]
async fn words_are_streamed_to_the_reader() {
    let pieces = &["It is", " noon. ", "Or so.", " Yes."];
    let says = [ModelStep::Slowly(Duration::from_secs(5), pieces)];
    let gateway = TestPlan::new([FakeTranscript::Never], says).build();
    let script = Arc::new(AnswerScript::default());
    let asking = gateway
        .transcriber
        .answer_written(question("When?", "a"), Arc::clone(&script));
    let begun = Instant::now();
    let (answer, first) = tokio::join!(asking, async {
        while script.is_said() {
            sleep(Duration::from_millis(100)).await;
        }
        begun.elapsed()
    });
    assert_eq!(answer.text, pieces.concat());
    assert!((10..20).contains(&first.as_secs()), "{first:?}");
    assert_eq!(
        gateway.recorder.count("words It is"),
        0,
        "nobody else reads them"
    );
}

#[tokio::test(start_paused = true)]
async fn conversations_are_kept_apart() {
    let gateway = TestPlan::new([FakeTranscript::Is("Hello")], [ModelStep::Words("Hi.")]).build();
    for (conversation, expected) in [("a", 1), ("b", 1), ("a", 3), ("b", 3), ("a", 5)] {
        gateway
            .transcriber
            .ask(question("Hello", conversation))
            .await;
        let sent = gateway.model.asked().pop().unwrap().len();
        assert_eq!(sent, expected, "{conversation}");
    }
    gateway.turn().await;
    assert_eq!(
        gateway.model.asked().pop().unwrap().len(),
        1,
        "the voice is another"
    );
    // The limit of conversations. The oldest is forgotten first.
    for other in 0..40 {
        gateway
            .transcriber
            .ask(question("Hello", &other.to_string()))
            .await;
    }
    gateway.transcriber.ask(question("Hello", "a")).await;
    assert_eq!(gateway.model.asked().pop().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn written_requests_run_concurrently_up_to_a_limit() {
    let says = [ModelStep::Slowly(Duration::from_secs(1), &["Hi."])];
    let gateway = TestPlan::new([FakeTranscript::Never], says).build();
    let before = Instant::now();
    let asks = (0..20).map(|index| {
        gateway
            .transcriber
            .ask(question("Hello", &index.to_string()))
    });
    let answers = join_all(asks).await;
    assert!(
        before.elapsed() < Duration::from_millis(1100),
        "{:?}",
        before.elapsed()
    );
    let answered = answers.iter().filter(|answer| answer.text == "Hi.").count();
    let busy = answers
        .iter()
        .filter(|answer| !answer.ok && answer.text.contains("busy"));
    assert_eq!((answered, busy.count()), (16, 4));
}

#[tokio::test(start_paused = true)]
async fn interrupting_the_voice_does_not_affect_written_requests() {
    let says = [ModelStep::Slowly(Duration::from_secs(5), &["Hi."])];
    let gateway = TestPlan::new([FakeTranscript::Never], says).build();
    let transcriber = Arc::clone(&gateway.transcriber);
    let ask = tokio::spawn(async move { transcriber.ask(question("Hello", "a")).await });
    sleep(Duration::from_secs(1)).await;
    gateway.transcriber.interrupt();
    assert_eq!(ask.await.unwrap().text, "Hi.");
}

#[tokio::test(start_paused = true)]
async fn disconnect_stops_the_answer_but_not_an_uninterruptible_tool() {
    for (annotations, done) in [(Annotations::default(), 1), (Annotations::READ_ONLY, 0)] {
        let work = FakeTool::default();
        let tool = work.tool("unlock", Duration::from_secs(5), annotations);
        let says = [ModelStep::Call("", "unlock"), ModelStep::Words("Done.")];
        let gateway = TestPlan::new([FakeTranscript::Never], says)
            .with([tool])
            .build();
        let ask = gateway.transcriber.ask(question("Unlock", "a"));
        assert!(timeout(Duration::from_secs(1), ask).await.is_err());
        let turn = gateway.recorder.turn(0).await;
        assert_eq!(
            (turn.outcome, work.done()),
            (TurnOutcome::Interrupted, done)
        );
        assert_eq!(gateway.model.asked().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_fails_a_request_but_waits_for_its_tool() {
    for (takes, done) in [(5, 1), (20, 0)] {
        let work = FakeTool::default();
        let tool = work.tool("unlock", Duration::from_secs(takes), Annotations::default());
        let says = [ModelStep::Call("", "unlock"), ModelStep::Words("Done.")];
        let gateway = TestPlan::new([FakeTranscript::Never], says)
            .with([tool])
            .build();
        let transcriber = Arc::clone(&gateway.transcriber);
        let ask = tokio::spawn(async move { transcriber.ask(question("Unlock", "a")).await });
        gateway.recorder.seen("calling unlock {}", 1).await;
        sleep(Duration::from_millis(10)).await;
        let before = Instant::now();
        gateway.transcriber.close().await;
        assert_eq!(work.done(), done, "a tool of {takes} s");
        assert!(before.elapsed() < Duration::from_secs(11));
        let answer = ask.await.unwrap();
        let sorry = "Sorry, I'm shutting down and couldn't answer that.";
        assert_eq!((answer.text.as_str(), answer.ok), (sorry, false));
    }
    let gateway = TestPlan::new([FakeTranscript::Never], [ModelStep::Never]).build();
    gateway.transcriber.close().await;
    assert!(!gateway.transcriber.ask(question("Hello", "a")).await.ok);
}

#[tokio::test(start_paused = true)]
async fn every_failure_has_a_friendly_apology() {
    let error = ModelError::Unreachable {
        provider: Provider::Ollama,
        url: "http://10.0.0.8:11434".to_owned(),
        reason: "refused".to_owned(),
    };
    let says = [
        ModelStep::Fails("", error),
        ModelStep::Panics,
        ModelStep::Words("Hi."),
    ];
    let gateway = TestPlan::new([FakeTranscript::Never], says).build();
    for _ in 0..2 {
        let answer = gateway.transcriber.ask(question("Hello", "a")).await;
        assert!(!answer.ok && !answer.text.contains("10.0"), "{answer:?}");
    }
    assert!(gateway.transcriber.ask(question("Hello", "a")).await.ok);
    for nothing in ["", " ... ", "Never mind."] {
        assert_eq!(
            gateway.transcriber.ask(question(nothing, "a")).await.text,
            "Okay."
        );
    }
    assert_eq!(gateway.model.asked().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn failed_request_is_answered_as_not_handled() {
    let plan = TestPlan::new([FakeTranscript::Never], [ModelStep::Never]);
    let work = FakeTool::default();
    let clock = work.tool("datetime", Duration::from_secs(90), Annotations::READ_ONLY);
    let gateway = plan.by_sentences([clock]);
    for (text, expected, ok) in [
        ("sing me a song about fjords", "I did not understand", false),
        ("what time is it", "", false),
        ("help", "You can say", true),
    ] {
        let answer = gateway.transcriber.ask(question(text, "a")).await;
        assert!(answer.text.starts_with(expected), "{answer:?}");
        assert_eq!(answer.ok, ok, "{answer:?}");
        assert!(!answer.text.is_empty());
    }
    let turn = gateway.recorder.turn(0).await;
    assert_eq!(turn.outcome, TurnOutcome::Answered, "it was told");
}

#[tokio::test(start_paused = true)]
async fn written_request_does_not_wait_for_the_voice() {
    let says = [ModelStep::Words(
        "One two three four five six seven eight nine ten.",
    )];
    let gateway = TestPlan::new([FakeTranscript::Is("Count")], says).build();
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.seen("state speaking", 1).await;
    assert!(gateway.transcriber.ask(question("Count", "a")).await.ok);
    assert_eq!(
        gateway.recorder.turns().len(),
        1,
        "the voice is still at it"
    );
}

/// A lock, and a list that names it.
fn door(work: &FakeTool) -> [Arc<dyn Tool>; 2] {
    let parameters = || json!({ "type": "object" });
    let list = ToolDefinition::builder("list_zwave_devices", "Lists", parameters());
    let list = list.annotations(Annotations::READ_ONLY);
    let devices =
        json!({ "devices": [{ "name": "Front Door", "location": "Hall", "type": "lock" }] });
    let list = FunctionTool::with_definition(list, move |_: Value, _| {
        let devices = devices.clone();
        async move { Ok::<_, ToolError>(devices) }
    });
    let lock = work.tool("control_lock", Duration::ZERO, Annotations::default());
    [Arc::new(list.unwrap()), lock]
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_question_ignores_a_later_yes() {
    for (between, opened) in [(None, 1), (Some("Never mind"), 0)] {
        let texts = [Some("Unlock the front"), between, Some("Yes")].into_iter();
        let texts: Vec<&'static str> = texts.flatten().collect();
        let (aloud, written) = (FakeTool::default(), FakeTool::default());
        let heard = texts.iter().map(|text| FakeTranscript::Is(text));
        let gateway = TestPlan::new(heard, [ModelStep::Never]).by_sentences(door(&aloud));
        for text in &texts {
            match *text {
                "Never mind" => {
                    gateway.transcriber.submit(utterance()).unwrap();
                    gateway.recorder.seen("dropped a request to stop", 1).await;
                }
                _ => drop(gateway.turn().await),
            }
        }
        let gateway =
            TestPlan::new([FakeTranscript::Never], [ModelStep::Never]).by_sentences(door(&written));
        for text in &texts {
            gateway.transcriber.ask(question(text, "a")).await;
        }
        assert_eq!(
            (aloud.done(), written.done()),
            (opened, opened),
            "{texts:?}"
        );
    }
}
