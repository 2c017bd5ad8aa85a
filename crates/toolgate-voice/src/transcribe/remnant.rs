//! What an engine makes of the end of a wake word that is still in the sound: "hey Jarvis turn it on" may become "of its turn it on".

use super::plain::{is_between, name_of, said};

/// An end of a name does not become more words.
const MOST_WORDS: usize = 3;

/// Words that turn a request into something else. They are never what is left of a name, however they sound.
const TELLING: [&str; 19] = [
    "no", "not", "never", "don", "dont", "doesn", "didn", "isn", "can", "cant", "cannot", "won",
    "wont", "without", "unless", "if", "when", "after", "before",
];

/// What may be the request in words that were said in one breath with a wake word: what stands behind the first few of them, as
/// long as these sound like the end of its name. The shortest remnant is first; whether it is a request, others know.
pub(crate) fn behind_remnant<'a>(text: &'a str, wake_word: &str) -> Vec<&'a str> {
    let name = consonants(&name_of(wake_word).concat());
    let said = said(text);
    let is_telling = |(word, _): &(String, &str)| TELLING.contains(&word.as_str());
    let most = said
        .iter()
        .take(MOST_WORDS)
        .take_while(|word| !is_telling(word));
    let mut remnant = String::new();
    let mut behind = Vec::new();
    for (word, rest) in most {
        remnant.push_str(&consonants(word));
        let request = rest.trim_start_matches(is_between);
        if !request.is_empty() && sounds_like_end(&remnant, &name) {
            behind.push(request);
        }
    }
    behind
}

/// True if few of the consonants are others than those the name ends with.
fn sounds_like_end(remnant: &str, name: &str) -> bool {
    let ends = (0..name.len()).filter_map(|from| name.get(from..));
    let least = ends.map(|end| strsim::levenshtein(remnant, end)).min();
    !remnant.is_empty() && least.is_some_and(|least| least <= remnant.len() / 2)
}

/// The consonants of a word by how they are spoken: those that are taken for each other are the same.
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
    fn words_that_sound_like_the_end_of_a_name_may_be_what_is_left_of_it() {
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
            let behind = behind_remnant(text, wake_word);
            assert!(behind.contains(&expected), "{text}: {behind:?}");
        }
    }

    #[test]
    fn words_that_mean_something_are_not() {
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
            let behind = behind_remnant(text, wake_word);
            let acts = behind.contains(&"turn it on");
            assert!(!acts, "{text}: {behind:?}");
        }
    }
}
