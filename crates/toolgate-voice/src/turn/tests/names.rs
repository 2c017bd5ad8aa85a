//! Remnants of a wake word in front of a request.

use std::time::Duration;

use crate::segment::Utterance;
use toolgate_core::Annotations;

use super::support::{FakeTool, FakeTranscript, ModelStep, TestPlan, utterance};

#[tokio::test(start_paused = true)]
async fn a_wake_word_remnant_is_removed_if_one_request_follows() {
    for (text, in_one_breath, expected) in [
        ("of its what time is it", true, "what time is it"),
        ("of its what time is it", false, "of its what time is it"),
        ("hey Jarvis what time is it", true, "what time is it"),
        ("don't what time is it", true, "don't what time is it"),
        ("I wonder what time is it", true, "I wonder what time is it"),
        ("of its own free will", true, "of its own free will"),
    ] {
        let clock = FakeTool::default().tool("datetime", Duration::ZERO, Annotations::READ_ONLY);
        let gateway =
            TestPlan::new([FakeTranscript::Is(text)], [ModelStep::Words("")]).by_sentences([clock]);
        let spoken = Utterance {
            in_one_breath,
            ..utterance()
        };
        gateway.transcriber.submit(spoken).unwrap();
        let turn = gateway.recorder.turn(0).await;
        assert_eq!(turn.heard, expected, "{text}");
        let is_done = expected == "what time is it";
        assert_eq!(
            turn.calls.len(),
            usize::from(is_done),
            "{text}: {}",
            turn.answer
        );
    }
}
