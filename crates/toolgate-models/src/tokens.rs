//! Estimates how many tokens a text has.
//!
//! Each model has its own tokenizer, and the only question here is whether a prompt fits. If the
//! estimate is too low, a server silently cuts the beginning of the prompt; if it's too high, that
//! costs a little memory. So each kind of character is counted as the tokenizer does that needs the
//! most tokens for it:
//!
//! - ASCII letters: one token for six. English then has about one token for 4 bytes, where
//!   tokenizers need one for 4.5.
//! - Digits: one each, as with Qwen.
//! - Punctuation: one for two. JSON then has about one token for 3 bytes.
//! - Spaces: none for a single one, which belongs to the next word; one for four in longer runs.
//!   Line ends: one each.
//! - Letters of other alphabets: one for two. Chinese, Japanese and Korean characters: one
//!   each. Emoji: three each.

pub(crate) fn estimate(text: &str) -> usize {
    if !text.is_ascii() {
        return count(text);
    }
    let kind = |byte: &u8| ASCII[usize::from(byte & 0x7f)];
    let (mut rest, mut tokens) = (text.as_bytes(), 0);
    while let Some(first) = rest.first().map(kind) {
        let end = rest.iter().position(|byte| kind(byte) != first);
        let (run, behind) = rest.split_at(end.unwrap_or(rest.len()));
        tokens += first.tokens(run.len());
        rest = behind;
    }
    tokens
}

fn count(text: &str) -> usize {
    let (mut tokens, mut kind, mut run) = (0, CharacterKind::Line, 0);
    for next in text.chars().map(CharacterKind::classify) {
        if next != kind {
            tokens += kind.tokens(run);
            (kind, run) = (next, 0);
        }
        run += 1;
    }
    tokens + kind.tokens(run)
}

// A table, because every prompt is counted with every question, and most text is ASCII.
const ASCII: [CharacterKind; 128] = {
    let mut kinds = [CharacterKind::Punctuation; 128];
    let mut byte = 0;
    while byte < 128_u8 {
        kinds[byte as usize] = CharacterKind::classify(byte as char);
        byte += 1;
    }
    kinds
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharacterKind {
    Letter,
    Digit,
    Space,
    Line,
    Punctuation,
    OtherLetter,
    Ideograph,
    Symbol,
}

impl CharacterKind {
    fn tokens(self, run: usize) -> usize {
        match self {
            Self::Letter => run.div_ceil(6),
            Self::Punctuation | Self::OtherLetter => run.div_ceil(2),
            // One space belongs to the next word.
            Self::Space => run.saturating_sub(1).div_ceil(4),
            Self::Line | Self::Digit | Self::Ideograph => run,
            Self::Symbol => run * 3,
        }
    }

    const fn classify(c: char) -> Self {
        match c {
            'a'..='z' | 'A'..='Z' => Self::Letter,
            '0'..='9' => Self::Digit,
            ' ' => Self::Space,
            '\n' | '\r' | '\t' => Self::Line,
            '\0'..='\x7f' => Self::Punctuation,
            // Accented Latin, Greek, Cyrillic, Hebrew, Arabic, Indic and so on, and general
            // punctuation.
            '\u{80}'..='\u{2e7f}' => Self::OtherLetter,
            '\u{2e80}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' => {
                Self::Ideograph
            }
            _ => Self::Symbol,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Counts of real tokenizers, the highest of those known for a text.
    #[test]
    fn estimates_are_not_too_low_and_not_far_too_high() {
        for (text, needed) in [
            ("", 0),
            ("Hello, world!", 4),
            ("The quick brown fox jumps over the lazy dog.", 10),
            ("1234567890", 10),
            ("你好，世界", 5),
            ("Привет, мир", 5),
            (
                r#"{"type":"object","properties":{"city":{"type":"string"}}}"#,
                18,
            ),
        ] {
            let guess = estimate(text);
            assert!(guess >= needed, "{text}: {guess} < {needed}");
            assert!(guess <= needed * 8 / 5 + 1, "{text}: {guess} > {needed}");
        }
    }

    #[test]
    fn prose_takes_about_a_token_for_four_bytes_and_json_for_three() {
        let prose = "Looks up the current weather for a city and says how warm it is, whether it rains, and how \
            strong the wind blows. Give the name of the city in English; add the country where two cities share a name.";
        let json = r#"{"type":"function","function":{"name":"get_weather","description":"Current weather","parameters":
            {"type":"object","properties":{"city":{"type":"string","description":"Name of the city"},"units":{"enum":
            ["metric","imperial"]}},"required":["city"]}}}"#;
        let json: String = json.split("\n            ").collect();
        for (text, least, most) in [(prose, 3.4, 4.5), (&json, 2.4, 3.4)] {
            let ratio = text.len() as f64 / estimate(text) as f64;
            assert!((least..most).contains(&ratio), "{ratio}");
        }
    }

    #[test]
    fn more_text_is_never_fewer_tokens() {
        let mut text = String::new();
        let mut last = 0;
        for c in "Wörter, 漢字 und 🙂🙂 {\"a\": [1, 22]}\n\n    end".chars() {
            text.push(c);
            let guess = estimate(&text);
            assert!(guess >= last, "{text}");
            last = guess;
        }
    }

    /// The longest runs of one kind that a text can be split into.
    fn runs(text: &str) -> Vec<&str> {
        let mut runs = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|c| CharacterKind::classify(c) != CharacterKind::classify(first));
            let (run, behind) = rest.split_at(end.unwrap_or(rest.len()));
            runs.push(run);
            rest = behind;
        }
        runs
    }

    proptest! {
        #[test]
        fn the_estimate_of_a_text_is_the_sum_of_its_runs(text in "[ab C19 \n\t{}\":,.éßяд漢字。🙂\u{7f}\u{80}]{0,60}") {
            let each = runs(&text).into_iter().map(estimate);
            prop_assert_eq!(estimate(&text), each.sum::<usize>());
        }
    }
}
