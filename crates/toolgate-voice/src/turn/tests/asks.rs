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
async fn ai3_a_question_in_words_is_answered_through_the_same_executor() {
    let work = FakeTool::default();
    let bell = work.tool("ring_bell", Duration::from_secs(5), Annotations::default());
    let says = [
        ModelStep::Call("", "ring_bell"),
        ModelStep::Words("It **rang**."),
    ];
    let house = TestPlan::new([FakeTranscript::Never], says)
        .with([bell])
        .build();
    let answer = house.ears.ask(question(" Ring the bell. ", "a")).await;
    assert_eq!((answer.text.as_str(), answer.ok), ("It **rang**.", true));
    assert_eq!(
        (work.done(), house.spoken().as_str()),
        (1, ""),
        "nothing is spoken here"
    );
    let turn = house.watch.turn(0).await;
    assert_eq!(
        (turn.source.as_str(), turn.room.as_deref()),
        ("handle", Some("Hall"))
    );
    assert_eq!((turn.outcome, turn.calls.len()), (TurnOutcome::Answered, 1));
    assert_eq!(
        house.watch.count("state thinking"),
        0,
        "these are the states of the voice"
    );
}

#[tokio::test(start_paused = true)]
async fn what_comes_over_wyoming_belongs_to_its_satellite() {
    let house = TestPlan::new([FakeTranscript::Never], [ModelStep::Words("Hi.")]).build();
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
        let answered = house.ears.respond(asked.clone(), Arc::default()).await;
        assert_eq!((answered.text.as_str(), answered.ok), ("Hi.", true));
        assert_eq!(
            house.model.asked().pop().unwrap().len(),
            expected,
            "{asked:?}"
        );
    }
    assert_eq!(house.watch.turn(4).await.room.as_deref(), Some("hall"));
}

#[tokio::test(start_paused = true)]
async fn whoever_reads_sees_the_words_as_they_come() {
    let pieces = &["It is", " noon. ", "Or so.", " Yes."];
    let says = [ModelStep::Slowly(Duration::from_secs(5), pieces)];
    let house = TestPlan::new([FakeTranscript::Never], says).build();
    let script = Arc::new(AnswerScript::default());
    let asking = house
        .ears
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
        house.watch.count("words It is"),
        0,
        "nobody else reads them"
    );
}

#[tokio::test(start_paused = true)]
async fn conversations_are_kept_apart() {
    let house = TestPlan::new([FakeTranscript::Is("Hello")], [ModelStep::Words("Hi.")]).build();
    for (conversation, expected) in [("a", 1), ("b", 1), ("a", 3), ("b", 3), ("a", 5)] {
        house.ears.ask(question("Hello", conversation)).await;
        let sent = house.model.asked().pop().unwrap().len();
        assert_eq!(sent, expected, "{conversation}");
    }
    house.turn().await;
    assert_eq!(
        house.model.asked().pop().unwrap().len(),
        1,
        "the voice is another"
    );
    // The limit of conversations. The oldest is forgotten first.
    for other in 0..40 {
        house.ears.ask(question("Hello", &other.to_string())).await;
    }
    house.ears.ask(question("Hello", "a")).await;
    assert_eq!(house.model.asked().pop().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn several_are_answered_side_by_side_and_too_many_are_told_so() {
    let says = [ModelStep::Slowly(Duration::from_secs(1), &["Hi."])];
    let house = TestPlan::new([FakeTranscript::Never], says).build();
    let before = Instant::now();
    let asks = (0..20).map(|index| house.ears.ask(question("Hello", &index.to_string())));
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
async fn an_interruption_of_the_voice_does_not_touch_them() {
    let says = [ModelStep::Slowly(Duration::from_secs(5), &["Hi."])];
    let house = TestPlan::new([FakeTranscript::Never], says).build();
    let ears = Arc::clone(&house.ears);
    let ask = tokio::spawn(async move { ears.ask(question("Hello", "a")).await });
    sleep(Duration::from_secs(1)).await;
    house.ears.interrupt();
    assert_eq!(ask.await.unwrap().text, "Hi.");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_stops_its_answer_but_not_an_uninterruptible_tool() {
    for (annotations, done) in [(Annotations::default(), 1), (Annotations::READ_ONLY, 0)] {
        let work = FakeTool::default();
        let tool = work.tool("unlock", Duration::from_secs(5), annotations);
        let says = [ModelStep::Call("", "unlock"), ModelStep::Words("Done.")];
        let house = TestPlan::new([FakeTranscript::Never], says)
            .with([tool])
            .build();
        let ask = house.ears.ask(question("Unlock", "a"));
        assert!(timeout(Duration::from_secs(1), ask).await.is_err());
        let turn = house.watch.turn(0).await;
        assert_eq!(
            (turn.outcome, work.done()),
            (TurnOutcome::Interrupted, done)
        );
        assert_eq!(house.model.asked().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_fails_a_request_but_waits_for_its_tool() {
    for (takes, done) in [(5, 1), (20, 0)] {
        let work = FakeTool::default();
        let tool = work.tool("unlock", Duration::from_secs(takes), Annotations::default());
        let says = [ModelStep::Call("", "unlock"), ModelStep::Words("Done.")];
        let house = TestPlan::new([FakeTranscript::Never], says)
            .with([tool])
            .build();
        let ears = Arc::clone(&house.ears);
        let ask = tokio::spawn(async move { ears.ask(question("Unlock", "a")).await });
        house.watch.seen("calling unlock {}", 1).await;
        sleep(Duration::from_millis(10)).await;
        let before = Instant::now();
        house.ears.close().await;
        assert_eq!(work.done(), done, "a tool of {takes} s");
        assert!(before.elapsed() < Duration::from_secs(11));
        let answer = ask.await.unwrap();
        let sorry = "Sorry, I'm shutting down and couldn't answer that.";
        assert_eq!((answer.text.as_str(), answer.ok), (sorry, false));
    }
    let house = TestPlan::new([FakeTranscript::Never], [ModelStep::Never]).build();
    house.ears.close().await;
    assert!(!house.ears.ask(question("Hello", "a")).await.ok);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_a_friendly_sentence() {
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
    let house = TestPlan::new([FakeTranscript::Never], says).build();
    for _ in 0..2 {
        let answer = house.ears.ask(question("Hello", "a")).await;
        assert!(!answer.ok && !answer.text.contains("10.0"), "{answer:?}");
    }
    assert!(house.ears.ask(question("Hello", "a")).await.ok);
    for nothing in ["", " ... ", "Never mind."] {
        assert_eq!(house.ears.ask(question(nothing, "a")).await.text, "Okay.");
    }
    assert_eq!(house.model.asked().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_understood_or_fails_is_answered_but_not_done() {
    let plan = TestPlan::new([FakeTranscript::Never], [ModelStep::Never]);
    let work = FakeTool::default();
    let clock = work.tool("datetime", Duration::from_secs(90), Annotations::READ_ONLY);
    let house = plan.by_sentences([clock]);
    for (text, expected, ok) in [
        ("sing me a song about fjords", "I did not understand", false),
        ("what time is it", "", false),
        ("help", "You can say", true),
    ] {
        let answer = house.ears.ask(question(text, "a")).await;
        assert!(answer.text.starts_with(expected), "{answer:?}");
        assert_eq!(answer.ok, ok, "{answer:?}");
        assert!(!answer.text.is_empty());
    }
    let turn = house.watch.turn(0).await;
    assert_eq!(turn.outcome, TurnOutcome::Answered, "it was told");
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_while_the_voice_speaks_does_not_wait_for_it() {
    let says = [ModelStep::Words(
        "One two three four five six seven eight nine ten.",
    )];
    let house = TestPlan::new([FakeTranscript::Is("Count")], says).build();
    house.ears.submit(utterance()).unwrap();
    house.watch.seen("state speaking", 1).await;
    assert!(house.ears.ask(question("Count", "a")).await.ok);
    assert_eq!(house.watch.turns().len(), 1, "the voice is still at it");
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
        let house = TestPlan::new(heard, [ModelStep::Never]).by_sentences(door(&aloud));
        for text in &texts {
            match *text {
                "Never mind" => {
                    house.ears.submit(utterance()).unwrap();
                    house.watch.seen("dropped a request to stop", 1).await;
                }
                _ => drop(house.turn().await),
            }
        }
        let house =
            TestPlan::new([FakeTranscript::Never], [ModelStep::Never]).by_sentences(door(&written));
        for text in &texts {
            house.ears.ask(question(text, "a")).await;
        }
        assert_eq!(
            (aloud.done(), written.done()),
            (opened, opened),
            "{texts:?}"
        );
    }
}
