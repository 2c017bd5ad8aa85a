//! Ten thousand utterances.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::Reason;
use crate::listen::Utterance;
use tokio::runtime::Handle;
use toolgate_core::Annotations;

use super::support::{Plan, Say, Script, Text, Work, alone, resident, utterance};

const MANY: usize = 10_000;

#[test]
fn ten_thousand_utterances_leave_nothing_behind() {
    alone("turn::tests::endurance::ten_thousand_utterances");
}

#[tokio::test(start_paused = true)]
#[ignore = "run alone, by the test above"]
async fn ten_thousand_utterances() {
    let texts = [
        Text::Is("Ring the bell"),
        Text::Is("[BLANK_AUDIO]"),
        Text::Is("Tell me a story"),
    ];
    let says = [
        Say::Call("", "ring_bell"),
        Say::Words("It rang. And it will ring again."),
    ];
    let work = Work::default();
    let bell = work.tool(
        "ring_bell",
        Duration::from_millis(5),
        Annotations::default(),
    );
    let texts = (0..MANY).flat_map(|_| texts.clone());
    let says = (0..MANY).flat_map(|_| says.clone());
    let mut plan = Plan::new(texts, []).with([bell]);
    plan.model = Script::forgetful(says);
    plan.at_once = true;
    let forget_after = plan.settings.forget_after;
    let house = plan.build();
    house.watch.is_brief.store(true, Ordering::Relaxed);
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let mut before = (0, 0);
    // Short, as everything that is done with it is done ten thousand times.
    let sound = Utterance {
        samples: utterance().samples[..3200].into(),
        ..utterance()
    };
    for index in 0..MANY {
        house.ears.hear(sound.clone()).unwrap();
        if index % 7 == 3 {
            tokio::task::yield_now().await;
            house.ears.interrupt();
        }
        let ended = |watch: &super::support::Watch| watch.ends.load(Ordering::Relaxed) > index;
        house.watch.until("its end", ended).await;
        house.mouth.asked.lock().clear();
        if index % 100 == 0 {
            // Long enough for the conversation to be forgotten: it grows until it fills the model's window.
            tokio::time::sleep(forget_after).await;
        }
        if index == MANY / 5 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            before = (tasks(), resident());
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        house.watch.ends.load(Ordering::Relaxed),
        MANY,
        "each has one end"
    );
    assert!(house.ears.dropped(Reason::Imagined) > 1000 && work.done() > 1000);
    assert_eq!(tasks(), before.0, "no task is left behind");
    let grown = resident().saturating_sub(before.1);
    // Two hundred bytes of each would be more, also where they fit into what was free before.
    assert!(grown < 1 << 18, "{grown} bytes more than before");
}
