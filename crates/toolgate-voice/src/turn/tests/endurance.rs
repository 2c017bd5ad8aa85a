//! Ten thousand utterances.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::DropReason;
use crate::segment::Utterance;
use tokio::runtime::Handle;
use toolgate_core::Annotations;

use super::support::{
    FakeTool, FakeTranscript, ModelStep, ScriptedModel, TestPlan, resident_bytes, run_isolated,
    utterance,
};

const MANY: usize = 10_000;

#[test]
fn ten_thousand_utterances_leave_nothing_behind() {
    run_isolated("turn::tests::endurance::ten_thousand_utterances");
}

#[tokio::test(start_paused = true)]
#[ignore = "run alone, by the test above"]
async fn ten_thousand_utterances() {
    let texts = [
        FakeTranscript::Is("Ring the bell"),
        FakeTranscript::Is("[BLANK_AUDIO]"),
        FakeTranscript::Is("Tell me a story"),
    ];
    let says = [
        ModelStep::Call("", "ring_bell"),
        ModelStep::Words("It rang. And it will ring again."),
    ];
    let work = FakeTool::default();
    let bell = work.tool(
        "ring_bell",
        Duration::from_millis(5),
        Annotations::default(),
    );
    let texts = (0..MANY).flat_map(|_| texts.clone());
    let says = (0..MANY).flat_map(|_| says.clone());
    let mut plan = TestPlan::new(texts, []).with([bell]);
    plan.model = ScriptedModel::forgetful(says);
    plan.at_once = true;
    let forget_after = plan.settings.forget_after;
    let gateway = plan.build();
    gateway.recorder.is_brief.store(true, Ordering::Relaxed);
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let mut before = (0, 0);
    // Short, because everything done with it is done ten thousand times.
    let sound = Utterance {
        samples: utterance().samples[..3200].into(),
        ..utterance()
    };
    for index in 0..MANY {
        gateway.transcriber.submit(sound.clone()).unwrap();
        if index % 7 == 3 {
            tokio::task::yield_now().await;
            gateway.transcriber.interrupt();
        }
        let ended = |recorder: &super::support::EventRecorder| {
            recorder.ends.load(Ordering::Relaxed) > index
        };
        gateway.recorder.until("its end", ended).await;
        gateway.synthesizer.asked.lock().clear();
        if index % 100 == 0 {
            // Long enough to forget the conversation, which would otherwise
            // fill the model's window.
            tokio::time::sleep(forget_after).await;
        }
        if index == MANY / 5 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            before = (tasks(), resident_bytes());
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        gateway.recorder.ends.load(Ordering::Relaxed),
        MANY,
        "each has one end"
    );
    assert!(gateway.recorder.dropped(DropReason::Hallucination) > 1000 && work.done() > 1000);
    assert_eq!(tasks(), before.0, "no task is left behind");
    let grown = resident_bytes().saturating_sub(before.1);
    // A leak of two hundred bytes per utterance would exceed this, even if it fits into memory
    // that was already free.
    assert!(grown < 1 << 18, "{grown} bytes more than before");
}
