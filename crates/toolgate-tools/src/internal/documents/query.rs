//! [`DocumentQuery`]: converts untrusted text to a full-text expression that contains only words.

// More words make a search slower, but no better.
const MAX_WORDS: usize = 32;
const MAX_WORD_CHARS: usize = 64;
// If the last word has this many bytes, it matches every word that starts with it. That is three
// letters, or one Chinese character.
const MIN_PREFIX_BYTES: usize = 3;

/// The words to look for: at least one.
#[derive(Debug, PartialEq)]
pub(super) struct DocumentQuery {
    words: Vec<String>,
}

impl DocumentQuery {
    /// Returns `None` if the text has no word.
    pub(super) fn new(text: &str) -> Option<Self> {
        let mut words: Vec<String> = Vec::new();
        for word in text
            .split(|c| !is_word_char(c))
            .filter(|word| word.contains(char::is_alphanumeric))
        {
            let word: String = word.to_lowercase().chars().take(MAX_WORD_CHARS).collect();
            // A repeated word moves to the end, because the last word may still be incomplete.
            words.retain(|known| *known != word);
            words.push(word);
            if words.len() == MAX_WORDS {
                break;
            }
        }
        (!words.is_empty()).then_some(Self { words })
    }

    pub(super) fn all_words(&self) -> String {
        self.expression(" AND ")
    }

    /// Matches documents with at least one word; `None` if that is the same as all.
    pub(super) fn any_word(&self) -> Option<String> {
        (self.words.len() > 1).then(|| self.expression(" OR "))
    }

    fn expression(&self, operator: &str) -> String {
        // Quoted, because AND, OR, NOT and NEAR would be operators. A word never contains a quote.
        let quoted = self.words.iter().map(|word| format!("\"{word}\""));
        let mut expression = quoted.collect::<Vec<_>>().join(operator);
        if self
            .words
            .last()
            .is_some_and(|last| last.len() >= MIN_PREFIX_BYTES)
        {
            expression.push('*');
        }
        expression
    }
}

// Must match how the index splits words: letters, digits, and combining accents.
fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '\u{300}'..='\u{36f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_and_the_last_is_a_prefix() {
        for (text, all, any) in [
            ("boiler", r#""boiler"*"#, None),
            (
                "Boiler pressure",
                r#""boiler" AND "pressure"*"#,
                Some(r#""boiler" OR "pressure"*"#),
            ),
            (
                "vitamin D",
                r#""vitamin" AND "d""#,
                Some(r#""vitamin" OR "d""#),
            ),
            (
                "what's up?",
                r#""what" AND "s" AND "up""#,
                Some(r#""what" OR "s" OR "up""#),
            ),
            (
                "pump heat pump",
                r#""heat" AND "pump"*"#,
                Some(r#""heat" OR "pump"*"#),
            ),
            ("re\u{301}sume\u{301}", "\"re\u{301}sume\u{301}\"*", None),
            ("漢", "\"漢\"*", None),
        ] {
            let query = DocumentQuery::new(text).unwrap();
            assert_eq!(
                (query.all_words().as_str(), query.any_word().as_deref()),
                (all, any),
                "{text}"
            );
        }
    }

    #[test]
    fn operators_are_treated_as_words() {
        for (text, expected) in [
            (r#"" OR *"#, r#""or""#),
            ("NEAR(", r#""near"*"#),
            ("a-b:c", r#""a" AND "b" AND "c""#),
            (
                r#"title:"x" NOT {body}"#,
                r#""title" AND "x" AND "not" AND "body"*"#,
            ),
            ("^start + 1", r#""start" AND "1""#),
            ("a\0b", r#""a" AND "b""#),
        ] {
            assert_eq!(
                DocumentQuery::new(text).unwrap().all_words(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn without_a_word_there_is_no_query() {
        let quotes = "\"".repeat(10_000);
        for text in [
            "",
            "  \n",
            "\"",
            "*",
            "()",
            "\u{301}",
            "🙂",
            quotes.as_str(),
        ] {
            assert_eq!(DocumentQuery::new(text), None, "{text}");
        }
    }

    #[test]
    fn number_and_length_of_words_are_bounded() {
        let many: String = (0..1000).map(|n| format!("w{n} ")).collect();
        assert_eq!(DocumentQuery::new(&many).unwrap().words.len(), MAX_WORDS);
        assert_eq!(
            DocumentQuery::new(&"x".repeat(1_000_000)).unwrap().words[0].len(),
            MAX_WORD_CHARS
        );
    }
}
