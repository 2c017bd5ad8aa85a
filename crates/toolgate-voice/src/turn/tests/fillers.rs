//! A tool that takes long.

use std::time::Duration;

use toolgate_core::Annotations;
use toolgate_journal::TurnOutcome;

use super::support::{FakeTool, FakeTranscript, ModelStep, TestPlan, utterance};

#[tokio::test(start_paused = true)]
async fn slow_tool_gets_one_filler() {
    for (takes, expected) in [
        (500, "It is done."),
        (900, "One moment. It is done."),
        (9000, "One moment. It is done."),
    ] {
        let tool =
            FakeTool::default().tool("work", Duration::from_millis(takes), Annotations::default());
        let says = [ModelStep::Call("", "work"), ModelStep::Words("It is done.")];
        let gateway = TestPlan::new([FakeTranscript::Is("Work")], says)
            .with([tool])
            .build();
        let turn = gateway.turn().await;
        assert_eq!(
            (turn.outcome, turn.answer.as_str()),
            (TurnOutcome::Answered, "It is done.")
        );
        assert_eq!(gateway.spoken(), expected, "{takes} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn long_text_that_arrives_at_once_is_shortened() {
    const SENTENCE: &str = "The lamp in the kitchen is on, and nobody is there to see it. ";
    let long: &'static str = Box::leak(SENTENCE.repeat(20).into_boxed_str());
    let gateway = TestPlan::new(
        [FakeTranscript::Is("Tell me all")],
        [ModelStep::Words(long)],
    )
    .build();
    let turn = gateway.turn().await;
    assert_eq!(
        (turn.outcome, turn.answer.trim()),
        (TurnOutcome::Answered, long.trim()),
        "the screen has all of it"
    );
    let spoken = gateway.spoken();
    assert!(
        spoken.ends_with("to see it. The rest is on the screen."),
        "{spoken}"
    );
    assert!(spoken.len() < 400, "{spoken}");
}

#[tokio::test(start_paused = true)]
async fn several_slow_tools_get_one_filler() {
    let tool = FakeTool::default().tool("work", Duration::from_secs(2), Annotations::default());
    let says = [
        ModelStep::Call("", "work"),
        ModelStep::Call("", "work"),
        ModelStep::Words("It is done."),
    ];
    let gateway = TestPlan::new([FakeTranscript::Is("Work")], says)
        .with([tool])
        .build();
    gateway.turn().await;
    assert_eq!(gateway.spoken(), "One moment. It is done.");
}

#[tokio::test(start_paused = true)]
async fn no_filler_is_spoken_after_the_models_own_words() {
    let tool = FakeTool::default().tool("work", Duration::from_secs(5), Annotations::default());
    let says = [
        ModelStep::Call("Let me see.", "work"),
        ModelStep::Words("It is done."),
    ];
    let mut plan = TestPlan::new([FakeTranscript::Is("Work")], says).with([tool]);
    plan.settings.filler_after = Duration::from_secs(2);
    let gateway = plan.build();
    gateway.turn().await;
    assert_eq!(gateway.spoken(), "Let me see. It is done.");
    // Six words are 1.2 s; the rest is a tone.
    let heard = *gateway.heard.lock();
    assert!(heard > Duration::from_millis(1200), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn filler_is_a_tone_in_other_languages() {
    let tool = FakeTool::default().tool("work", Duration::from_secs(5), Annotations::default());
    let says = [ModelStep::Call("", "work"), ModelStep::Words("Fertig.")];
    let mut plan = TestPlan::new([FakeTranscript::Is("Los")], says).with([tool]);
    plan.settings.language = "de".to_owned();
    let gateway = plan.build();
    gateway.turn().await;
    assert_eq!(gateway.spoken(), "Fertig.");
    assert!(*gateway.heard.lock() > Duration::from_millis(200));
}

#[tokio::test(start_paused = true)]
async fn filler_is_not_part_of_the_answer() {
    let tool = FakeTool::default().tool("work", Duration::from_secs(2), Annotations::READ_ONLY);
    let story = "Bees sleep at night in their hive. Ants never sleep at all.";
    let says = [
        ModelStep::Call("", "work"),
        ModelStep::Words(story),
        ModelStep::Words("Hi."),
    ];
    let gateway = TestPlan::new([FakeTranscript::Is("Work")], says)
        .with([tool])
        .build();
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.seen("state speaking", 1).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    gateway.transcriber.interrupt();
    let turn = gateway.recorder.turn(0).await;
    assert_eq!(turn.answer, "Bees sleep");
    gateway.turn().await;
    assert_eq!(gateway.model.has_said(), ["", "Bees sleep"]);
}

#[tokio::test(start_paused = true)]
async fn interrupted_filler_is_not_part_of_the_answer() {
    let tool = FakeTool::default().tool("work", Duration::from_secs(5), Annotations::READ_ONLY);
    let says = [ModelStep::Call("", "work"), ModelStep::Words("Hi.")];
    let gateway = TestPlan::new([FakeTranscript::Is("Work")], says)
        .with([tool])
        .build();
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.seen("calling work {}", 1).await;
    // The filler starts after 0.7 s, and one of its two words is heard.
    tokio::time::sleep(Duration::from_millis(960)).await;
    gateway.transcriber.interrupt();
    assert_eq!(gateway.recorder.turn(0).await.answer, "");
    assert_eq!(gateway.spoken(), "One moment.");
}
