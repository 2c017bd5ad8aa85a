//! Names meaningful symbols and drops the others.

use toolgate_core::text::is_invisible;

// A longer word is a key, a hash or an address, which nobody can follow. In bytes.
const MAX_WORD_LEN: usize = 40;

pub(super) fn speak_symbols(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let text = text.replace("->", "→").replace("=>", "→");
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied();
        let before = out.chars().next_back();
        match symbol_name(letter, before, next) {
            Some(name) => out.push_str(name),
            None => out.push(letter),
        }
    }
    tidy_spaces(&out)
}

fn symbol_name(letter: char, before: Option<char>, next: Option<char>) -> Option<&'static str> {
    let digit_follows = next.is_some_and(|next| next.is_ascii_digit());
    Some(match letter {
        '&' => " and ",
        '+' => " plus ",
        '=' => " equals ",
        '×' => " times ",
        '÷' => " divided by ",
        '≈' => " about ",
        '±' => " plus or minus ",
        '≤' => " at most ",
        '≥' => " at least ",
        '<' if next.is_some_and(|next| next == ' ' || next.is_ascii_digit()) => " less than ",
        '>' if next.is_some_and(|next| next == ' ' || next.is_ascii_digit()) => " more than ",
        '→' | '⇒' | '–' | '—' | '•' | '·' => ", ",
        '-' if before.is_none_or(char::is_whitespace) => ", ",
        '…' => ".",
        '’' | '‘' => "'",
        '#' if digit_follows => "number ",
        '@' => " at ",
        '%' => " percent",
        '°' => " degrees",
        '²' => " squared",
        '³' => " cubed",
        '½' if is_digit(before) => " and a half",
        '½' => "one half",
        '¼' if is_digit(before) => " and a quarter",
        '¼' => "one quarter",
        '¾' if is_digit(before) => " and three quarters",
        '¾' => "three quarters",
        // Between digits it's a fraction or a date, which engines know.
        '/' if is_digit(before) && digit_follows => return None,
        '/' | '\\' | '|' | '_' | '*' | '`' | '~' | '^' | '<' | '>' | '{' | '}' | '[' | ']'
        | '#' | '$' | '€' | '£' | '¥' => " ",
        '"' | '“' | '”' | '„' | '«' | '»' | '©' | '®' | '™' => "",
        '\n' | '\r' | '\t' => " ",
        _ if letter.is_whitespace() => " ",
        _ if is_invisible(letter) || letter.is_control() => "",
        _ if is_picture(letter) => " ",
        _ => return None,
    })
}

fn is_digit(letter: Option<char>) -> bool {
    letter.is_some_and(|letter| letter.is_ascii_digit())
}

/// Emoji, arrows, boxes, dingbats, joiners and variation selectors.
fn is_picture(letter: char) -> bool {
    matches!(letter,
        '\u{1f000}'..='\u{1faff}' | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{27bf}' | '\u{2900}'..='\u{297f}'
        | '\u{2b00}'..='\u{2bff}' | '\u{fe00}'..='\u{fe0f}' | '\u{200d}' | '\u{20e3}' | '\u{e0000}'..='\u{e007f}'
        | '\u{e000}'..='\u{f8ff}' | '\u{fffd}')
}

fn tidy_spaces(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if word.is_ascii() && word.len() > MAX_WORD_LEN {
            continue;
        }
        let is_mark = word.bytes().all(|byte| b",.;:!?".contains(&byte));
        if is_mark {
            let doubled = out.ends_with([',', '.', ';', ':', '!', '?']);
            if !doubled && !out.is_empty() {
                out.push_str(&word[..1]);
            }
            continue;
        }
        // A leading `-` could be taken for an option by a speech program.
        let word = match out.is_empty() {
            true => word.trim_start_matches([',', '.', ';', ':', '!', '?', '-']),
            false => word,
        };
        if !out.is_empty() && !word.starts_with([',', ';']) {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}
