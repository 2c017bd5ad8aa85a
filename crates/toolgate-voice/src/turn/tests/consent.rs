//! A destructive tool runs only after a spoken yes.

use std::time::Duration;

use crate::DropReason;
use crate::services::HandleRequest;
use tokio::time::sleep;
use toolgate_core::Annotations;

use super::support::{FakeTool, FakeTranscript, ModelStep, TestGateway, TestPlan, utterance};

const QUESTION: &str = "words Shall I use unlock? Say yes or no. ";
/// Longer than the question but shorter than the wait after it.
const HEARD_IT: Duration = Duration::from_secs(8);

/// A gateway whose model wants to unlock the door.
fn house(said: impl IntoIterator<Item = &'static str>) -> (TestGateway, FakeTool) {
    let work = FakeTool::default();
    let mut destructive = Annotations::default();
    destructive.destructive = Some(true);
    let unlock = work.tool("unlock", Duration::from_millis(10), destructive);
    let texts = ["Unlock the door"].into_iter().chain(said);
    let says = [
        ModelStep::Call("Let me see.", "unlock"),
        ModelStep::Words("That was it."),
    ];
    let plan = TestPlan::new(texts.map(FakeTranscript::Is), says).with([unlock]);
    (plan.build(), work)
}

/// Sends the request and waits for the question.
async fn ask(house: &TestGateway) {
    house.ears.submit(utterance()).unwrap();
    house.watch.seen(QUESTION, 1).await;
    assert_eq!(house.watch.turns().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_spoken_yes_lets_it_run() {
    let (house, work) = house(["Yes, please."]);
    ask(&house).await;
    sleep(HEARD_IT).await;
    assert_eq!(work.begun(), 0);
    house.ears.submit(utterance()).unwrap();
    let turn = house.watch.turn(0).await;
    assert_eq!((work.done(), turn.answer.as_str()), (1, "That was it."));
    assert_eq!(
        house.spoken(),
        "Let me see. Shall I use unlock? Say yes or no. That was it."
    );
    assert_eq!(house.watch.dropped(DropReason::Reply), 1);
}

#[tokio::test(start_paused = true)]
async fn a_no_or_anything_else_is_a_no_and_said_to_be_one() {
    for (said, turns) in [
        ("No.", 1),
        ("No, thanks", 1),
        ("okay", 2),
        ("What time is it?", 2),
    ] {
        let (house, work) = house([said]);
        ask(&house).await;
        sleep(HEARD_IT).await;
        house.ears.submit(utterance()).unwrap();
        house.watch.turn(turns - 1).await;
        assert_eq!(work.begun(), 0, "{said}");
        let spoken = house.spoken();
        assert!(spoken.contains("Okay, I won't."), "{said}: {spoken}");
        assert_eq!(house.watch.turns().len(), turns, "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_is_a_no_before_long() {
    let (house, work) = house(["Yes."]);
    ask(&house).await;
    let asked = tokio::time::Instant::now();
    house.watch.turn(0).await;
    assert!(asked.elapsed() < Duration::from_secs(30));
    assert_eq!(work.begun(), 0);
    assert!(house.spoken().contains("I didn't hear a yes, so I won't."));
}

#[tokio::test(start_paused = true)]
async fn a_yes_that_began_before_the_question_was_over_means_nothing() {
    let (house, work) = house(["Yes."]);
    ask(&house).await;
    house.ears.submit(utterance()).unwrap();
    house.watch.turn(1).await;
    assert_eq!(work.begun(), 0);
}

#[tokio::test(start_paused = true)]
async fn whoever_cuts_the_question_short_has_not_agreed() {
    let (house, work) = house(["Yes."]);
    ask(&house).await;
    sleep(Duration::from_millis(500)).await;
    house.ears.interrupt();
    house.ears.submit(utterance()).unwrap();
    house.watch.turn(1).await;
    assert_eq!(work.begun(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_wake_word_before_the_yes_does_not_take_it_back() {
    let (house, work) = house(["Yes."]);
    ask(&house).await;
    sleep(HEARD_IT).await;
    house.ears.interrupt();
    house.ears.submit(utterance()).unwrap();
    house.watch.turn(0).await;
    assert_eq!(work.done(), 1);
}

#[tokio::test(start_paused = true)]
async fn stop_takes_back_the_request() {
    let (house, work) = house(["Stop!"]);
    ask(&house).await;
    sleep(HEARD_IT).await;
    house.ears.submit(utterance()).unwrap();
    let turn = house.watch.turn(0).await;
    assert_eq!((work.begun(), turn.answer.as_str()), (0, "Let me see."));
}

#[tokio::test(start_paused = true)]
async fn whoever_writes_is_not_asked_aloud() {
    let (house, work) = house([]);
    let question = HandleRequest {
        text: "Unlock the door".to_owned(),
        ..HandleRequest::default()
    };
    let answered = house.ears.ask(question).await;
    assert_eq!((answered.text.as_str(), work.begun()), ("That was it.", 0));
    assert_eq!(house.spoken(), "");
    let told = format!("{:?}", house.model.asked());
    assert!(told.contains("Tool 'unlock' needs approval"), "{told}");
}
