//! Words as they are told and compared, however an engine writes them.

use toolgate_core::{fold, is_unseen};

/// Longer requests are cut, in bytes: two minutes of speech.
const LONGEST: usize = 2000;

/// What stops everything, if nothing else is said. Sorted by how it is said, not by letter.
const CANCEL: [&str; 22] = [
    "stop",
    "stop it",
    "stop that",
    "stop talking",
    "stop now",
    "cancel",
    "cancel that",
    "cancel it",
    "never mind",
    "nevermind",
    "forget it",
    "forget that",
    "forget about it",
    "be quiet",
    "quiet",
    "silence",
    "shut up",
    "hush",
    "shush",
    "enough",
    "thats enough",
    "abort",
];

/// Said around it.
const POLITE: [&str; 7] = ["please", "ok", "okay", "oh", "no", "just", "hey"];

/// A transcript as a sentence: without blanks around it, unseen characters and a final dot; not in capitals only. Numbers are left
/// as they are: names are compared with and without digits where names are known.
///
/// ```
/// use toolgate_voice::plain;
///
/// assert_eq!(plain(" Turn on  Switch One. \n"), "Turn on Switch One");
/// assert_eq!(plain("TURN ON SWITCH 1"), "turn on switch 1");
/// assert_eq!(plain("What time is it?"), "What time is it?");
/// ```
pub fn plain(transcript: &str) -> String {
    let shown = transcript.chars().map(|letter| match letter {
        _ if letter.is_whitespace() => ' ',
        _ => letter,
    });
    let shown: String = shown
        .filter(|letter| !letter.is_control() && !is_unseen(*letter))
        .take(LONGEST)
        .collect();
    let mut text = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    text.truncate(text.floor_char_boundary(LONGEST));
    let end = text.trim_end_matches(['.', '…', ' ', ',', '-']).len();
    text.truncate(end);
    let has_words = text.contains(' ');
    if has_words && text.contains(char::is_uppercase) && !text.contains(char::is_lowercase) {
        text = text.to_lowercase();
    }
    text
}

/// What was said after the wake word, if it is still there: engines of wake words call it `hey_jarvis` or `hey_jarvis_v0.1`.
pub(crate) fn without_wake_word<'a>(text: &'a str, wake_word: &str) -> &'a str {
    let is_between = |letter: char| !letter.is_alphanumeric();
    let mut rest = text;
    let is_version = |word: &&str| {
        let number = word.strip_prefix('v').unwrap_or(word);
        number.starts_with(|letter: char| letter.is_ascii_digit())
    };
    let names = wake_word.split(is_between).filter(|word| !word.is_empty());
    for name in names.take_while(|word| !is_version(word)) {
        let here = rest.trim_start_matches(is_between);
        let end = here.find(is_between).unwrap_or(here.len());
        if words(&here[..end]) != words(name) {
            return text;
        }
        rest = here[end..].trim_start_matches(is_between);
    }
    rest
}

/// The words of a text, folded, without punctuation and apostrophes.
pub(super) fn words(text: &str) -> Vec<String> {
    let is_between = |letter: char| !letter.is_alphanumeric() && !is_silent(letter);
    let words = text.split(is_between).map(|word| {
        let mut folded = String::new();
        let letters = word.chars().filter(|letter| !is_silent(*letter));
        letters.for_each(|letter| fold(letter, &mut folded));
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

/// True if all that was said is that nothing shall be done.
pub(crate) fn is_cancel(text: &str) -> bool {
    let words = words(text);
    let is_polite = |word: &String| POLITE.contains(&word.as_str());
    let from = words.iter().take_while(|word| is_polite(word)).count();
    let polite = words[from..].iter().rev();
    let to = words.len() - polite.take_while(|word| is_polite(word)).count();
    let said = &words[from..to];
    // People repeat themselves when they are not heard: "stop, stop!"
    let once = said.chunk_by(|one, other| one == other);
    let once: Vec<&str> = once.map(|same| same[0].as_str()).collect();
    CANCEL.contains(&once.join(" ").as_str())
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
            assert_eq!(plain(transcript), expected, "{transcript:?}");
        }
        assert!(plain(&"wörter ".repeat(1000)).len() <= LONGEST);
    }

    #[test]
    fn a_wake_word_is_no_part_of_the_request() {
        for (text, wake_word, expected) in [
            ("Hey Jarvis, turn it on.", "hey_jarvis", "turn it on."),
            (" hey jarvis turn it on", "hey_jarvis_v0.1", "turn it on"),
            ("Okay, Nabu! Stop.", "okay nabu", "Stop."),
            ("Hey, Jarvis!", "hey_jarvis", ""),
            ("Jarvis is a butler", "hey_jarvis", "Jarvis is a butler"),
            ("Hey Jarvisson", "hey_jarvis", "Hey Jarvisson"),
            ("-5 degrees", "", "-5 degrees"),
        ] {
            assert_eq!(without_wake_word(text, wake_word), expected, "{text}");
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

    proptest! {
        #[test]
        fn no_transcript_breaks_it(transcript in ".{0,300}") {
            let once = plain(&transcript);
            prop_assert_eq!(plain(&once), once.clone());
            prop_assert!(!once.contains(char::is_control));
            is_cancel(&transcript);
        }
    }
}
