//! Number literals: decimal, hexadecimal, octal and binary. The last three may have a fraction
//! or a word size.

use crate::error::Result;
use crate::lexer::Lexer;

pub(super) fn parse_number(lexer: &Lexer<'_>) -> Result<f64> {
    let text = lexer.lexeme();
    if text.len() < 16 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(text
            .bytes()
            .fold(0.0, |value, digit| value * 10.0 + f64::from(digit - b'0')));
    }
    match parse_radix(text) {
        None => text
            .parse()
            .map_err(|_| lexer.error(format!("Invalid number \"{text}\""))),
        Some(base) => parse_digits(&text[2..], base).ok_or_else(|| {
            lexer.error(format!("String \"{text}\" is out of range or not a number"))
        }),
    }
}

pub(crate) fn parse_radix(text: &str) -> Option<u32> {
    match text.as_bytes() {
        [b'0', b'x', ..] => Some(16),
        [b'0', b'o', ..] => Some(8),
        [b'0', b'b', ..] => Some(2),
        _ => None,
    }
}

/// Parses digits in `base`, with a fraction (`1.8`) or a word size (`FFi8`, a signed
/// number of 8 bits).
pub(crate) fn parse_digits(text: &str, base: u32) -> Option<f64> {
    let (text, size) = match text.split_once('i') {
        Some((digits, size)) => (digits, Some(size.parse::<i32>().ok()?)),
        None => (text, None),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars() {
        value = value * f64::from(base) + f64::from(digit.to_digit(base)?);
    }
    let mut scale = 1.0;
    for digit in fraction.chars() {
        scale /= f64::from(base);
        value += f64::from(digit.to_digit(base)?) * scale;
    }
    let Some(size) = size else { return Some(value) };
    let span = libm::exp2(f64::from(size));
    if value > span - 1.0 {
        return None;
    }
    Some(if value >= span / 2.0 {
        value - span
    } else {
        value
    })
}
