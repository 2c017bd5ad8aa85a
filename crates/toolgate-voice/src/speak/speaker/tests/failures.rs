//! Engines and outputs that fail in the middle.

use tokio::time::{Instant, sleep};

use super::fakes::{EngineFault, FakeEngine, MS, broken, voice};
use crate::engine::SpeakingError;

const TEXT: &str = "The first is on. The second is off. The third too.";

#[tokio::test(start_paused = true)]
async fn single_engine_failure_is_retried_silently() {
    for (fault, prefix) in [
        (EngineFault::Refuse, 0),
        (EngineFault::After(0), 0),
        (EngineFault::After(4), 4),
        (EngineFault::Mad, 0),
    ] {
        let (speaker, engine, output) = voice();
        engine.fail([EngineFault::None, fault]);
        let speech = speaker.begin();
        speech.push(TEXT);
        let spoken = speech.finish().await;
        assert_eq!(
            (spoken.text.as_str(), spoken.complete, spoken.problem),
            (TEXT, true, None),
            "{fault:?}"
        );
        // The interrupted sentence is spoken again from its start.
        let expected = "The first is on.".len() + prefix + "The second is off.The third too.".len();
        assert_eq!(
            output.heard().len(),
            FakeEngine::sound_of("x").len() * expected,
            "{fault:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn second_engine_failure_ends_the_speech_with_its_reason() {
    for (faults, text) in [
        (
            [EngineFault::Refuse, EngineFault::Refuse, EngineFault::None],
            "",
        ),
        (
            [EngineFault::None, EngineFault::Refuse, EngineFault::Refuse],
            "The first is on. ",
        ),
        (
            [
                EngineFault::None,
                EngineFault::Refuse,
                EngineFault::After(4),
            ],
            "The first is on. The second is off. ",
        ),
    ] {
        let (speaker, engine, output) = voice();
        engine.fail(faults);
        let speech = speaker.begin();
        speech.push(TEXT);
        let spoken = speech.finish().await;
        assert_eq!(
            (spoken.text.as_str(), spoken.complete),
            (text, false),
            "{faults:?}"
        );
        assert_eq!(
            spoken.problem,
            Some(SpeakingError::from_synthesizer(broken()))
        );
        assert!(!output.is_open());

        let speech = speaker.begin();
        speech.push("Back again.");
        assert!(
            speech.finish().await.complete,
            "the next speech finds the engine as it is"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn engine_with_endless_sound_is_stopped() {
    for (fault, expected) in [
        (
            EngineFault::Mad,
            "the speech engine: sound at 3 Hz cannot be used: it must be from 8000 to 192000 Hz",
        ),
        (
            EngineFault::Endless,
            "the speech engine: a sentence takes more than two minutes",
        ),
    ] {
        let (speaker, engine, _output) = voice();
        engine.fail([fault, fault]);
        let speech = speaker.begin();
        speech.push("The light is on.");
        let spoken = speech.finish().await;
        assert_eq!(spoken.problem.unwrap().to_string(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn sentence_without_sound_is_skipped() {
    let (speaker, engine, _output) = voice();
    engine.fail([EngineFault::Silent, EngineFault::None, EngineFault::Silent]);
    let speech = speaker.begin();
    speech.push(TEXT);
    let spoken = speech.finish().await;
    assert_eq!((spoken.text.as_str(), spoken.complete), (TEXT, true));
}

#[tokio::test(start_paused = true)]
async fn a_broken_output_is_reopened_without_losing_sound() {
    // Before the first slice, within the first sentence, with the second, within it.
    for slices in [0, 5, 20, 25] {
        let (speaker, _engine, output) = voice();
        output.break_after([slices]);
        let speech = speaker.begin();
        speech.push(TEXT);
        let spoken = speech.finish().await;
        assert_eq!(
            (spoken.text.as_str(), spoken.complete, spoken.problem),
            (TEXT, true, None),
            "{slices}"
        );
        assert_eq!((output.begun(), output.most_at_once()), (2, 1));
        let letters = "The first is on.The second is off.The third too.";
        assert_eq!(output.heard(), FakeEngine::sound_of(letters), "{slices}");
    }
}

#[tokio::test(start_paused = true)]
async fn second_output_failure_ends_the_speech_with_the_heard_words() {
    let (speaker, _engine, output) = voice();
    output.break_after([5, 5]);
    let speech = speaker.begin();
    speech.push(TEXT);
    let spoken = speech.finish().await;
    assert_eq!(
        (spoken.text.as_str(), spoken.complete),
        ("The first is on. ", false)
    );
    assert_eq!(spoken.problem, Some(SpeakingError::from_output(broken())));
}

#[tokio::test(start_paused = true)]
async fn an_output_that_cannot_be_opened_is_reported_except_for_tones() {
    let (speaker, _engine, output) = voice();
    output.refuse(1);
    let speech = speaker.begin();
    speech.push(TEXT);
    let spoken = speech.finish().await;
    let problem = Some(SpeakingError::from_output(broken()));
    assert_eq!((spoken.text.as_str(), spoken.problem), ("", problem));
    output.refuse(1);
    speaker.play_tone(super::SignalTone::Ready);
    sleep(10 * MS).await;
    assert!(!output.is_open());
}

#[tokio::test(start_paused = true)]
async fn idle_output_is_closed() {
    let (speaker, _engine, output) = voice();
    let speech = speaker.begin();
    speech.push("Let me look. ");
    speech.flush();
    sleep(2000 * MS).await;
    assert!(!output.is_open());
    let began = Instant::now();
    speech.push("It is on.");
    let spoken = speech.finish().await;
    assert_eq!(
        (spoken.text.as_str(), output.begun()),
        ("Let me look. It is on.", 2)
    );
    assert!(began.elapsed() < 700 * MS);
}
