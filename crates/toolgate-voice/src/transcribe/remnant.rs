//! Removes what is left of a wake word whose end is in the sound: "hey Jarvis turn it on" may
//! become "of its turn it on".

use super::transcript::{is_separator, wake_word_words, words_with_rest};

const MAX_WORDS: usize = 3;
// These words change what a request means, so they are never dropped as a
// remnant, however they sound.
const MEANINGFUL_WORDS: [&str; 19] = [
    "no", "not", "never", "don", "dont", "doesn", "didn", "isn", "can", "cant", "cannot", "won",
    "wont", "without", "unless", "if", "when", "after", "before",
];

/// Candidates for the request in a transcript that starts with a remnant: the text after the first
/// few words, as long as these sound like the end of the wake word. The shortest remnant comes
/// first. The caller decides which candidate is a request.
pub(crate) fn requests_behind_remnant<'a>(text: &'a str, wake_word: &str) -> Vec<&'a str> {
    let name = consonants(&wake_word_words(wake_word).concat());
    let said = words_with_rest(text);
    let is_meaningful = |(word, _): &(String, &str)| MEANINGFUL_WORDS.contains(&word.as_str());
    let most = said
        .iter()
        .take(MAX_WORDS)
        .take_while(|word| !is_meaningful(word));
    let mut remnant = String::new();
    let mut behind = Vec::new();
    for (word, rest) in most {
        remnant.push_str(&consonants(word));
        let request = rest.trim_start_matches(is_separator);
        if !request.is_empty() && sounds_like_end(&remnant, &name) {
            behind.push(request);
        }
    }
    behind
}

/// True if at most half of the consonants differ from the end of the name.
fn sounds_like_end(remnant: &str, name: &str) -> bool {
    let ends = (0..name.len()).filter_map(|from| name.get(from..));
    let least = ends.map(|end| strsim::levenshtein(remnant, end)).min();
    !remnant.is_empty() && least.is_some_and(|least| least <= remnant.len() / 2)
}

/// The consonants of a word by sound: those that are easily confused become the same letter.
fn consonants(word: &str) -> String {
    let spoken = word.chars().map(|letter| match letter {
        'b' | 'f' | 'p' | 'v' => 'b',
        'c' | 'g' | 'j' | 'k' | 'q' | 's' | 'x' | 'z' => 's',
        'd' | 't' => 't',
        'm' | 'n' => 'm',
        'l' | 'r' => letter,
        _ => ' ',
    });
    let mut spoken: Vec<char> = spoken.collect();
    spoken.dedup();
    spoken.into_iter().filter(|letter| *letter != ' ').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_sound_like_the_end_of_a_name_are_remnants() {
        for (text, wake_word, expected) in [
            (
                "of its turn on switch one",
                "hey_jarvis_v0.1",
                "turn on switch one",
            ),
            ("This, turn it on.", "hey_jarvis", "turn it on."),
            ("service turn it on", "hey_jarvis", "turn it on"),
            ("a bus stop", "okay_nabu", "stop"),
            ("x a turn it on", "alexa", "turn it on"),
        ] {
            let behind = requests_behind_remnant(text, wake_word);
            assert!(behind.contains(&expected), "{text}: {behind:?}");
        }
    }

    #[test]
    fn meaningful_words_are_not_remnants() {
        for (text, wake_word) in [
            ("don't turn it on", "hey_jarvis"),
            ("do not turn it on", "hey_jarvis"),
            ("never turn it on", "okay_nabu"),
            ("should I turn it on", "hey_jarvis"),
            ("how do I turn it on", "hey_jarvis"),
            ("turn it on", "hey_jarvis"),
            ("is", "hey_jarvis"),
            ("", "hey_jarvis"),
            ("of its turn", ""),
        ] {
            let behind = requests_behind_remnant(text, wake_word);
            let acts = behind.contains(&"turn it on");
            assert!(!acts, "{text}: {behind:?}");
        }
    }
}
