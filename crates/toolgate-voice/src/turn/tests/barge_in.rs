//! Interruptions of an answer.

use std::time::Duration;

use crate::DropReason;
use crate::speak::SignalTone;
use tokio::time::{Instant, sleep};
use toolgate_core::Annotations;
use toolgate_journal::TurnOutcome;

use super::support::{FakeTool, FakeTranscript, ModelStep, TestGateway, TestPlan, utterance};

/// Waits for silence, no longer than promised.
async fn expect_silence(house: &TestGateway) {
    sleep(Duration::from_millis(150)).await;
    let heard = *house.heard.lock();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(*house.heard.lock(), heard, "it still sounds");
}

#[tokio::test(start_paused = true)]
async fn while_transcribing_the_utterance_is_given_up() {
    let house = TestPlan::new(
        [FakeTranscript::Never, FakeTranscript::Is("Hello")],
        [ModelStep::Words("Hi.")],
    )
    .build();
    house.ears.submit(utterance()).unwrap();
    house.watch.seen("state transcribing", 1).await;
    house.ears.interrupt();
    house
        .watch
        .seen("dropped cancelled before it was answered", 1)
        .await;
    assert_eq!(house.watch.dropped(DropReason::GivenUp), 1);
    assert_eq!(house.turn().await.answer, "Hi.");
    assert_eq!(house.watch.turns().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn while_thinking_the_models_stream_is_cancelled() {
    let house = TestPlan::new(
        [FakeTranscript::Is("Hello")],
        [ModelStep::Never, ModelStep::Words("Hi.")],
    )
    .build();
    house.ears.submit(utterance()).unwrap();
    house.watch.seen("state thinking", 1).await;
    let before = Instant::now();
    house.ears.interrupt();
    let turn = house.watch.turn(0).await;
    assert!(
        before.elapsed() < Duration::from_millis(150),
        "{:?}",
        before.elapsed()
    );
    assert_eq!(
        (turn.outcome, turn.answer.as_str()),
        (TurnOutcome::Interrupted, "")
    );
    assert_eq!(house.turn().await.answer, "Hi.");
    assert_eq!(
        house.model.has_said(),
        ["(This turn ended before there was an answer.)"]
    );
}

#[tokio::test(start_paused = true)]
async fn before_the_model_is_asked_nothing_is_forgotten() {
    let house = TestPlan::new([FakeTranscript::Is("Hello")], [ModelStep::Words("Hi.")]).build();
    house.turn().await;
    *house.model.prepares.lock() = Duration::from_secs(10);
    house.ears.submit(utterance()).unwrap();
    house.watch.seen("state thinking", 2).await;
    sleep(Duration::from_secs(1)).await;
    house.ears.interrupt();
    assert_eq!(house.watch.turn(1).await.outcome, TurnOutcome::Interrupted);
    house.turn().await;
    assert_eq!(house.model.has_said(), ["Hi."]);
}

#[tokio::test(start_paused = true)]
async fn while_a_tool_runs_that_may_be_stopped_it_is() {
    let mut idempotent = Annotations::default();
    idempotent.idempotent = Some(true);
    for annotations in [Annotations::READ_ONLY, idempotent] {
        let work = FakeTool::default();
        let tool = work.tool("look", Duration::from_secs(5), annotations);
        let says = [ModelStep::Call("", "look"), ModelStep::Words("Hi.")];
        let house = TestPlan::new([FakeTranscript::Is("Look")], says)
            .with([tool])
            .build();
        house.ears.submit(utterance()).unwrap();
        house.watch.seen("state calling look", 1).await;
        sleep(Duration::from_millis(100)).await;
        let before = Instant::now();
        house.ears.interrupt();
        let turn = house.watch.turn(0).await;
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
        assert_eq!(house.turn().await.answer, "Hi.");
    }
}

#[tokio::test(start_paused = true)]
async fn while_a_tool_runs_that_must_not_be_stopped_it_goes_on_to_its_end() {
    let work = FakeTool::default();
    let tool = work.tool("unlock", Duration::from_secs(5), Annotations::default());
    let says = [
        ModelStep::Call("Let me see. ", "unlock"),
        ModelStep::Words("Hi."),
    ];
    let house = TestPlan::new([FakeTranscript::Is("Unlock")], says)
        .with([tool])
        .build();
    house.ears.submit(utterance()).unwrap();
    house.watch.seen("state calling unlock", 1).await;
    sleep(Duration::from_millis(100)).await;
    house.ears.interrupt();
    house.ears.submit(utterance()).unwrap();
    let turn = house.watch.turn(0).await;
    assert_eq!((work.begun(), work.done()), (1, 1));
    assert_eq!(
        (turn.outcome, turn.calls.len()),
        (TurnOutcome::Interrupted, 1)
    );
    assert_eq!(house.watch.count("called unlock true"), 1);
    // The model isn't asked for an answer nobody wants. It learns of the outcome
    // with the next request.
    let next = house.watch.turn(1).await;
    assert_eq!(
        (next.answer.as_str(), house.model.asked().len()),
        ("Hi.", 2)
    );
    assert_eq!(
        house.watch.count("state thinking"),
        2,
        "none after the tool"
    );
    let sent = format!("{:?}", house.model.asked()[1]);
    assert!(
        sent.contains("done") && !sent.contains("interrupted"),
        "{sent}"
    );
}

#[tokio::test(start_paused = true)]
async fn while_speaking_it_falls_silent_and_remembers_what_was_said() {
    let story = &[
        "Bees sleep at night in their hive. ",
        "Ants never sleep at all. ",
        "Cats always do.",
    ];
    let says = [
        ModelStep::Slowly(Duration::from_millis(10), story),
        ModelStep::Words("Hi."),
    ];
    let house = TestPlan::new([FakeTranscript::Is("Tell me a story")], says).build();
    house.ears.submit(utterance()).unwrap();
    house.watch.seen("state speaking", 1).await;
    // Seven words take 1.4 s; the second sentence has begun.
    sleep(Duration::from_millis(1800)).await;
    house.ears.interrupt();
    expect_silence(&house).await;
    let turn = house.watch.turn(0).await;
    assert_eq!(turn.outcome, TurnOutcome::Interrupted);
    let said = "Bees sleep at night in their hive. Ants";
    assert_eq!(turn.answer, said);
    house.turn().await;
    assert_eq!(house.model.has_said(), [said]);
}

#[tokio::test(start_paused = true)]
async fn while_the_model_still_streams_both_stop() {
    let story = &[
        "Bees sleep at night in their hive. Ants ",
        "never sleep at all. ",
    ];
    let says = [
        ModelStep::Slowly(Duration::from_secs(30), story),
        ModelStep::Words("Hi."),
    ];
    let house = TestPlan::new([FakeTranscript::Is("Tell me a story")], says).build();
    house.ears.submit(utterance()).unwrap();
    house.watch.seen("state speaking", 1).await;
    sleep(Duration::from_millis(500)).await;
    house.ears.interrupt();
    expect_silence(&house).await;
    assert_eq!(house.watch.turn(0).await.answer, "Bees sleep");
    assert_eq!(house.watch.count("words never sleep at all. "), 0);
    house.turn().await;
    assert_eq!(house.model.has_said(), ["Bees sleep"]);
}

#[tokio::test(start_paused = true)]
async fn what_sounds_after_an_interruption_is_not_cut_off_by_it() {
    let says = [ModelStep::Words("One, two, three, four, five, six, seven.")];
    let house = TestPlan::new([FakeTranscript::Is("Count")], says).build();
    house.ears.submit(utterance()).unwrap();
    house.watch.seen("state speaking", 1).await;
    sleep(Duration::from_millis(300)).await;
    house.ears.interrupt();
    let before = *house.heard.lock();
    house.speaker.play_tone(SignalTone::Wake);
    sleep(Duration::from_secs(1)).await;
    let heard = *house.heard.lock() - before;
    assert!(heard > Duration::from_millis(140), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn with_nothing_going_on_it_costs_nothing() {
    let house = TestPlan::new([FakeTranscript::Is("Hello")], [ModelStep::Words("Hi.")]).build();
    for _ in 0..3 {
        house.ears.interrupt();
        assert_eq!(house.turn().await.answer, "Hi.");
    }
    assert_eq!(house.watch.dropped(DropReason::GivenUp), 0);
}

#[tokio::test(start_paused = true)]
async fn a_word_that_stops_does_so_while_the_answer_is_spoken() {
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
        let house = TestPlan::new(texts, says).build();
        house.ears.submit(utterance()).unwrap();
        house.watch.seen("state speaking", 1).await;
        sleep(Duration::from_millis(300)).await;
        house.ears.submit(utterance()).unwrap();
        house.watch.seen("dropped a request to stop", 1).await;
        expect_silence(&house).await;
        assert_eq!(house.watch.turn(0).await.outcome, TurnOutcome::Interrupted);
        assert_eq!(house.watch.dropped(DropReason::Cancel), 1);
        assert_eq!(
            house.model.asked().len(),
            1,
            "{stop} is nothing for a model"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn at_the_end_a_tool_that_must_not_be_stopped_has_its_time() {
    for (takes, done) in [(5, 1), (20, 0)] {
        let work = FakeTool::default();
        let tool = work.tool("unlock", Duration::from_secs(takes), Annotations::default());
        let says = [ModelStep::Call("", "unlock"), ModelStep::Words("Done.")];
        let house = TestPlan::new([FakeTranscript::Is("Unlock")], says)
            .with([tool])
            .build();
        house.ears.submit(utterance()).unwrap();
        house.watch.seen("state calling unlock", 1).await;
        sleep(Duration::from_millis(10)).await;
        let before = Instant::now();
        house.ears.close().await;
        assert_eq!(work.done(), done);
        assert!(
            before.elapsed() < Duration::from_secs(11),
            "{:?}",
            before.elapsed()
        );
        assert!(
            house.ears.submit(utterance()).is_ok(),
            "what comes later is dropped"
        );
    }
}
