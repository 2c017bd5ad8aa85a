//! The speaker with a fake engine and output, in paused time. A letter sounds for 50 ms.

use std::time::Duration;

use tokio::time::{advance, sleep, timeout};

use self::fakes::{FakeEngine, FakeLoudspeaker, MS, voice};
use super::*;

mod failures;
mod fakes;

#[tokio::test(start_paused = true)]
async fn sentences_are_played_in_order_and_reported_unchanged() {
    let (speaker, engine, output) = voice();
    let speech = speaker.begin();
    for words in ["The **light** ", "is on. ", "It is 21", ".5°C. 🎉", "\n"] {
        speech.push(words);
    }
    let spoken = speech.finish().await;
    assert_eq!(spoken.text, "The **light** is on. It is 21.5°C. 🎉\n");
    assert!(spoken.complete && spoken.problem.is_none());
    let texts = ["The light is on.", "It is 21.5 degrees Celsius."];
    assert_eq!(engine.texts(), texts);
    assert_eq!(output.heard(), FakeEngine::sound_of(&texts.concat()));
}

#[tokio::test(start_paused = true)]
async fn speech_starts_while_words_still_arrive() {
    let (speaker, engine, _output) = voice();
    let began = Instant::now();
    let speech = speaker.begin();
    speech.push("The light is on. And");
    sleep(10_000 * MS).await;
    assert_eq!(engine.texts(), ["The light is on."]);
    speech.push(" now?");
    let spoken = speech.finish().await;
    assert_eq!(
        (spoken.text.as_str(), spoken.first_audio),
        ("The light is on. And now?", Some(began))
    );
}

#[tokio::test(start_paused = true)]
async fn at_most_one_sentence_is_prepared_ahead() {
    let (speaker, engine, _output) = voice();
    let speech = speaker.begin();
    speech
        .push("The first sentence. The second sentence. The third sentence. The fourth sentence.");
    speech.flush();
    sleep(100 * MS).await;
    assert_eq!(
        engine.texts(),
        ["The first sentence.", "The second sentence."]
    );
    sleep(1000 * MS).await;
    assert_eq!(engine.texts().len(), 3);
    assert!(speech.finish().await.complete);
}

#[tokio::test(start_paused = true)]
async fn stop_silences_at_once_and_reports_the_heard_words() {
    // Each sentence, such as "One is on.", lasts half a second.
    let text = "One is on. Two is on. Six is on. ";
    for (after, expected) in [
        (0, ""),
        (1, ""),
        (170, "One"),
        (330, "One is"),
        (501, "One is on. "),
        (999, "One is on. Two is"),
        (1010, "One is on. Two is on. "),
        (1400, "One is on. Two is on. Six is"),
        (9000, text),
    ] {
        let (speaker, _engine, output) = voice();
        let speech = speaker.begin();
        speech.push(text);
        speech.flush();
        sleep(after * MS).await;
        let stopped = Instant::now();
        speaker.stop();
        speech.push("Never said. ");
        let spoken = speech.finish().await;
        assert_eq!(
            (spoken.text.as_str(), spoken.complete),
            (expected, false),
            "{after}"
        );
        assert!(
            stopped.elapsed() <= 150 * MS,
            "{after}: {:?}",
            stopped.elapsed()
        );
        assert_eq!((output.is_open(), spoken.problem), (false, None));
        let given = output.heard().len();
        sleep(5000 * MS).await;
        assert_eq!(output.heard().len(), given, "nothing sounds after a stop");
    }
}

#[tokio::test(start_paused = true)]
async fn output_that_does_not_stop_is_dropped_in_time() {
    let (speaker, _engine, output) = voice();
    output.hang_on_stop();
    let speech = speaker.begin();
    speech.push("The light is on. And so on.");
    sleep(200 * MS).await;
    let stopped = Instant::now();
    speaker.stop();
    assert_eq!(speech.finish().await.text, "The");
    assert!(stopped.elapsed() <= 150 * MS && !output.is_open());
}

#[tokio::test(start_paused = true)]
async fn hanging_engine_does_not_delay_a_stop() {
    let (speaker, engine, _output) = voice();
    engine.hang();
    let speech = speaker.begin();
    speech.push("The light is on. ");
    speech.flush();
    sleep(1000 * MS).await;
    speaker.stop();
    let spoken = timeout(150 * MS, speech.finish()).await.unwrap();
    assert_eq!((spoken.text.as_str(), spoken.first_audio), ("", None));
}

#[tokio::test(start_paused = true)]
async fn new_speech_stops_the_previous_one_without_overlap() {
    let (speaker, _engine, output) = voice();
    let first = speaker.begin();
    first.push("The first is long enough to go on. ");
    first.flush();
    sleep(100 * MS).await;
    let second = speaker.clone().begin();
    second.push("The second.");
    let second = second.finish().await;
    assert!(second.complete && second.text == "The second.");
    assert!(!first.finish().await.complete);
    assert_eq!(output.most_at_once(), 1);
}

#[tokio::test(start_paused = true)]
async fn dropped_speech_falls_silent() {
    let (speaker, _engine, output) = voice();
    let speech = speaker.begin();
    speech.push("The light is on. ");
    speech.flush();
    sleep(100 * MS).await;
    assert!(output.is_open());
    drop(speech);
    sleep(150 * MS).await;
    assert!(!output.is_open());

    let speech = speaker.begin();
    speech.push("The light is on. ");
    assert!(
        timeout(100 * MS, speech.finish()).await.is_err(),
        "the caller went away"
    );
    sleep(150 * MS).await;
    assert!(!output.is_open());
}

#[tokio::test(start_paused = true)]
async fn muted_speech_skips_the_engine_but_counts_as_said() {
    for silence in [
        |volume: &VoiceVolume| volume.mute(true),
        |volume: &VoiceVolume| volume.set(0),
    ] {
        let (speaker, engine, output) = voice();
        silence(&output.volume);
        let speech = speaker.begin();
        speech.push("The sound is muted. It is so.");
        let spoken = speech.finish().await;
        assert_eq!(
            (spoken.text.as_str(), spoken.complete),
            ("The sound is muted. It is so.", true)
        );
        assert_eq!(spoken.first_audio, None);
        speaker.play_tone(SignalTone::Wake);
        sleep(1000 * MS).await;
        assert!(engine.texts().is_empty() && output.heard().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn volume_change_is_heard_within_the_sentence() {
    let (speaker, _engine, output) = voice();
    let speech = speaker.begin();
    speech.push("The light in the kitchen is on. ");
    speech.flush();
    sleep(500 * MS).await;
    output.volume.mute(true);
    sleep(500 * MS).await;
    output.volume.mute(false);
    output.volume.set(50);
    assert!(speech.finish().await.complete);
    let loudest = |from: usize, to: usize| {
        let heard = output.heard();
        let samples = heard[from * 32..to * 32].chunks_exact(2);
        samples
            .map(|pair| i16::from_le_bytes([pair[0], pair[1]]))
            .max()
            .unwrap()
    };
    assert_eq!(loudest(0, 400), 8000);
    assert_eq!(loudest(700, 950), 0);
    assert_eq!(
        loudest(1300, 1500),
        1000,
        "half the volume is an eighth of the samples"
    );
}

#[tokio::test(start_paused = true)]
async fn words_of_a_round_can_be_taken_back_until_the_engine_has_them() {
    let (speaker, engine, _output) = voice();
    let speech = speaker.begin();
    speech.push("Let me look. ");
    speech.push("One moment. ");
    speech.flush();
    speech.push("The first try. The second part. The third par");
    speech.script().take_back();
    speech.push("The light is on.");
    let spoken = speech.finish().await;
    assert_eq!(spoken.text, "Let me look. One moment. The light is on.");
    assert_eq!(
        engine.texts(),
        ["Let me look.", "One moment.", "The light is on."]
    );
}

#[tokio::test(start_paused = true)]
async fn unspeakable_parts_are_skipped_in_place() {
    let (speaker, engine, _output) = voice();
    let speech = speaker.begin();
    let text = "Do this:\n```sh\nrm -rf /\n```\n---\n🎉\nThen it works.";
    speech.push(text);
    assert_eq!(speech.finish().await.text, text);
    assert_eq!(engine.texts(), ["Do this:", "Then it works."]);

    let speech = speaker.begin();
    let nothing = speech.finish().await;
    assert!(nothing.complete && nothing.text.is_empty());
    assert!(nothing.first_audio.is_none());
}

#[tokio::test(start_paused = true)]
async fn endless_answer_is_cut_and_marked_incomplete() {
    let (speaker, _engine, output) = voice();
    output.volume.mute(true);
    let speech = speaker.begin();
    speech.push(&"A sentence. ".repeat(100_000));
    let spoken = speech.finish().await;
    assert!(!spoken.complete && spoken.text.len() <= 64 << 10);
}

#[tokio::test(start_paused = true)]
async fn tone_never_plays_over_words() {
    let (speaker, _engine, output) = voice();
    speaker.play_tone(SignalTone::Wake);
    sleep(1000 * MS).await;
    assert_eq!(output.heard(), SignalTone::Wake.sound().bytes);
    output.forget();

    let speech = speaker.begin();
    speech.push("The light is on. ");
    speech.flush();
    sleep(100 * MS).await;
    speaker.play_tone(SignalTone::Working);
    sleep(3000 * MS).await;
    assert_eq!(output.heard(), FakeEngine::sound_of("The light is on."));

    // The speech is silent for a while, because a tool takes its time.
    speaker.play_tone(SignalTone::Working);
    sleep(1000 * MS).await;
    assert!(output.heard().ends_with(&SignalTone::Working.sound().bytes));
    speech.push("Done.");
    assert!(speech.finish().await.complete);
    assert_eq!(output.most_at_once(), 1);
}

#[tokio::test(start_paused = true)]
async fn tone_waits_for_stopping_speech() {
    let (speaker, _engine, output) = voice();
    output.hang_on_stop();
    let speech = speaker.begin();
    speech.push("The light in the kitchen is on. ");
    speech.flush();
    sleep(500 * MS).await;
    speaker.stop();
    speaker.play_tone(SignalTone::Wake);
    sleep(1000 * MS).await;
    assert!(output.heard().ends_with(&SignalTone::Wake.sound().bytes));
    assert_eq!(output.most_at_once(), 1);
    // A tone doesn't wait for a long speech.
    let speech = speaker.begin();
    speech.push("The light in the kitchen is on. ");
    speech.flush();
    sleep(100 * MS).await;
    output.forget();
    speaker.play_tone(SignalTone::Wake);
    assert!(speech.finish().await.complete);
    sleep(1000 * MS).await;
    assert!(!output.heard().ends_with(&SignalTone::Wake.sound().bytes));
}

#[tokio::test(start_paused = true)]
async fn tone_is_sounding_only_while_it_plays() {
    let (speaker, _engine, output) = voice();
    speaker.play_tone(SignalTone::Wake);
    for (after, sounds) in [(100, true), (100, false)] {
        sleep(after * MS).await;
        assert_eq!(speaker.is_tone_sounding(), sounds);
    }
    let speech = speaker.begin();
    speech.push("The light is on. ");
    speech.flush();
    sleep(100 * MS).await;
    assert!(
        output.is_open() && !speaker.is_tone_sounding(),
        "these are words"
    );
    drop(speech);
    sleep(100 * MS).await;
    output.hang_on_begin();
    speaker.play_tone(SignalTone::Wake);
    for (after, sounds) in [(500, true), (600, false)] {
        sleep(after * MS).await;
        assert_eq!(speaker.is_tone_sounding(), sounds, "a player that hangs");
    }
}

#[tokio::test(start_paused = true)]
async fn stop_ends_a_tone() {
    let (speaker, _engine, output) = voice();
    speaker.play_tone(SignalTone::Error);
    advance(Duration::ZERO).await;
    sleep(20 * MS).await;
    assert!(output.is_open());
    speaker.stop();
    sleep(10 * MS).await;
    assert!(!output.is_open());
}

#[test]
fn fakes_agree_on_the_length_of_a_letter() {
    assert_eq!(
        FakeEngine::sound_of("ab").len(),
        2 * 50 * FakeLoudspeaker::BYTES_PER_MS
    );
}

#[tokio::test(start_paused = true)]
async fn announcement_ends_only_by_stop() {
    let (speaker, _engine, _output) = voice();
    let announcing = |words: &'static str| {
        let speaker = speaker.clone();
        tokio::spawn(async move { speaker.announce(words).await })
    };
    let announcement = announcing("The smart home is away.");
    sleep(100 * MS).await;
    // Neither a tone nor another announcement cuts it off.
    speaker.play_tone(SignalTone::Working);
    let next = announcing("It is back.");
    assert!(announcement.await.unwrap().complete);
    assert!(next.await.unwrap().complete);
    let stopped = [announcing("One."), announcing("Two.")];
    sleep(10 * MS).await;
    speaker.stop();
    for announcement in stopped {
        assert!(!announcement.await.unwrap().complete);
    }
    assert!(speaker.announce("Three.").await.complete, "silence is over");
}
