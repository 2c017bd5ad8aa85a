//! Reads numbers with their signs, units, money, times and dates.

use super::units::{is_money, parse_unit, spell_money};

const MONTHS: &str =
    "January February March April May June July August September October November December";

/// Digits stay digits, because engines read them well.
pub(super) fn speak_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let before = out.chars().next_back();
        // A digit within a word or a longer number is part of a name.
        let is_free =
            !before.is_some_and(|before| before.is_alphanumeric() || "._/:".contains(before));
        let said = if is_free {
            parse_amount(rest, before)
        } else {
            None
        };
        rest = match said {
            Some((said, after)) => {
                out.push_str(&said);
                after
            }
            None => {
                let end = raw_end(rest, letter);
                out.push_str(&rest[..end]);
                &rest[end..]
            }
        };
    }
    out
}

// A run of digits is copied whole, so that no amount starts in its middle.
fn raw_end(text: &str, first: char) -> usize {
    let digits = text.find(|letter: char| !letter.is_ascii_digit());
    match first.is_ascii_digit() {
        true => digits.unwrap_or(text.len()),
        false => first.len_utf8(),
    }
}

fn parse_amount(text: &str, before: Option<char>) -> Option<(String, &str)> {
    let unsigned = text.strip_prefix(['-', '−', '\u{2011}']);
    let opens = before.is_none_or(|before| before.is_whitespace() || "([\"'“≈±".contains(before));
    match unsigned {
        Some(unsigned) if opens => {
            let (said, after) = parse_unsigned_amount(unsigned)?;
            Some((format!("minus {said}"), after))
        }
        Some(_) => None,
        None => parse_unsigned_amount(text),
    }
}

fn parse_unsigned_amount(text: &str) -> Option<(String, &str)> {
    let first = text.chars().next()?;
    if is_money(first) {
        let (number, after) = parse_number(&text[first.len_utf8()..])?;
        return spell_money(first, number, after);
    }
    if let Some(said) = parse_date(text).or_else(|| parse_time(text)) {
        return Some(said);
    }
    let (said, after) = parse_number(text).map(|(number, after)| (number.to_owned(), after))?;
    let sign = after.strip_prefix(' ').unwrap_or(after);
    if let Some(sign_letter) = sign.chars().next().filter(|sign| is_money(*sign)) {
        let after = &sign[sign_letter.len_utf8()..];
        let is_suffix = !after.starts_with(|next: char| next.is_ascii_digit());
        if is_suffix {
            return spell_money(sign_letter, &said, after);
        }
    }
    if let Some(((to, unit), after)) = parse_range(after) {
        return Some((format!("{said} to {to}{unit}"), after));
    }
    if let Some((name, after)) = parse_unit(&said, after) {
        return Some((format!("{said} {name}"), after));
    }
    Some((said, after))
}

/// The rest of `5–10` or `20-25 °C`: the second number, its unit, and what follows. A plain hyphen
/// needs the unit, because otherwise it may be a telephone number.
fn parse_range(text: &str) -> Option<((&str, String), &str)> {
    let is_dash = |dash: &char| matches!(dash, '-' | '–' | '\u{2011}');
    let dash = text.chars().next().filter(is_dash)?;
    let (to, after) = parse_number(&text[dash.len_utf8()..])?;
    match parse_unit(to, after) {
        Some((name, after)) => Some(((to, format!(" {name}")), after)),
        None if dash == '–' => Some(((to, String::new()), after)),
        None => None,
    }
}

/// Digits with thousands separators and a fraction: `1,234.5`.
fn parse_number(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        let bytes = bytes[from.min(bytes.len())..].iter();
        bytes.take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut end = digits(0);
    if end == 0 {
        return None;
    }
    while bytes.get(end) == Some(&b',') && digits(end + 1) == 3 {
        end += 4;
    }
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    // `192.168.1.1` and `1.2.3` are not amounts.
    let goes_on = bytes.get(end) == Some(&b'.') && digits(end + 1) > 0;
    (!goes_on).then(|| text.split_at(end))
}

/// `2026-11-15`, and the time in `2026-11-15T15:30:00Z`.
fn parse_date(text: &str) -> Option<(String, &str)> {
    let bytes = text.as_bytes().get(..10)?;
    let shape = bytes.iter().enumerate().all(|(at, byte)| match at {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    let after = text.get(10..)?;
    if !shape || after.starts_with(|next: char| next.is_ascii_digit() || next == '-') {
        return None;
    }
    let month: usize = text[5..7].parse().ok()?;
    let month = MONTHS.split(' ').nth(month.checked_sub(1)?)?;
    let day: u8 = text[8..10].parse().ok()?;
    if !(1..=31).contains(&day) {
        return None;
    }
    let said = format!("{month} {day}, {}", &text[..4]);
    let clock = after.strip_prefix('T').and_then(parse_time);
    Some(match clock {
        Some((clock, rest)) => (
            format!("{said} at {clock}"),
            rest.strip_prefix('Z').unwrap_or(rest),
        ),
        None => (said, after),
    })
}

/// `3:05 PM`, `15:30`, `07:15:30`, as people say them.
fn parse_time(text: &str) -> Option<(String, &str)> {
    let (hour, rest) = text.split_once(':')?;
    let length = hour.len();
    let hour: u32 = hour.parse().ok()?;
    let (minute, rest) = parse_two_digits(rest)?;
    if hour > 23 || minute > 59 || !(1..=2).contains(&length) {
        return None;
    }
    let second = rest.strip_prefix(':').and_then(parse_two_digits);
    let (seconds, rest) = match second {
        Some((second @ ..60, rest)) => (second, rest),
        Some(_) => return None,
        None => (0, rest),
    };
    if rest.starts_with(|next: char| next.is_ascii_digit() || next == ':') {
        return None;
    }
    let (half, rest) = parse_half_of_day(rest).unwrap_or(match hour {
        13.. => (" PM", rest),
        0 => (" AM", rest),
        _ => ("", rest),
    });
    let hour = match hour {
        0 => 12,
        13.. => hour - 12,
        _ => hour,
    };
    let mut said = match (minute, half) {
        (0, "") => format!("{hour} o'clock"),
        (0, _) => format!("{hour}{half}"),
        (1..10, _) => format!("{hour} oh {minute}{half}"),
        _ => format!("{hour} {minute}{half}"),
    };
    if seconds > 0 {
        said.push_str(&format!(" and {seconds} seconds"));
    }
    Some((said, rest))
}

fn parse_two_digits(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(2)?;
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((digits.parse().ok().filter(|_| are_digits)?, rest))
}

fn parse_half_of_day(text: &str) -> Option<(&'static str, &str)> {
    let text = text.trim_start_matches([' ', '\u{a0}', '\u{202f}']);
    let halves = [
        ("a.m.", " AM"),
        ("p.m.", " PM"),
        ("am", " AM"),
        ("pm", " PM"),
    ];
    for (written, said) in halves {
        let (start, rest) = text.split_at_checked(written.len()).unwrap_or((text, ""));
        if start.eq_ignore_ascii_case(written) && !rest.starts_with(char::is_alphanumeric) {
            return Some((said, rest));
        }
    }
    None
}
