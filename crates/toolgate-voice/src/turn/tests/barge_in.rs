//! Interruptions of an answer.

use std::time::Duration;

use crate::DropReason;
use crate::speak::SignalTone;
use tokio::time::{Instant, sleep};
use toolgate_core::Annotations;
use toolgate_journal::TurnOutcome;

use super::support::{FakeTool, FakeTranscript, ModelStep, TestGateway, TestPlan, utterance};

/// Waits for silence, no longer than promised.
async fn expect_silence(gateway: &TestGateway) {
    sleep(Duration::from_millis(150)).await;
    let heard = *gateway.heard.lock();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(*gateway.heard.lock(), heard, "it still sounds");
}

#[tokio::test(start_paused = true)]
async fn interruption_cancels_transcription() {
    let gateway = TestPlan::new(
        [FakeTranscript::Never, FakeTranscript::Is("Hello")],
        [ModelStep::Words("Hi.")],
    )
    .build();
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.seen("state transcribing", 1).await;
    gateway.transcriber.interrupt();
    gateway
        .recorder
        .seen("dropped cancelled before it was answered", 1)
        .await;
    assert_eq!(gateway.recorder.dropped(DropReason::GivenUp), 1);
    assert_eq!(gateway.turn().await.answer, "Hi.");
    assert_eq!(gateway.recorder.turns().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn interruption_cancels_the_model_stream() {
    let gateway = TestPlan::new(
        [FakeTranscript::Is("Hello")],
        [ModelStep::Never, ModelStep::Words("Hi.")],
    )
    .build();
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.seen("state thinking", 1).await;
    let before = Instant::now();
    gateway.transcriber.interrupt();
    let turn = gateway.recorder.turn(0).await;
    assert!(
        before.elapsed() < Duration::from_millis(150),
        "{:?}",
        before.elapsed()
    );
    assert_eq!(
        (turn.outcome, turn.answer.as_str()),
        (TurnOutcome::Interrupted, "")
    );
    assert_eq!(gateway.turn().await.answer, "Hi.");
    assert_eq!(
        gateway.model.has_said(),
        ["(This turn ended before there was an answer.)"]
    );
}

#[tokio::test(start_paused = true)]
async fn interruption_before_the_model_keeps_the_history() {
    let gateway = TestPlan::new([FakeTranscript::Is("Hello")], [ModelStep::Words("Hi.")]).build();
    gateway.turn().await;
    *gateway.model.prepares.lock() = Duration::from_secs(10);
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.seen("state thinking", 2).await;
    sleep(Duration::from_secs(1)).await;
    gateway.transcriber.interrupt();
    assert_eq!(
        gateway.recorder.turn(1).await.outcome,
        TurnOutcome::Interrupted
    );
    gateway.turn().await;
    assert_eq!(gateway.model.has_said(), ["Hi."]);
}

#[tokio::test(start_paused = true)]
async fn interruption_stops_an_interruptible_tool() {
    let mut idempotent = Annotations::default();
    idempotent.idempotent = Some(true);
    for annotations in [Annotations::READ_ONLY, idempotent] {
        let work = FakeTool::default();
        let tool = work.tool("look", Duration::from_secs(5), annotations);
        let says = [ModelStep::Call("", "look"), ModelStep::Words("Hi.")];
        let gateway = TestPlan::new([FakeTranscript::Is("Look")], says)
            .with([tool])
            .build();
        gateway.transcriber.submit(utterance()).unwrap();
        gateway.recorder.seen("state calling look", 1).await;
        sleep(Duration::from_millis(100)).await;
        let before = Instant::now();
        gateway.transcriber.interrupt();
        let turn = gateway.recorder.turn(0).await;
        assert!(
            before.elapsed() < Duration::from_millis(500),
            "{:?}",
            before.elapsed()
        );
        assert_eq!(
            (turn.outcome, turn.calls.len()),
            (TurnOutcome::Interrupted, 1)
        );
        sleep(Duration::from_secs(10)).await;
        assert_eq!((work.begun(), work.done()), (1, 0));
        assert_eq!(gateway.turn().await.answer, "Hi.");
    }
}

#[tokio::test(start_paused = true)]
async fn interruption_lets_an_uninterruptible_tool_finish() {
    let work = FakeTool::default();
    let tool = work.tool("unlock", Duration::from_secs(5), Annotations::default());
    let says = [
        ModelStep::Call("Let me see. ", "unlock"),
        ModelStep::Words("Hi."),
    ];
    let gateway = TestPlan::new([FakeTranscript::Is("Unlock")], says)
        .with([tool])
        .build();
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.seen("state calling unlock", 1).await;
    sleep(Duration::from_millis(100)).await;
    gateway.transcriber.interrupt();
    gateway.transcriber.submit(utterance()).unwrap();
    let turn = gateway.recorder.turn(0).await;
    assert_eq!((work.begun(), work.done()), (1, 1));
    assert_eq!(
        (turn.outcome, turn.calls.len()),
        (TurnOutcome::Interrupted, 1)
    );
    assert_eq!(gateway.recorder.count("called unlock true"), 1);
    // The model isn't asked for an answer nobody wants. It learns of the outcome
    // with the next request.
    let next = gateway.recorder.turn(1).await;
    assert_eq!(
        (next.answer.as_str(), gateway.model.asked().len()),
        ("Hi.", 2)
    );
    assert_eq!(
        gateway.recorder.count("state thinking"),
        2,
        "none after the tool"
    );
    let sent = format!("{:?}", gateway.model.asked()[1]);
    assert!(
        sent.contains("done") && !sent.contains("interrupted"),
        "{sent}"
    );
}

#[tokio::test(start_paused = true)]
async fn interruption_silences_and_history_keeps_the_spoken_words() {
    let story = &[
        "Bees sleep at night in their hive. ",
        "Ants never sleep at all. ",
        "Cats always do.",
    ];
    let says = [
        ModelStep::Slowly(Duration::from_millis(10), story),
        ModelStep::Words("Hi."),
    ];
    let gateway = TestPlan::new([FakeTranscript::Is("Tell me a story")], says).build();
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.seen("state speaking", 1).await;
    // Seven words take 1.4 s; the second sentence has begun.
    sleep(Duration::from_millis(1800)).await;
    gateway.transcriber.interrupt();
    expect_silence(&gateway).await;
    let turn = gateway.recorder.turn(0).await;
    assert_eq!(turn.outcome, TurnOutcome::Interrupted);
    let said = "Bees sleep at night in their hive. Ants";
    assert_eq!(turn.answer, said);
    gateway.turn().await;
    assert_eq!(gateway.model.has_said(), [said]);
}

#[tokio::test(start_paused = true)]
async fn interruption_stops_model_and_speech() {
    let story = &[
        "Bees sleep at night in their hive. Ants ",
        "never sleep at all. ",
    ];
    let says = [
        ModelStep::Slowly(Duration::from_secs(30), story),
        ModelStep::Words("Hi."),
    ];
    let gateway = TestPlan::new([FakeTranscript::Is("Tell me a story")], says).build();
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.seen("state speaking", 1).await;
    sleep(Duration::from_millis(500)).await;
    gateway.transcriber.interrupt();
    expect_silence(&gateway).await;
    assert_eq!(gateway.recorder.turn(0).await.answer, "Bees sleep");
    assert_eq!(gateway.recorder.count("words never sleep at all. "), 0);
    gateway.turn().await;
    assert_eq!(gateway.model.has_said(), ["Bees sleep"]);
}

#[tokio::test(start_paused = true)]
async fn sound_after_an_interruption_is_not_cut() {
    let says = [ModelStep::Words("One, two, three, four, five, six, seven.")];
    let gateway = TestPlan::new([FakeTranscript::Is("Count")], says).build();
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.seen("state speaking", 1).await;
    sleep(Duration::from_millis(300)).await;
    gateway.transcriber.interrupt();
    let before = *gateway.heard.lock();
    gateway.speaker.play_tone(SignalTone::Wake);
    sleep(Duration::from_secs(1)).await;
    let heard = *gateway.heard.lock() - before;
    assert!(heard > Duration::from_millis(140), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn interruption_while_idle_changes_nothing() {
    let gateway = TestPlan::new([FakeTranscript::Is("Hello")], [ModelStep::Words("Hi.")]).build();
    for _ in 0..3 {
        gateway.transcriber.interrupt();
        assert_eq!(gateway.turn().await.answer, "Hi.");
    }
    assert_eq!(gateway.recorder.dropped(DropReason::GivenUp), 0);
}

#[tokio::test(start_paused = true)]
async fn spoken_stop_interrupts_the_answer() {
    for stop in ["Stop.", "Never mind!", "Okay, cancel that please."] {
        let stops = FakeTranscript::After(Duration::from_millis(50), stop);
        let texts = [
            FakeTranscript::Is("Count"),
            stops,
            FakeTranscript::Is("Hello"),
        ];
        let says = [ModelStep::Words(
            "One, two, three, four, five, six, seven, eight, nine, ten.",
        )];
        let gateway = TestPlan::new(texts, says).build();
        gateway.transcriber.submit(utterance()).unwrap();
        gateway.recorder.seen("state speaking", 1).await;
        sleep(Duration::from_millis(300)).await;
        gateway.transcriber.submit(utterance()).unwrap();
        gateway.recorder.seen("dropped a request to stop", 1).await;
        expect_silence(&gateway).await;
        assert_eq!(
            gateway.recorder.turn(0).await.outcome,
            TurnOutcome::Interrupted
        );
        assert_eq!(gateway.recorder.dropped(DropReason::Cancel), 1);
        assert_eq!(
            gateway.model.asked().len(),
            1,
            "{stop} is nothing for a model"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_an_uninterruptible_tool() {
    for (takes, done) in [(5, 1), (20, 0)] {
        let work = FakeTool::default();
        let tool = work.tool("unlock", Duration::from_secs(takes), Annotations::default());
        let says = [ModelStep::Call("", "unlock"), ModelStep::Words("Done.")];
        let gateway = TestPlan::new([FakeTranscript::Is("Unlock")], says)
            .with([tool])
            .build();
        gateway.transcriber.submit(utterance()).unwrap();
        gateway.recorder.seen("state calling unlock", 1).await;
        sleep(Duration::from_millis(10)).await;
        let before = Instant::now();
        gateway.transcriber.close().await;
        assert_eq!(work.done(), done);
        assert!(
            before.elapsed() < Duration::from_secs(11),
            "{:?}",
            before.elapsed()
        );
        assert!(
            gateway.transcriber.submit(utterance()).is_ok(),
            "what comes later is dropped"
        );
    }
}
