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
    let gateway = TestPlan::new(texts, says).build();
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.transcriber.submit(utterance()).unwrap();
    let (one, two) = (
        gateway.recorder.turn(0).await,
        gateway.recorder.turn(1).await,
    );
    assert_eq!((one.heard.as_str(), one.answer.as_str()), ("First", "One."));
    assert_eq!(
        (two.heard.as_str(), two.answer.as_str()),
        ("Second", "Two.")
    );
    assert_eq!(gateway.spoken(), "One. Two.");
    assert_eq!(gateway.model.has_said(), ["One."], "one conversation");
}

#[tokio::test(start_paused = true)]
async fn next_request_is_transcribed_while_one_is_answered() {
    let speech_to_text = FakeTranscriber::new([FakeTranscript::Is("Hello")]);
    let says = [ModelStep::Slowly(Duration::from_secs(10), &["Hi."])];
    let mut plan = TestPlan::new([], says);
    plan.speech_to_text = Arc::<FakeTranscriber>::clone(&speech_to_text);
    let gateway = plan.build();
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.seen("state thinking", 1).await;
    gateway.transcriber.submit(utterance()).unwrap();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(speech_to_text.begun.load(Ordering::Relaxed), 2);
    assert_eq!(
        gateway.recorder.count("state transcribing"),
        1,
        "it is thinking"
    );
}

#[tokio::test(start_paused = true)]
async fn request_for_a_full_queue_is_dropped_and_reported() {
    let mut plan = TestPlan::new(
        [FakeTranscript::Is("Hello")],
        [ModelStep::Never, ModelStep::Words("Hi.")],
    );
    plan.settings.queue = 3;
    let gateway = plan.build();
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.seen("state thinking", 1).await;
    let before = Instant::now();
    let taken = (0..10)
        .filter(|_| gateway.transcriber.submit(utterance()).is_ok())
        .count();
    assert_eq!(before.elapsed(), Duration::ZERO, "it never waits");
    assert_eq!(
        (taken, gateway.recorder.dropped(DropReason::QueueFull)),
        (3, 7)
    );
    assert_eq!(gateway.recorder.count("dropped the queue is full"), 7);
    let error = gateway
        .transcriber
        .submit(utterance())
        .unwrap_err()
        .to_string();
    assert_eq!(error, "the queue is full (3 requests); this one is dropped");
    // Answering a request frees its place.
    gateway.transcriber.interrupt();
    gateway
        .recorder
        .seen("dropped cancelled before it was answered", 3)
        .await;
    assert_eq!(
        gateway.recorder.turn(0).await.outcome,
        TurnOutcome::Interrupted
    );
    assert_eq!(gateway.turn().await.answer, "Hi.");
}

#[tokio::test(start_paused = true)]
async fn given_up_request_frees_its_permit_while_a_tool_runs() {
    let work = FakeTool::default();
    let tool = work.tool("unlock", Duration::from_secs(20), Annotations::default());
    let texts = ["Unlock", "Forgotten", "Hello"].map(FakeTranscript::Is);
    let says = [ModelStep::Call("", "unlock"), ModelStep::Words("Hi.")];
    let mut plan = TestPlan::new(texts, says).with([tool]);
    plan.settings.queue = 1;
    let gateway = plan.build();
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.seen("state calling unlock", 1).await;
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.seen("heard Forgotten", 1).await;
    // The filler is over by then.
    sleep(Duration::from_secs(10)).await;
    let before = *gateway.heard.lock();
    gateway.transcriber.interrupt();
    assert_eq!(gateway.recorder.dropped(DropReason::GivenUp), 1, "at once");
    gateway.transcriber.submit(utterance()).unwrap();
    sleep(Duration::from_secs(1)).await;
    let tone = *gateway.heard.lock() - before;
    assert!(
        tone > Duration::from_millis(50),
        "whoever waits for the tool is told so"
    );
    assert_eq!((work.done(), gateway.recorder.turns().len()), (0, 0));
    let turns = [
        gateway.recorder.turn(0).await,
        gateway.recorder.turn(1).await,
    ];
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
async fn non_requests_are_dropped_and_counted() {
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
    let speech_to_text = FakeTranscriber::new(texts.map(FakeTranscript::Is));
    let mut plan = TestPlan::new([], [ModelStep::Words("You are welcome.")]);
    plan.speech_to_text = Arc::<FakeTranscriber>::clone(&speech_to_text);
    plan.settings.queue = 64;
    let gateway = plan.build();
    gateway.transcriber.submit(silence(2)).unwrap();
    let short = Utterance {
        samples: utterance().samples[..1600].into(),
        ..utterance()
    };
    gateway.transcriber.submit(short).unwrap();
    for _ in texts {
        gateway.transcriber.submit(utterance()).unwrap();
    }
    let turn = gateway.recorder.turn(0).await;
    assert_eq!(turn.heard, "Thank you", "a second of a clear voice");
    assert_eq!(speech_to_text.begun.load(Ordering::Relaxed), texts.len());
    for (reason, count) in [
        (DropReason::TooQuiet, 1),
        (DropReason::TooShort, 1),
        (DropReason::NoWords, 2),
        (DropReason::Hallucination, 4),
        (DropReason::Cancel, 1),
        (DropReason::InternalError, 0),
    ] {
        assert_eq!(gateway.recorder.dropped(reason), count, "{reason}");
    }
    assert_eq!(gateway.model.asked().len(), 1);
}
