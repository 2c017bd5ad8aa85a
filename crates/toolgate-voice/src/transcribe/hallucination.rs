//! Detects text that speech-to-text engines invent for silence. They learned from subtitles, which
//! thank viewers where a film is silent.

use std::time::Duration;

use super::sound_check::SoundMeasurement;
use super::transcript::{is_phrase, words};
use crate::segment::Utterance;

const SUBTITLES: &str = include_str!("phrases/subtitles.txt");
const FILL: &str = include_str!("phrases/fill.txt");
// People say these too, so the sound decides whether they are real.
const POLITE: &str = include_str!("phrases/polite.txt");
/// A real "thank you" lasts at least this long and is at least this loud.
const POLITE_VOICE: Duration = Duration::from_millis(240);
const POLITE_LOUDNESS: f32 = 0.004;
// Words per second. Nobody speaks faster, so the engine made some up.
const MAX_WORDS_PER_SECOND: f64 = 9.0;
const MAX_PHRASE_WORDS: usize = 12;

pub(crate) fn is_hallucination(text: &str, utterance: &Utterance) -> bool {
    let words = words(&without_remarks(text));
    let said = words.join(" ");
    let sound = SoundMeasurement::measure(&utterance.samples);
    words.is_empty()
        || is_phrase(FILL, &said)
        || SUBTITLES.lines().any(|known| said.starts_with(known))
        || said.contains("amara org")
        || words.len() as f64 > 2.0 + MAX_WORDS_PER_SECOND * sound.length.as_secs_f64()
        || is_stutter(&words)
        || is_phrase(POLITE, &said)
            && (sound.voiced < POLITE_VOICE || sound.loudest < POLITE_LOUDNESS)
}

/// Removes text in brackets, and between asterisks or notes: `[BLANK_AUDIO]`, `(door closes)`,
/// `*coughs*`, `♪ la la ♪`.
fn without_remarks(text: &str) -> String {
    let mut rest = String::new();
    let mut until = None;
    for letter in text.chars() {
        match (until, letter) {
            (Some(end), _) if letter == end => until = None,
            (Some(_), _) => {}
            (None, '[') => until = Some(']'),
            (None, '(') => until = Some(')'),
            (None, '*' | '♪' | '♫') => until = Some(letter),
            (None, _) => rest.push(letter),
        }
    }
    rest
}

/// True if a phrase is repeated four times and there is nothing else. Numbers may repeat:
/// `1 1 1 1` is a request.
fn is_stutter(words: &[String]) -> bool {
    const TIMES: usize = 4;
    let is_number = |word: &String| word.starts_with(|letter: char| letter.is_ascii_digit());
    (1..=MAX_PHRASE_WORDS.min(words.len() / TIMES)).any(|length| {
        let (phrase, rest) = words.split_at(length);
        let again = rest.chunks(length);
        // The last repetition may be cut off.
        let mut again = again.map(|words| phrase.starts_with(words));
        again.all(|same| same) && !phrase.iter().all(is_number)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::Instant;

    use super::*;

    /// Sound of this many seconds: silence with a voice of this many milliseconds in the middle.
    fn utterance(seconds: usize, voice: usize, loudness: i16) -> Utterance {
        let mut samples = vec![2_i16; seconds * 16_000];
        samples[8_000..8_000 + voice * 16].fill(loudness);
        let now = Instant::now();
        Utterance {
            samples: Arc::from(samples),
            began: now,
            wake_word: None,
            in_one_breath: false,
            ended: now,
            room: None,
        }
    }

    #[test]
    fn hallucinations_are_distinguished_from_speech() {
        let speech = utterance(3, 1500, 4000);
        for (text, expected) in [
            ("", true),
            (" . ", true),
            ("[BLANK_AUDIO]", true),
            ("(music)", true),
            ("[ Silence ] (door closes)", true),
            ("*coughs*", true),
            ("♪ la la la ♪", true),
            ("[unclosed", true),
            ("Thanks for watching!", true),
            ("Thank you for watching. Bye!", true),
            ("Subtitles by the Amara.org community", true),
            ("Don’t forget to subscribe", true),
            ("you", true),
            ("Hmm.", true),
            ("turn turn turn turn", true),
            ("I'm sorry. I'm sorry. I'm sorry. I'm sorry.", true),
            ("the light the light the light the light the", true),
            ("Thank you.", false),
            ("Okay.", false),
            ("(clears throat) turn on the light", false),
            ("no no no", false),
            ("1 1 1 1", false),
            ("turn on switch one", false),
            ("thank the neighbours for watching the dog", false),
            ("the light the light", false),
            ("so what is the time", false),
        ] {
            assert_eq!(is_hallucination(text, &speech), expected, "{text}");
        }
    }

    #[test]
    fn polite_phrases_count_only_with_enough_voice() {
        for (voice, loudness, expected) in [
            (1500, 4000, false),
            (400, 4000, false),
            (100, 4000, true),
            (1500, 100, true),
            (0, 0, true),
        ] {
            let sound = utterance(3, voice, loudness);
            let found = is_hallucination("Thank you.", &sound);
            assert_eq!(found, expected, "{voice} ms at {loudness}");
            assert!(!is_hallucination("What time is it?", &sound));
        }
    }

    #[test]
    fn transcript_faster_than_speech_is_a_hallucination() {
        let text =
            "what is the weather like in paris and in london and in rome and in berlin this week";
        assert!(!is_hallucination(text, &utterance(3, 2000, 4000)));
        let text = format!("{text} {text}");
        assert!(is_hallucination(&text, &utterance(2, 800, 4000)));
    }
}
