//! Scalars of YAML: the value of plain text, comments, and the folding of lines.

use serde_json::{Number, Value};

/// The value of plain text in YAML's core schema.
pub(super) fn plain_scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return true.into(),
        "false" | "False" | "FALSE" => return false.into(),
        _ => {}
    }
    let number = integer(text).or_else(|| float(text));
    number.map_or_else(|| text.into(), Value::Number)
}

fn integer(text: &str) -> Option<Number> {
    let based = |digits: &str, radix| i64::from_str_radix(digits, radix).ok();
    if let Some(digits) = text.strip_prefix("0x") {
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        return based(digits, 16).filter(|_| is_hex).map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        let is_octal = digits.bytes().all(|byte| byte.is_ascii_digit());
        return based(digits, 8).filter(|_| is_octal).map(Number::from);
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.strip_prefix('+').unwrap_or(text).parse::<i64>().ok();
    value.filter(|_| is_decimal).map(Number::from)
}

/// Infinity and NaN have no form in JSON, so they stay text.
fn float(text: &str) -> Option<Number> {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_numeric = rest
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let first = rest.strip_prefix('.').unwrap_or(rest);
    let starts_well = first.starts_with(|c: char| c.is_ascii_digit());
    let value = text.parse::<f64>().ok();
    Number::from_f64(value.filter(|_| is_numeric && starts_well)?)
}

/// The text before a comment: `#` at the beginning or behind a space.
pub(super) fn without_comment(text: &str) -> &str {
    let is_comment =
        |(at, _): &(usize, &str)| *at == 0 || text.as_bytes()[at - 1].is_ascii_whitespace();
    let comment = text.match_indices('#').find(is_comment);
    comment.map_or(text, |(at, _)| &text[..at])
}

/// Joins lines by spaces. An empty line is a line break, and indented lines keep theirs.
pub(super) fn fold(lines: &[String]) -> String {
    let mut text = String::new();
    let (mut empty, mut was_indented, mut is_first) = (0, false, true);
    for line in lines {
        if line.is_empty() {
            empty += 1;
            continue;
        }
        let is_indented = line.starts_with([' ', '\t']);
        let breaks = empty + usize::from(!is_first && (is_indented || was_indented));
        match breaks {
            0 if is_first => {}
            0 => text.push(' '),
            breaks => text.push_str(&"\n".repeat(breaks)),
        }
        text.push_str(line);
        (empty, was_indented, is_first) = (0, is_indented, false);
    }
    text
}
