//! Splits a sentence into words without case, accents and punctuation, and keeps their positions.

use std::collections::HashMap;

use toolgate_core::text::fold_char;

// Matching time grows with both, and a longer text is not a command.
pub(crate) const MAX_SENTENCE_BYTES: usize = 600;

pub(crate) const MAX_WORDS: usize = 64;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WordToken {
    pub(crate) text: String,
    start: usize,
    end: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Sentence<'a> {
    raw: &'a str,
    pub(crate) tokens: Vec<WordToken>,
}

impl<'a> Sentence<'a> {
    /// `None` if it is too long to be a command. Expands the words in `replace`, such as
    /// `what's` to `what is`.
    pub(crate) fn parse(raw: &'a str, replace: &HashMap<String, Vec<String>>) -> Option<Self> {
        if raw.len() > MAX_SENTENCE_BYTES {
            return None;
        }
        let mut tokens = Vec::new();
        for token in split(raw) {
            match replace.get(&token.text) {
                None => tokens.push(token),
                Some(words) => tokens.extend(words.iter().map(|text| WordToken {
                    text: text.clone(),
                    ..token
                })),
            }
        }
        (tokens.len() <= MAX_WORDS).then_some(Self { raw, tokens })
    }

    pub(crate) fn words(&self) -> Vec<String> {
        self.tokens.iter().map(|token| token.text.clone()).collect()
    }

    /// The original text of the words `from..to`, including the punctuation around them.
    pub(crate) fn text_around(&self, from: usize, to: usize) -> &'a str {
        let start = match from {
            0 => 0,
            _ => self.tokens.get(from - 1).map_or(0, |token| token.end),
        };
        let end = self
            .tokens
            .get(to)
            .map_or(self.raw.len(), |token| token.start);
        self.raw.get(start..end).unwrap_or("").trim()
    }

    pub(crate) fn has_comma(&self, at: usize) -> bool {
        self.has_mark_before(at, &[','])
    }

    /// True if punctuation separates a word from the one before it.
    pub(crate) fn is_separated(&self, at: usize) -> bool {
        self.has_mark_before(at, &[',', ';', '.', '?', '!'])
    }

    fn has_mark_before(&self, at: usize, marks: &[char]) -> bool {
        let before = at.checked_sub(1).map(|before| &self.tokens[before]);
        match (before, self.tokens.get(at)) {
            (Some(before), Some(word)) => {
                let between = self.raw.get(before.end..word.start);
                between.is_some_and(|between| between.contains(marks))
            }
            _ => false,
        }
    }

    /// The original text of the words `from..to`, without the punctuation around them.
    pub(crate) fn text_between(&self, from: usize, to: usize) -> &'a str {
        match (
            self.tokens.get(from),
            to.checked_sub(1).map(|last| &self.tokens[last]),
        ) {
            (Some(first), Some(last)) => self.raw.get(first.start..last.end).unwrap_or(""),
            _ => "",
        }
    }
}

pub(crate) fn plain_words(text: &str) -> Vec<String> {
    split(text).into_iter().map(|token| token.text).collect()
}

fn split(raw: &str) -> Vec<WordToken> {
    let mut tokens = Vec::new();
    let mut word: Option<WordToken> = None;
    let mut before = ' ';
    let mut rest = raw.char_indices().peekable();
    while let Some((at, letter)) = rest.next() {
        let end = at + letter.len_utf8();
        let next = rest.peek().map_or(' ', |(_, next)| *next);
        let inside = match letter {
            _ if is_combining_mark(letter) => word.is_some(),
            '\'' | '\u{2019}' | '\u{2bc}' => word.is_some() && next.is_alphabetic(),
            '.' => before.is_ascii_digit() && next.is_ascii_digit(),
            ',' => before.is_ascii_digit() && has_thousands(&raw[end..]),
            '-' => next.is_ascii_digit() && before.is_whitespace(),
            _ => letter.is_alphanumeric(),
        };
        if !inside {
            tokens.extend(word.take());
            if let '%' | '°' = letter {
                let text = letter.to_string();
                tokens.push(WordToken {
                    text,
                    start: at,
                    end,
                });
            }
        } else {
            // `5cm` and `Switch1` are two words each, as they are when spoken.
            let is_split = before.is_ascii_digit() && letter.is_alphabetic()
                || before.is_alphabetic() && letter.is_ascii_digit();
            if is_split {
                tokens.extend(word.take());
            }
            let word = word.get_or_insert_with(|| WordToken {
                text: String::new(),
                start: at,
                end,
            });
            word.end = end;
            if letter != ',' {
                fold_char(letter, &mut word.text);
            }
        }
        before = letter;
    }
    tokens.extend(word);
    tokens.retain(|token| !token.text.is_empty());
    tokens
}

/// Whether exactly three digits follow: true after the comma of `1,000`, false after that of `1,2`.
fn has_thousands(rest: &str) -> bool {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    digits == 3
}

fn is_combining_mark(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_accents_and_punctuation_do_not_matter() {
        for (text, expected) in [
            ("Turn on Switch One.", "turn on switch one"),
            ("  CAFÉ, cafe\u{301} & Çelik!? ", "cafe cafe celik"),
            ("what’s Bob's plan", "what's bob's plan"),
            ("'quoted' rock 'n' roll", "quoted rock n roll"),
            ("3.5 and 1,000 and 1,2 and 7.", "3.5 and 1000 and 1 2 and 7"),
            ("-5 and 2-3 and twenty-one", "-5 and 2 3 and twenty one"),
            ("50% at 21°C", "50 % at 21 ° c"),
            ("Switch1 5cm", "switch 1 5 cm"),
            ("Straße", "strasse"),
            ("Europe/Berlin", "europe berlin"),
            ("日本語 ok", "日本語 ok"),
            ("", ""),
            ("…!?", ""),
        ] {
            assert_eq!(plain_words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn words_keep_their_positions() {
        let replace = HashMap::from([("what's".to_owned(), vec!["what".into(), "is".into()])]);
        let sentence = Sentence::parse("What's (2+3) * 4?", &replace).unwrap();
        assert_eq!(sentence.tokens.len(), 5);
        assert_eq!(sentence.text_around(2, 5), "(2+3) * 4?");
        assert_eq!(sentence.text_between(2, 5), "2+3) * 4");
        assert_eq!(sentence.text_around(0, 2), "What's (");
    }

    #[test]
    fn a_text_that_is_too_long_is_not_parsed() {
        let none = HashMap::new();
        assert!(Sentence::parse(&"a".repeat(MAX_SENTENCE_BYTES + 1), &none).is_none());
        assert!(Sentence::parse(&"a ".repeat(MAX_WORDS + 1), &none).is_none());
        assert!(Sentence::parse(&"a ".repeat(MAX_WORDS), &none).is_some());
    }
}
