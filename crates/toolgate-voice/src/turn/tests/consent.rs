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
fn gateway(said: impl IntoIterator<Item = &'static str>) -> (TestGateway, FakeTool) {
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
async fn ask(gateway: &TestGateway) {
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.seen(QUESTION, 1).await;
    assert_eq!(gateway.recorder.turns().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn spoken_yes_approves_the_call() {
    let (gateway, work) = gateway(["Yes, please."]);
    ask(&gateway).await;
    sleep(HEARD_IT).await;
    assert_eq!(work.begun(), 0);
    gateway.transcriber.submit(utterance()).unwrap();
    let turn = gateway.recorder.turn(0).await;
    assert_eq!((work.done(), turn.answer.as_str()), (1, "That was it."));
    assert_eq!(
        gateway.spoken(),
        "Let me see. Shall I use unlock? Say yes or no. That was it."
    );
    assert_eq!(gateway.recorder.dropped(DropReason::Reply), 1);
}

#[tokio::test(start_paused = true)]
async fn anything_but_yes_declines_and_is_confirmed_aloud() {
    for (said, turns) in [
        ("No.", 1),
        ("No, thanks", 1),
        ("okay", 2),
        ("What time is it?", 2),
    ] {
        let (gateway, work) = gateway([said]);
        ask(&gateway).await;
        sleep(HEARD_IT).await;
        gateway.transcriber.submit(utterance()).unwrap();
        gateway.recorder.turn(turns - 1).await;
        assert_eq!(work.begun(), 0, "{said}");
        let spoken = gateway.spoken();
        assert!(spoken.contains("Okay, I won't."), "{said}: {spoken}");
        assert_eq!(gateway.recorder.turns().len(), turns, "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_declines_after_a_while() {
    let (gateway, work) = gateway(["Yes."]);
    ask(&gateway).await;
    let asked = tokio::time::Instant::now();
    gateway.recorder.turn(0).await;
    assert!(asked.elapsed() < Duration::from_secs(30));
    assert_eq!(work.begun(), 0);
    assert!(
        gateway
            .spoken()
            .contains("I didn't hear a yes, so I won't.")
    );
}

#[tokio::test(start_paused = true)]
async fn yes_before_the_end_of_the_question_does_not_count() {
    let (gateway, work) = gateway(["Yes."]);
    ask(&gateway).await;
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.turn(1).await;
    assert_eq!(work.begun(), 0);
}

#[tokio::test(start_paused = true)]
async fn interrupting_the_question_declines() {
    let (gateway, work) = gateway(["Yes."]);
    ask(&gateway).await;
    sleep(Duration::from_millis(500)).await;
    gateway.transcriber.interrupt();
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.turn(1).await;
    assert_eq!(work.begun(), 0);
}

#[tokio::test(start_paused = true)]
async fn wake_word_before_the_yes_does_not_cancel_it() {
    let (gateway, work) = gateway(["Yes."]);
    ask(&gateway).await;
    sleep(HEARD_IT).await;
    gateway.transcriber.interrupt();
    gateway.transcriber.submit(utterance()).unwrap();
    gateway.recorder.turn(0).await;
    assert_eq!(work.done(), 1);
}

#[tokio::test(start_paused = true)]
async fn stop_cancels_the_request() {
    let (gateway, work) = gateway(["Stop!"]);
    ask(&gateway).await;
    sleep(HEARD_IT).await;
    gateway.transcriber.submit(utterance()).unwrap();
    let turn = gateway.recorder.turn(0).await;
    assert_eq!((work.begun(), turn.answer.as_str()), (0, "Let me see."));
}

#[tokio::test(start_paused = true)]
async fn written_requests_are_not_asked_aloud() {
    let (gateway, work) = gateway([]);
    let question = HandleRequest {
        text: "Unlock the door".to_owned(),
        ..HandleRequest::default()
    };
    let answered = gateway.transcriber.ask(question).await;
    assert_eq!((answered.text.as_str(), work.begun()), ("That was it.", 0));
    assert_eq!(gateway.spoken(), "");
    let told = format!("{:?}", gateway.model.asked());
    assert!(told.contains("Tool 'unlock' needs approval"), "{told}");
}
