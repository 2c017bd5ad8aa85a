//! A tool that takes long.

use std::time::Duration;

use toolgate_core::Annotations;
use toolgate_journal::TurnOutcome;

use super::support::{FakeTool, FakeTranscript, ModelStep, TestPlan, utterance};

#[tokio::test(start_paused = true)]
async fn a_slow_tool_is_bridged_once() {
    for (takes, expected) in [
        (500, "It is done."),
        (900, "One moment. It is done."),
        (9000, "One moment. It is done."),
    ] {
        let tool =
            FakeTool::default().tool("work", Duration::from_millis(takes), Annotations::default());
        let says = [ModelStep::Call("", "work"), ModelStep::Words("It is done.")];
        let house = TestPlan::new([FakeTranscript::Is("Work")], says)
            .with([tool])
            .build();
        let turn = house.turn().await;
        assert_eq!(
            (turn.outcome, turn.answer.as_str()),
            (TurnOutcome::Answered, "It is done.")
        );
        assert_eq!(house.spoken(), expected, "{takes} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_all_at_once_and_is_long_is_not_read_out_whole() {
    const SENTENCE: &str = "The lamp in the kitchen is on, and nobody is there to see it. ";
    let long: &'static str = Box::leak(SENTENCE.repeat(20).into_boxed_str());
    let house = TestPlan::new(
        [FakeTranscript::Is("Tell me all")],
        [ModelStep::Words(long)],
    )
    .build();
    let turn = house.turn().await;
    assert_eq!(
        (turn.outcome, turn.answer.trim()),
        (TurnOutcome::Answered, long.trim()),
        "the screen has all of it"
    );
    let spoken = house.spoken();
    assert!(
        spoken.ends_with("to see it. The rest is on the screen."),
        "{spoken}"
    );
    assert!(spoken.len() < 400, "{spoken}");
}

#[tokio::test(start_paused = true)]
async fn several_slow_tools_of_a_turn_are_bridged_once() {
    let tool = FakeTool::default().tool("work", Duration::from_secs(2), Annotations::default());
    let says = [
        ModelStep::Call("", "work"),
        ModelStep::Call("", "work"),
        ModelStep::Words("It is done."),
    ];
    let house = TestPlan::new([FakeTranscript::Is("Work")], says)
        .with([tool])
        .build();
    house.turn().await;
    assert_eq!(house.spoken(), "One moment. It is done.");
}

#[tokio::test(start_paused = true)]
async fn who_has_said_something_already_does_not_say_one_moment() {
    let tool = FakeTool::default().tool("work", Duration::from_secs(5), Annotations::default());
    let says = [
        ModelStep::Call("Let me see.", "work"),
        ModelStep::Words("It is done."),
    ];
    let mut plan = TestPlan::new([FakeTranscript::Is("Work")], says).with([tool]);
    plan.settings.filler_after = Duration::from_secs(2);
    let house = plan.build();
    house.turn().await;
    assert_eq!(house.spoken(), "Let me see. It is done.");
    // Six words are 1.2 s; the rest is a tone.
    let heard = *house.heard.lock();
    assert!(heard > Duration::from_millis(1200), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn in_another_language_it_is_a_tone() {
    let tool = FakeTool::default().tool("work", Duration::from_secs(5), Annotations::default());
    let says = [ModelStep::Call("", "work"), ModelStep::Words("Fertig.")];
    let mut plan = TestPlan::new([FakeTranscript::Is("Los")], says).with([tool]);
    plan.settings.language = "de".to_owned();
    let house = plan.build();
    house.turn().await;
    assert_eq!(house.spoken(), "Fertig.");
    assert!(*house.heard.lock() > Duration::from_millis(200));
}

#[tokio::test(start_paused = true)]
async fn the_filler_is_no_word_of_the_models() {
    let tool = FakeTool::default().tool("work", Duration::from_secs(2), Annotations::READ_ONLY);
    let story = "Bees sleep at night in their hive. Ants never sleep at all.";
    let says = [
        ModelStep::Call("", "work"),
        ModelStep::Words(story),
        ModelStep::Words("Hi."),
    ];
    let house = TestPlan::new([FakeTranscript::Is("Work")], says)
        .with([tool])
        .build();
    house.ears.submit(utterance()).unwrap();
    house.watch.seen("state speaking", 1).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    house.ears.interrupt();
    let turn = house.watch.turn(0).await;
    assert_eq!(turn.answer, "Bees sleep");
    house.turn().await;
    assert_eq!(house.model.has_said(), ["", "Bees sleep"]);
}

#[tokio::test(start_paused = true)]
async fn half_a_filler_is_no_word_of_the_models_either() {
    let tool = FakeTool::default().tool("work", Duration::from_secs(5), Annotations::READ_ONLY);
    let says = [ModelStep::Call("", "work"), ModelStep::Words("Hi.")];
    let house = TestPlan::new([FakeTranscript::Is("Work")], says)
        .with([tool])
        .build();
    house.ears.submit(utterance()).unwrap();
    house.watch.seen("calling work {}", 1).await;
    // The filler starts after 0.7 s, and one of its two words is heard.
    tokio::time::sleep(Duration::from_millis(960)).await;
    house.ears.interrupt();
    assert_eq!(house.watch.turn(0).await.answer, "");
    assert_eq!(house.spoken(), "One moment.");
}
