//! What is left of a wake word in front of a request.

use std::time::Duration;

use crate::listen::Utterance;
use toolgate_core::Annotations;

use super::support::{Plan, Say, Text, Work, utterance};

#[tokio::test(start_paused = true)]
async fn what_is_left_of_a_name_is_taken_off_if_one_request_fits_behind_it() {
    for (text, in_one_breath, expected) in [
        ("of its what time is it", true, "what time is it"),
        ("of its what time is it", false, "of its what time is it"),
        ("hey Jarvis what time is it", true, "what time is it"),
        ("don't what time is it", true, "don't what time is it"),
        ("I wonder what time is it", true, "I wonder what time is it"),
        ("of its own accord", true, "of its own accord"),
    ] {
        let clock = Work::default().tool("datetime", Duration::ZERO, Annotations::READ_ONLY);
        let house = Plan::new([Text::Is(text)], [Say::Words("")]).by_sentences([clock]);
        let spoken = Utterance {
            in_one_breath,
            ..utterance()
        };
        house.ears.hear(spoken).unwrap();
        let turn = house.watch.turn(0).await;
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
