//! Splits names into words that are the same however a name is said or written.

use toolgate_core::text::fold_char;

const IGNORED_WORDS: [&str; 9] = ["the", "a", "an", "my", "our", "in", "of", "at", "number"];

const ONES: &str = "\
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen \
sixteen seventeen eighteen nineteen";
const TENS: [&str; 8] = [
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
];
// Names in the home are limited elsewhere, names in a request only here.
const MAX_WORDS: usize = 64;

/// Lowercase words without accents, articles and prepositions, with number words as digits.
/// Punctuation separates words, apostrophes don't.
pub(crate) fn name_words(text: &str) -> Vec<String> {
    let all = replace_number_words(split(text));
    let relevant = all
        .iter()
        .filter(|word| !IGNORED_WORDS.contains(&word.as_str()))
        .cloned()
        .collect::<Vec<_>>();
    // A device may be called "A".
    if relevant.is_empty() { all } else { relevant }
}

fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for c in text.chars() {
        if words.len() == MAX_WORDS {
            return words;
        }
        if is_ignored(c) {
            continue;
        }
        // "Switch1" is "Switch 1".
        let digits_begin_or_end = word
            .chars()
            .next_back()
            .is_some_and(|last| last.is_numeric() != c.is_numeric());
        if (digits_begin_or_end || !c.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            fold_char(c, &mut word);
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn is_ignored(c: char) -> bool {
    matches!(c, '\'' | '’' | '`' | '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}')
}

fn replace_number_words(words: Vec<String>) -> Vec<String> {
    let mut replaced = Vec::with_capacity(words.len());
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let ones = |word: &String| ONES.split(' ').position(|known| known == word);
        if let Some(number) = ones(&word) {
            replaced.push(number.to_string());
        } else if let Some(tens) = TENS.iter().position(|known| *known == word) {
            let unit = words.next_if(|next| matches!(ones(next), Some(1..=9)));
            let unit = unit.as_ref().and_then(ones).unwrap_or(0);
            replaced.push(((tens + 2) * 10 + unit).to_string());
        } else {
            replaced.push(word);
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_split_into_words() {
        for (text, expected) in [
            ("Switch One", "switch 1"),
            ("switch 1", "switch 1"),
            ("Switch1", "switch 1"),
            (" turn on switch one.", "turn on switch 1"),
            ("The Kitchen Light", "kitchen light"),
            ("light in the kitchen", "light kitchen"),
            ("Kid's Lamp #2", "kids lamp 2"),
            ("Kids_Lamp_2", "kids lamp 2"),
            ("kid's lamp number two", "kids lamp 2"),
            ("Number", "number"),
            ("Küche Ost", "kuche ost"),
            ("Ku\u{308}che Ost", "kuche ost"),
            ("Straße", "strasse"),
            ("İstanbul", "istanbul"),
            ("Lamp twenty-one", "lamp 21"),
            ("Lamp twenty eleven", "lamp 20 11"),
            ("nodeID_6", "nodeid 6"),
            ("A", "a"),
            ("кухня", "кухня"),
            ("zero\u{200b}width", "zerowidth"),
            ("🙂 + #", ""),
        ] {
            assert_eq!(name_words(text).join(" "), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_bounded_number_of_words(text in ".*") {
            prop_assert!(name_words(&text).len() <= MAX_WORDS + 1);
        }
    }
}
