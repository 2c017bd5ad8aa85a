//! Splits a name into words, without what can't be heard.

use toolgate_core::fold_letter;

const ARTICLES: [&str; 9] = ["the", "a", "an", "my", "our", "in", "of", "at", "number"];

const ONES: &str = "\
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen \
sixteen seventeen eighteen nineteen";
const TENS: [&str; 8] = [
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
];
// The gateway limits names; this limits what people say.
const MAX_WORDS: usize = 64;

/// Lowercase words without accents and articles, with number words as digits. Punctuation
/// separates words, apostrophes don't.
pub(crate) fn name_words(text: &str) -> Vec<String> {
    let all = replace_number_words(split(text));
    let large = all
        .iter()
        .filter(|word| !ARTICLES.contains(&word.as_str()))
        .cloned()
        .collect::<Vec<_>>();
    // A device may be called "A".
    if large.is_empty() { all } else { large }
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
        let turns = word
            .chars()
            .next_back()
            .is_some_and(|last| last.is_numeric() != c.is_numeric());
        if (turns || !c.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            fold_letter(c, &mut word);
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
    let mut told = Vec::with_capacity(words.len());
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let ones = |word: &String| ONES.split(' ').position(|known| known == word);
        if let Some(number) = ones(&word) {
            told.push(number.to_string());
        } else if let Some(tens) = TENS.iter().position(|known| *known == word) {
            let unit = words.next_if(|next| matches!(ones(next), Some(1..=9)));
            let unit = unit.as_ref().and_then(ones).unwrap_or(0);
            told.push(((tens + 2) * 10 + unit).to_string());
        } else {
            told.push(word);
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_come_down_to_their_words() {
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
        fn no_text_breaks_it(text in ".*") {
            let once = name_words(&text);
            prop_assert!(once.len() <= MAX_WORDS + 1);
        }
    }
}
