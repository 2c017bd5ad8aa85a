//! More requests than can be answered, and sound that is not a request.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::DropReason;
use crate::segment::Utterance;
use tokio::time::{Instant, sleep};
use toolgate_core::Annotations;
use toolgate_journal::TurnOutcome;

use super::support::{FakeTool, FakeTranscriber, FakeTranscript, ModelStep, TestPlan, utterance};

#[tokio::test(start_paused = true)]
async fn two_utterances_at_once_are_answered_in_order() {
    let texts = [
        FakeTranscript::After(Duration::from_secs(1), "First"),
        FakeTranscript::Is("Second"),
    ];
    let says = [ModelStep::Words("One."), ModelStep::Words("Two.")];
    let house = TestPlan::new(texts, says).build();
    house.ears.submit(utterance()).unwrap();
    house.ears.submit(utterance()).unwrap();
    let (one, two) = (house.watch.turn(0).await, house.watch.turn(1).await);
    assert_eq!((one.heard.as_str(), one.answer.as_str()), ("First", "One."));
    assert_eq!(
        (two.heard.as_str(), two.answer.as_str()),
        ("Second", "Two.")
    );
    assert_eq!(house.spoken(), "One. Two.");
    assert_eq!(house.model.has_said(), ["One."], "one conversation");
}

#[tokio::test(start_paused = true)]
async fn the_next_is_understood_while_one_is_answered() {
    let ear = FakeTranscriber::new([FakeTranscript::Is("Hello")]);
    let says = [ModelStep::Slowly(Duration::from_secs(10), &["Hi."])];
    let mut plan = TestPlan::new([], says);
    plan.ear = Arc::<FakeTranscriber>::clone(&ear);
    let house = plan.build();
    house.ears.submit(utterance()).unwrap();
    house.watch.seen("state thinking", 1).await;
    house.ears.submit(utterance()).unwrap();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(ear.begun.load(Ordering::Relaxed), 2);
    assert_eq!(house.watch.count("state transcribing"), 1, "it is thinking");
}

#[tokio::test(start_paused = true)]
async fn what_finds_no_place_in_the_queue_is_dropped_and_told() {
    let mut plan = TestPlan::new(
        [FakeTranscript::Is("Hello")],
        [ModelStep::Never, ModelStep::Words("Hi.")],
    );
    plan.settings.queue = 3;
    let house = plan.build();
    house.ears.submit(utterance()).unwrap();
    house.watch.seen("state thinking", 1).await;
    let before = Instant::now();
    let taken = (0..10)
        .filter(|_| house.ears.submit(utterance()).is_ok())
        .count();
    assert_eq!(before.elapsed(), Duration::ZERO, "it never waits");
    assert_eq!((taken, house.watch.dropped(DropReason::QueueFull)), (3, 7));
    assert_eq!(house.watch.count("dropped the queue is full"), 7);
    let error = house.ears.submit(utterance()).unwrap_err().to_string();
    assert_eq!(error, "the queue is full (3 requests); this one is dropped");
    // Answering a request frees its place.
    house.ears.interrupt();
    house
        .watch
        .seen("dropped cancelled before it was answered", 3)
        .await;
    assert_eq!(house.watch.turn(0).await.outcome, TurnOutcome::Interrupted);
    assert_eq!(house.turn().await.answer, "Hi.");
}

#[tokio::test(start_paused = true)]
async fn what_is_given_up_gives_its_place_back_while_a_tool_must_go_on() {
    let work = FakeTool::default();
    let tool = work.tool("unlock", Duration::from_secs(20), Annotations::default());
    let texts = ["Unlock", "Forgotten", "Hello"].map(FakeTranscript::Is);
    let says = [ModelStep::Call("", "unlock"), ModelStep::Words("Hi.")];
    let mut plan = TestPlan::new(texts, says).with([tool]);
    plan.settings.queue = 1;
    let house = plan.build();
    house.ears.submit(utterance()).unwrap();
    house.watch.seen("state calling unlock", 1).await;
    house.ears.submit(utterance()).unwrap();
    house.watch.seen("heard Forgotten", 1).await;
    // The filler is over by then.
    sleep(Duration::from_secs(10)).await;
    let before = *house.heard.lock();
    house.ears.interrupt();
    assert_eq!(house.watch.dropped(DropReason::GivenUp), 1, "at once");
    house.ears.submit(utterance()).unwrap();
    sleep(Duration::from_secs(1)).await;
    let tone = *house.heard.lock() - before;
    assert!(
        tone > Duration::from_millis(50),
        "whoever waits for the tool is told so"
    );
    assert_eq!((work.done(), house.watch.turns().len()), (0, 0));
    let turns = [house.watch.turn(0).await, house.watch.turn(1).await];
    assert_eq!(work.done(), 1);
    assert_eq!(turns[0].outcome, TurnOutcome::Interrupted);
    assert_eq!(
        (turns[1].heard.as_str(), turns[1].answer.as_str()),
        ("Hello", "Hi.")
    );
}

fn silence(seconds: usize) -> Utterance {
    Utterance {
        samples: vec![3; seconds * 16_000].into(),
        ..utterance()
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_request_is_dropped_and_counted() {
    let texts = [
        "",
        " . ",
        "[BLANK_AUDIO]",
        "(music)",
        "Thanks for watching!",
        "you",
        "Stop.",
        "Thank you.",
    ];
    let ear = FakeTranscriber::new(texts.map(FakeTranscript::Is));
    let mut plan = TestPlan::new([], [ModelStep::Words("You are welcome.")]);
    plan.ear = Arc::<FakeTranscriber>::clone(&ear);
    plan.settings.queue = 64;
    let house = plan.build();
    house.ears.submit(silence(2)).unwrap();
    let short = Utterance {
        samples: utterance().samples[..1600].into(),
        ..utterance()
    };
    house.ears.submit(short).unwrap();
    for _ in texts {
        house.ears.submit(utterance()).unwrap();
    }
    let turn = house.watch.turn(0).await;
    assert_eq!(turn.heard, "Thank you", "a second of a clear voice");
    assert_eq!(ear.begun.load(Ordering::Relaxed), texts.len());
    for (reason, count) in [
        (DropReason::TooQuiet, 1),
        (DropReason::TooShort, 1),
        (DropReason::NoWords, 2),
        (DropReason::Hallucination, 4),
        (DropReason::Cancel, 1),
        (DropReason::InternalError, 0),
    ] {
        assert_eq!(house.watch.dropped(reason), count, "{reason}");
    }
    assert_eq!(house.model.asked().len(), 1);
}
