//! Engines and outputs that fail in the middle.

use tokio::time::{Instant, sleep};

use super::fakes::{Engine, Fault, MS, broken, voice};
use crate::engine::Problem;

const TEXT: &str = "The first is on. The second is off. The third too.";

#[tokio::test(start_paused = true)]
async fn an_engine_that_fails_once_is_asked_again_and_nobody_is_bothered() {
    for (fault, prefix) in [
        (Fault::Refuse, 0),
        (Fault::After(0), 0),
        (Fault::After(4), 4),
        (Fault::Mad, 0),
    ] {
        let (speaker, engine, ear) = voice();
        engine.fail([Fault::None, fault]);
        let speech = speaker.begin();
        speech.push(TEXT);
        let spoken = speech.finish().await;
        assert_eq!(
            (spoken.text.as_str(), spoken.complete, spoken.problem),
            (TEXT, true, None),
            "{fault:?}"
        );
        // The sentence that broke off is said again from its beginning.
        let expected = "The first is on.".len() + prefix + "The second is off.The third too.".len();
        assert_eq!(
            ear.heard().len(),
            Engine::sound_of("x").len() * expected,
            "{fault:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_fails_again_ends_the_speech_with_the_reason() {
    for (faults, text) in [
        ([Fault::Refuse, Fault::Refuse, Fault::None], ""),
        (
            [Fault::None, Fault::Refuse, Fault::Refuse],
            "The first is on. ",
        ),
        (
            [Fault::None, Fault::Refuse, Fault::After(4)],
            "The first is on. The second is off. ",
        ),
    ] {
        let (speaker, engine, ear) = voice();
        engine.fail(faults);
        let speech = speaker.begin();
        speech.push(TEXT);
        let spoken = speech.finish().await;
        assert_eq!(
            (spoken.text.as_str(), spoken.complete),
            (text, false),
            "{faults:?}"
        );
        assert_eq!(spoken.problem, Some(Problem::of_speech(broken())));
        assert!(!ear.is_open());

        let speech = speaker.begin();
        speech.push("Back again.");
        assert!(
            speech.finish().await.complete,
            "the next speech finds the engine as it is"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_gone_mad_is_given_up() {
    for (fault, expected) in [
        (
            Fault::Mad,
            "the speech engine: sound at 3 Hz cannot be used: it must be from 8000 to 192000 Hz",
        ),
        (
            Fault::Endless,
            "the speech engine: a sentence takes more than two minutes",
        ),
    ] {
        let (speaker, engine, _ear) = voice();
        engine.fail([fault, fault]);
        let speech = speaker.begin();
        speech.push("The light is on.");
        let spoken = speech.finish().await;
        assert_eq!(spoken.problem.unwrap().to_string(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_sentence_without_sound_is_passed_over() {
    let (speaker, engine, _ear) = voice();
    engine.fail([Fault::Silent, Fault::None, Fault::Silent]);
    let speech = speaker.begin();
    speech.push(TEXT);
    let spoken = speech.finish().await;
    assert_eq!((spoken.text.as_str(), spoken.complete), (TEXT, true));
}

#[tokio::test(start_paused = true)]
async fn an_output_that_breaks_is_opened_again_and_neither_words_nor_slices_are_lost() {
    // Before the first slice, within the first sentence, with the second, within it.
    for slices in [0, 5, 20, 25] {
        let (speaker, _engine, ear) = voice();
        ear.break_after([slices]);
        let speech = speaker.begin();
        speech.push(TEXT);
        let spoken = speech.finish().await;
        assert_eq!(
            (spoken.text.as_str(), spoken.complete, spoken.problem),
            (TEXT, true, None),
            "{slices}"
        );
        assert_eq!((ear.begun(), ear.most_at_once()), (2, 1));
        let letters = "The first is on.The second is off.The third too.";
        assert_eq!(ear.heard(), Engine::sound_of(letters), "{slices}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_output_that_breaks_again_ends_the_speech_with_what_was_heard() {
    let (speaker, _engine, ear) = voice();
    ear.break_after([5, 5]);
    let speech = speaker.begin();
    speech.push(TEXT);
    let spoken = speech.finish().await;
    assert_eq!(
        (spoken.text.as_str(), spoken.complete),
        ("The first is on. ", false)
    );
    assert_eq!(spoken.problem, Some(Problem::of_loudspeaker(broken())));
}

#[tokio::test(start_paused = true)]
async fn an_output_that_cannot_be_opened_is_a_problem_and_a_tone_is_none() {
    let (speaker, _engine, ear) = voice();
    ear.refuse(1);
    let speech = speaker.begin();
    speech.push(TEXT);
    let spoken = speech.finish().await;
    let problem = Some(Problem::of_loudspeaker(broken()));
    assert_eq!((spoken.text.as_str(), spoken.problem), ("", problem));
    ear.refuse(1);
    speaker.tone(super::Tone::Ready);
    sleep(10 * MS).await;
    assert!(!ear.is_open());
}

#[tokio::test(start_paused = true)]
async fn an_output_is_let_go_while_nothing_comes() {
    let (speaker, _engine, ear) = voice();
    let speech = speaker.begin();
    speech.push("Let me look. ");
    speech.flush();
    sleep(2000 * MS).await;
    assert!(!ear.is_open());
    let began = Instant::now();
    speech.push("It is on.");
    let spoken = speech.finish().await;
    assert_eq!(
        (spoken.text.as_str(), ear.begun()),
        ("Let me look. It is on.", 2)
    );
    assert!(began.elapsed() < 700 * MS);
}
