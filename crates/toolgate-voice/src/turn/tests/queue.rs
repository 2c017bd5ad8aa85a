//! More is heard than can be answered, or nothing that is worth it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::Reason;
use crate::listen::Utterance;
use tokio::time::{Instant, sleep};
use toolgate_core::Annotations;
use toolgate_journal::TurnOutcome;

use super::support::{Ear, Plan, Say, Text, Work, utterance};

#[tokio::test(start_paused = true)]
async fn two_utterances_at_once_are_answered_in_order() {
    let texts = [
        Text::After(Duration::from_secs(1), "First"),
        Text::Is("Second"),
    ];
    let says = [Say::Words("One."), Say::Words("Two.")];
    let house = Plan::new(texts, says).build();
    house.ears.hear(utterance()).unwrap();
    house.ears.hear(utterance()).unwrap();
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
    let ear = Ear::new([Text::Is("Hello")]);
    let says = [Say::Slowly(Duration::from_secs(10), &["Hi."])];
    let mut plan = Plan::new([], says);
    plan.ear = Arc::<Ear>::clone(&ear);
    let house = plan.build();
    house.ears.hear(utterance()).unwrap();
    house.watch.seen("state thinking", 1).await;
    house.ears.hear(utterance()).unwrap();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(ear.begun.load(Ordering::Relaxed), 2);
    assert_eq!(house.watch.count("state transcribing"), 1, "it is thinking");
}

#[tokio::test(start_paused = true)]
async fn what_finds_no_place_in_the_queue_is_dropped_and_told() {
    let mut plan = Plan::new([Text::Is("Hello")], [Say::Never, Say::Words("Hi.")]);
    plan.settings.queue = 3;
    let house = plan.build();
    house.ears.hear(utterance()).unwrap();
    house.watch.seen("state thinking", 1).await;
    let before = Instant::now();
    let taken = (0..10)
        .filter(|_| house.ears.hear(utterance()).is_ok())
        .count();
    assert_eq!(before.elapsed(), Duration::ZERO, "it never waits");
    assert_eq!((taken, house.ears.dropped(Reason::Overrun)), (3, 7));
    assert_eq!(house.watch.count("dropped too many requests wait"), 7);
    let error = house.ears.hear(utterance()).unwrap_err().to_string();
    assert_eq!(error, "3 requests wait already; this one is dropped");
    // There is room again as soon as somebody is answered.
    house.ears.interrupt();
    house
        .watch
        .seen("dropped given up before it was answered", 3)
        .await;
    assert_eq!(house.watch.turn(0).await.outcome, TurnOutcome::Interrupted);
    assert_eq!(house.turn().await.answer, "Hi.");
}

#[tokio::test(start_paused = true)]
async fn what_is_given_up_gives_its_place_back_while_a_tool_must_go_on() {
    let work = Work::default();
    let tool = work.tool("unlock", Duration::from_secs(20), Annotations::default());
    let texts = ["Unlock", "Forgotten", "Hello"].map(Text::Is);
    let says = [Say::Call("", "unlock"), Say::Words("Hi.")];
    let mut plan = Plan::new(texts, says).with([tool]);
    plan.settings.queue = 1;
    let house = plan.build();
    house.ears.hear(utterance()).unwrap();
    house.watch.seen("state calling unlock", 1).await;
    house.ears.hear(utterance()).unwrap();
    house.watch.seen("heard Forgotten", 1).await;
    // The filler is over by then.
    sleep(Duration::from_secs(10)).await;
    let before = *house.heard.lock();
    house.ears.interrupt();
    assert_eq!(house.ears.dropped(Reason::GivenUp), 1, "at once");
    house.ears.hear(utterance()).unwrap();
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
    let ear = Ear::new(texts.map(Text::Is));
    let mut plan = Plan::new([], [Say::Words("You are welcome.")]);
    plan.ear = Arc::<Ear>::clone(&ear);
    plan.settings.queue = 64;
    let house = plan.build();
    house.ears.hear(silence(2)).unwrap();
    let short = Utterance {
        samples: utterance().samples[..1600].into(),
        ..utterance()
    };
    house.ears.hear(short).unwrap();
    for _ in texts {
        house.ears.hear(utterance()).unwrap();
    }
    let turn = house.watch.turn(0).await;
    assert_eq!(turn.heard, "Thank you", "a second of a clear voice");
    assert_eq!(ear.begun.load(Ordering::Relaxed), texts.len());
    for (reason, count) in [
        (Reason::TooQuiet, 1),
        (Reason::TooShort, 1),
        (Reason::NoWords, 2),
        (Reason::Imagined, 4),
        (Reason::Cancel, 1),
        (Reason::Broken, 0),
    ] {
        assert_eq!(house.ears.dropped(reason), count, "{reason}");
    }
    assert_eq!(house.model.asked().len(), 1);
}
