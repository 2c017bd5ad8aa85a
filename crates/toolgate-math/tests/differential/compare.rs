//! Decides whether two answers agree: both reject, or numbers are within 1e-12 of each other and
//! everything else is equal in mathjs' format.

use serde_json::Value;

use crate::mathjs::{MathjsAnswer, MathjsReply};
use crate::ours::OwnAnswer;

/// The largest allowed difference between two numbers, relative to the larger one. Some functions
/// differ in the last bit between JavaScript engines, too.
const TOLERANCE: f64 = 1e-12;

/// Doubles represent all whole numbers up to this one exactly. JSON must show them as integers.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// `None` if both sides agree, otherwise what each says.
pub(crate) fn difference(theirs: &MathjsReply, ours: &OwnAnswer) -> Option<String> {
    let complaint = match (theirs, ours) {
        (MathjsReply::Error(_), OwnAnswer::Error(_)) => None,
        (MathjsReply::Value(theirs), OwnAnswer::Value { format, json }) => {
            if same_value(theirs, format) {
                json_difference(theirs, json)
            } else {
                Some(String::new())
            }
        }
        _ => Some(String::new()),
    };
    complaint.map(|complaint| format!("mathjs: {theirs} · ours: {ours}{complaint}"))
}

/// `None` if we reject a function that is excluded on purpose.
pub(crate) fn excluded(ours: &OwnAnswer) -> Option<String> {
    (!matches!(ours, OwnAnswer::Error(_))).then(|| format!("left out on purpose, yet ours: {ours}"))
}

fn same_value(theirs: &MathjsAnswer, ours: &str) -> bool {
    if theirs.format == ours {
        return true;
    }
    match theirs.kind.as_str() {
        // The same double must have the same text, unless two texts of one length are
        // equally close to it.
        "number" => match (theirs.number, ours.parse::<f64>()) {
            (Some(number), Ok(other)) => {
                let may_differ = number != other || theirs.format.len() == ours.len();
                may_differ && close(number, other, number.abs())
            }
            _ => false,
        },
        "BigNumber" | "Fraction" | "bigint" | "string" | "boolean" => false,
        // The parts of a complex number share one error: `exp(pi i)` has a tiny imaginary part
        // that is all rounding.
        "Complex" => same_text(&theirs.format, ours, largest(&theirs.format)),
        _ => same_text(&theirs.format, ours, 0.0),
    }
}

fn close(left: f64, right: f64, scale: f64) -> bool {
    left == right || (left - right).abs() <= TOLERANCE * left.abs().max(right.abs()).max(scale)
}

/// True if two texts differ only in their numbers, and only slightly. Errors
/// are relative to `scale` if it is larger than the number itself.
fn same_text(theirs: &str, ours: &str, scale: f64) -> bool {
    let (theirs, ours) = (pieces(theirs), pieces(ours));
    theirs.len() == ours.len()
        && theirs.iter().zip(&ours).all(|pair| match pair {
            (TextPiece::Number(left), TextPiece::Number(right)) => close(*left, *right, scale),
            (left, right) => left == right,
        })
}

fn largest(text: &str) -> f64 {
    let size = |piece: TextPiece| {
        if let TextPiece::Number(number) = piece {
            number.abs()
        } else {
            0.0
        }
    };
    pieces(text).into_iter().map(size).fold(0.0, f64::max)
}

#[derive(Debug, PartialEq)]
enum TextPiece<'a> {
    Number(f64),
    Text(&'a str),
}

/// Splits at numbers. A digit inside a name (`log10`) doesn't start one.
fn pieces(text: &str) -> Vec<TextPiece<'_>> {
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let inside_a_name =
            at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        let length = if inside_a_name {
            0
        } else {
            number_length(&bytes[at..])
        };
        if length == 0 {
            at += 1;
            continue;
        }
        pieces.push(TextPiece::Text(&text[start..at]));
        pieces.push(TextPiece::Number(
            text[at..at + length].parse().expect("digits"),
        ));
        at += length;
        start = at;
    }
    pieces.push(TextPiece::Text(&text[start..]));
    pieces
}

/// The bytes of an unsigned decimal number such as `12.5e-3`.
fn number_length(bytes: &[u8]) -> usize {
    let digits = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut length = digits(0);
    if length == 0 {
        return 0;
    }
    if bytes.get(length) == Some(&b'.') && digits(length + 1) > 0 {
        length += 1 + digits(length + 1);
    }
    if bytes.get(length) == Some(&b'e')
        && matches!(bytes.get(length + 1), Some(b'+' | b'-'))
        && digits(length + 2) > 0
    {
        length += 2 + digits(length + 2);
    }
    length
}

/// Explains what is wrong with our JSON, if anything. It should be a number for a number, an array
/// for a matrix, and a text for everything else.
fn json_difference(theirs: &MathjsAnswer, ours: &Result<Value, String>) -> Option<String> {
    match (&theirs.json, ours) {
        // The JSON of functions and undefined values is our own choice, so it is not compared.
        _ if matches!(theirs.kind.as_str(), "function" | "undefined") => None,
        (Some(theirs), Ok(ours)) if same_json(theirs, ours) => None,
        (None, Err(_)) => None,
        (Some(theirs), Ok(ours)) => Some(format!(" · as JSON {ours}, not {theirs}")),
        (Some(theirs), Err(error)) => Some(format!(" · as JSON an error ({error}), not {theirs}")),
        (None, Ok(ours)) => Some(format!(" · as JSON {ours}, not an error")),
    }
}

fn same_json(theirs: &Value, ours: &Value) -> bool {
    match (theirs, ours) {
        (Value::Number(left), Value::Number(right)) => {
            let (theirs, ours) = (
                left.as_f64().unwrap_or(f64::NAN),
                right.as_f64().unwrap_or(f64::NAN),
            );
            let whole = theirs == ours && theirs.fract() == 0.0 && theirs.abs() < EXACT;
            close(theirs, ours, 0.0) && !(whole && right.is_f64())
        }
        (Value::String(left), Value::String(right)) => {
            left == right || same_text(left, right, largest(left))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same_json(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|((key, left), (other, right))| key == other && same_json(left, right))
        }
        _ => theirs == ours,
    }
}

#[test]
fn texts_agree_if_only_their_numbers_differ_slightly() {
    assert!(same_text(
        "[1.0000000000001, 2 cm]",
        "[1.0000000000001001, 2 cm]",
        0.0
    ));
    assert!(!same_text("[1, 2 cm]", "[1, 2 mm]", 0.0));
    assert!(!same_text("[1, 2]", "[1, 2.00001]", 0.0));
    assert!(!same_text("[1, 2]", "[1, 2, 3]", 0.0));
    assert!(!same_text("1e-17", "2e-17", 0.0));
    assert!(same_text("1e-17 + 3i", "2e-17 + 3i", 3.0));
    assert!(!same_text("log10", "log2", 0.0));
}

#[test]
fn integers_must_stay_integers_in_json() {
    assert!(same_json(
        &serde_json::json!([2, "a"]),
        &serde_json::json!([2, "a"])
    ));
    assert!(!same_json(&serde_json::json!(2), &serde_json::json!(2.0)));
    assert!(!same_json(
        &serde_json::json!({"a": 1}),
        &serde_json::json!({"b": 1})
    ));
}
