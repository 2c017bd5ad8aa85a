//! Normalizes transcripts and compares words.

use toolgate_core::text::{fold_char, is_invisible};

/// Longer requests are cut, in bytes. This is two minutes of speech.
const MAX_TRANSCRIPT_BYTES: usize = 2000;
// Phrases that stop everything if nothing else is said, as `words` folds them.
const CANCEL: &str = include_str!("phrases/cancel.txt");
// Only a clear yes counts. `okay` is not one, because engines write it for silence.
const YES: &str = include_str!("phrases/yes.txt");
const NO: &str = include_str!("phrases/no.txt");
const POLITE: [&str; 7] = ["please", "ok", "okay", "oh", "no", "just", "hey"];

/// Cleans up a transcript: no surrounding blanks, invisible characters, final dot or all-caps.
/// Numbers stay, because names are compared with and without digits later.
pub(crate) fn tidy_transcript(transcript: &str) -> String {
    let letters = transcript
        .chars()
        .map(|letter| if letter.is_whitespace() { ' ' } else { letter });
    let shown = letters.filter(|letter| !letter.is_control() && !is_invisible(*letter));
    let shown: String = shown.take(MAX_TRANSCRIPT_BYTES).collect();
    let mut text = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    text.truncate(text.floor_char_boundary(MAX_TRANSCRIPT_BYTES));
    let end = text.trim_end_matches(['.', '…', ' ', ',', '-']).len();
    text.truncate(end);
    let has_words = text.contains(' ');
    if has_words && text.contains(char::is_uppercase) && !text.contains(char::is_lowercase) {
        text = text.to_lowercase();
    }
    text
}

/// Removes the wake word if the transcript starts with it. Engines name it `hey_jarvis` or
/// `hey_jarvis_v0.1`. With `in_one_breath`, the sound may contain all of the word or only its end,
/// in any spelling, possibly after unrelated words.
pub(crate) fn without_wake_word<'a>(
    text: &'a str,
    wake_word: &str,
    in_one_breath: bool,
) -> &'a str {
    let name = wake_word_words(wake_word);
    let Some(last) = name.last() else {
        return text;
    };
    let said = words_with_rest(text);
    let is_name = |from: &usize| {
        let here = said.iter().skip(*from).map(|(word, _)| word);
        here.take(name.len()).eq(&name)
    };
    let end = if in_one_breath {
        let exact = (0..said.len()).rev().find(is_name);
        let exact = exact.map(|from| from + name.len());
        // It may be misheard, "hey, Travis", or cut: "Vis, turn it on".
        let first = said.iter().take(name.len() + 1);
        let almost = |(word, _): &(String, &str)| {
            let is_end = word.len() >= 3 && last.ends_with(word);
            is_end || strsim::osa_distance(word, last) <= last.chars().count().div_ceil(3)
        };
        exact.or_else(|| Some(first.clone().position(almost)? + 1))
    } else {
        is_name(&0).then_some(name.len())
    };
    let rest = end.map(|end| said[end - 1].1.trim_start_matches(is_separator));
    rest.unwrap_or(text)
}

pub(super) fn wake_word_words(wake_word: &str) -> Vec<String> {
    let is_version = |word: &&str| {
        let number = word.strip_prefix('v').unwrap_or(word);
        number.starts_with(|letter: char| letter.is_ascii_digit())
    };
    let name = wake_word
        .split(is_separator)
        .filter(|word| !word.is_empty());
    let name: Vec<&str> = name.take_while(|word| !is_version(word)).collect();
    words(&name.join(" "))
}

/// The folded words of a text, each with the text after it.
pub(super) fn words_with_rest(text: &str) -> Vec<(String, &str)> {
    let mut said = Vec::new();
    let mut rest = text.trim_start_matches(is_separator);
    while !rest.is_empty() {
        let end = rest.find(is_separator).unwrap_or(rest.len());
        said.push((words(&rest[..end]).concat(), &rest[end..]));
        rest = rest[end..].trim_start_matches(is_separator);
    }
    said
}

pub(super) fn is_separator(letter: char) -> bool {
    !letter.is_alphanumeric()
}

pub(super) fn words(text: &str) -> Vec<String> {
    let is_separator = |letter: char| !letter.is_alphanumeric() && !is_silent(letter);
    let words = text.split(is_separator).map(|word| {
        let mut folded = String::new();
        let letters = word.chars().filter(|letter| !is_silent(*letter));
        letters.for_each(|letter| fold_char(letter, &mut folded));
        folded
    });
    words.filter(|word| !word.is_empty()).collect()
}

fn is_silent(letter: char) -> bool {
    matches!(
        letter,
        '\'' | '\u{2019}' | '\u{2bc}' | '\u{300}'..='\u{36f}'
    )
}

pub(super) fn is_phrase(phrases: &str, text: &str) -> bool {
    phrases.lines().any(|known| known == text)
}

pub(crate) fn is_yes(text: &str) -> bool {
    is_phrase(YES, &words(text).join(" "))
}

pub(crate) fn is_no(text: &str) -> bool {
    is_phrase(NO, &words(text).join(" "))
}

pub(crate) fn is_cancel(text: &str) -> bool {
    let words = words(text);
    let is_polite = |word: &String| POLITE.contains(&word.as_str());
    let from = words.iter().take_while(|word| is_polite(word)).count();
    let polite = words[from..].iter().rev();
    let to = words.len() - polite.take_while(|word| is_polite(word)).count();
    let said = &words[from..to];
    // People repeat themselves when they aren't heard: "stop, stop!"
    let once = said.chunk_by(|one, other| one == other);
    let once: Vec<&str> = once.map(|same| same[0].as_str()).collect();
    is_phrase(CANCEL, &once.join(" "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_transcript_becomes_a_sentence() {
        for (transcript, expected) in [
            ("", ""),
            (" \n.", ""),
            (" Turn on switch one.", "Turn on switch one"),
            ("turn on\u{200b} the\tlight...", "turn on the light"),
            ("It is 21.5 degrees.", "It is 21.5 degrees"),
            ("TURN ON SWITCH ONE", "turn on switch one"),
            ("OK", "OK"),
            ("Was ist das?", "Was ist das?"),
            ("Stop!", "Stop!"),
            ("a\u{1b}[31mb\u{202e}c", "a[31mbc"),
            ("日本語。", "日本語。"),
        ] {
            assert_eq!(tidy_transcript(transcript), expected, "{transcript:?}");
        }
        assert!(tidy_transcript(&"wörter ".repeat(1000)).len() <= MAX_TRANSCRIPT_BYTES);
    }

    #[test]
    fn wake_word_is_not_part_of_the_request() {
        for (text, wake_word, expected) in [
            ("Hey Jarvis, turn it on.", "hey_jarvis", "turn it on."),
            (" hey jarvis turn it on", "hey_jarvis_v0.1", "turn it on"),
            ("Okay, Nabu! Stop.", "okay nabu", "Stop."),
            ("Hey, Jarvis!", "hey_jarvis", ""),
            ("Jarvis is a butler", "hey_jarvis", "Jarvis is a butler"),
            ("Hey Jarvisson", "hey_jarvis", "Hey Jarvisson"),
            ("turn off the computer", "computer", "turn off the computer"),
            ("-5 degrees", "", "-5 degrees"),
        ] {
            let heard = without_wake_word(text, wake_word, false);
            assert_eq!(heard, expected, "{text}");
        }
    }

    #[test]
    fn a_wake_word_in_one_breath_is_removed_in_any_spelling() {
        for (text, wake_word, expected) in [
            ("Hey Jarvis turn it on.", "hey_jarvis_v0.1", "turn it on."),
            ("Hey, Travis, turn it on.", "hey_jarvis", "turn it on."),
            ("A Jarvis turn it on", "hey_jarvis", "turn it on"),
            ("Vis, turn it on", "hey_jarvis", "turn it on"),
            ("OK, Nabu, stop", "okay nabu", "stop"),
            ("the news at nine, hey Jarvis stop", "hey_jarvis", "stop"),
            (
                "Turn off the computer",
                "hey_jarvis",
                "Turn off the computer",
            ),
            ("Hey Jarvis", "hey_jarvis", ""),
            ("", "hey_jarvis", ""),
            ("Stop.", "", "Stop."),
        ] {
            let heard = without_wake_word(text, wake_word, true);
            assert_eq!(heard, expected, "{text}");
        }
    }

    #[test]
    fn only_a_request_to_stop_stops() {
        for said in [
            "stop",
            "Stop!",
            "Stop. Stop!",
            "Never mind.",
            "Oh, never mind",
            "cancel that, please",
            "OK stop please",
            "That’s enough.",
            "No, stop",
        ] {
            assert!(is_cancel(said), "{said}");
        }
        for said in [
            "",
            "please",
            "stop the music",
            "cancel the alarm",
            "when does the bus stop",
            "don't stop",
            "no",
            "never",
            "turn off the light",
        ] {
            assert!(!is_cancel(said), "{said}");
        }
    }

    #[test]
    fn only_clear_words_count_as_yes_or_no() {
        for said in ["yes", "Yes.", "Yes, please!", "yeah", "Yes, go ahead."] {
            assert!(is_yes(said) && !is_no(said), "{said}");
        }
        for said in ["no", "No, thanks.", "No, don't!", "Nope"] {
            assert!(is_no(said) && !is_yes(said), "{said}");
        }
        for said in [
            "",
            "okay",
            "yesterday",
            "yes or no",
            "yes but not now",
            "no idea",
            "sure thing",
        ] {
            assert!(!is_yes(said) && !is_no(said), "{said}");
        }
    }

    proptest! {
        #[test]
        fn tidying_is_idempotent(transcript in ".{0,300}") {
            let once = tidy_transcript(&transcript);
            prop_assert_eq!(tidy_transcript(&once), once.clone());
            prop_assert!(!once.contains(char::is_control));
            is_cancel(&transcript);
        }
    }
}
