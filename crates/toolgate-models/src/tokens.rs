//! How many tokens a text is, about. No tokenizer: each model has its own, and what is asked here is whether a prompt fits.
//! A guess that is too low loses the front of a prompt without a word, one that is too high costs a little memory. So each
//! kind of character is counted as the tokenizers that split it most do:
//!
//! - a word of letters takes one token for every six; English then comes to about one token for 4 bytes, where tokenizers
//!   need one for 4.5;
//! - a digit takes one, as with Qwen;
//! - a run of punctuation takes one for every two; JSON then comes to about one token for 3 bytes;
//! - a space before a word belongs to it, longer runs and line ends take one each;
//! - letters of other alphabets take one for two, Chinese, Japanese and Korean ones one each, emoji three.

/// A guess that is rather too high than too low.
pub(crate) fn estimate(text: &str) -> usize {
    let mut tokens = 0;
    let mut chars = text.chars().peekable();
    while let Some(first) = chars.next() {
        let kind = Kind::of(first);
        let mut run = 1_usize;
        while chars.next_if(|next| Kind::of(*next) == kind).is_some() {
            run += 1;
        }
        tokens += match kind {
            Kind::Letter => run.div_ceil(6),
            Kind::Punctuation | Kind::OtherLetter => run.div_ceil(2),
            // One of them belongs to what follows.
            Kind::Space => (run - 1).div_ceil(4),
            Kind::Line | Kind::Digit | Kind::Ideograph => run,
            Kind::Symbol => run * 3,
        };
    }
    tokens
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    Digit,
    Space,
    Line,
    Punctuation,
    OtherLetter,
    Ideograph,
    Symbol,
}

impl Kind {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' | 'A'..='Z' => Self::Letter,
            '0'..='9' => Self::Digit,
            ' ' => Self::Space,
            '\n' | '\r' | '\t' => Self::Line,
            '\0'..='\x7f' => Self::Punctuation,
            // Latin with accents, Greek, Cyrillic, Hebrew, Arabic, Indic and so on, and general punctuation.
            '\u{80}'..='\u{2e7f}' => Self::OtherLetter,
            '\u{2e80}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' => {
                Self::Ideograph
            }
            _ => Self::Symbol,
        }
    }
}
