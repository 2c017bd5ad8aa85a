//! Parses spoken numbers: `21`, `twenty one`, `two hundred and five`, `minus three point five`.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Number, Value};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NumberWords {
    /// Words that add up, such as `three` and `twenty`.
    pub(crate) words: HashMap<String, u64>,
    /// Words that multiply, such as `hundred` and `thousand`.
    pub(crate) multipliers: HashMap<String, u64>,
    pub(crate) and: Vec<String>,
    pub(crate) point: Vec<String>,
    pub(crate) minus: Vec<String>,
    /// Phrases after a whole number: `and a half`.
    pub(crate) fractions: HashMap<String, f64>,
}

const MAX_FRACTION_LEN: usize = 3;

impl NumberWords {
    pub(crate) fn merge(&mut self, more: Self) {
        extend_all!(self, more: words, multipliers, and, point, minus, fractions);
    }

    /// Parses the longest number at the start of `words`. Also returns the number
    /// of words it takes.
    pub(crate) fn parse(&self, words: &[&str]) -> Option<(f64, usize)> {
        let is_one_of = |list: &[String], at: usize| {
            let word = words.get(at);
            word.is_some_and(|word| list.iter().any(|one| one == word))
        };
        let sign = usize::from(is_one_of(&self.minus, 0));
        let (whole, mut at) = match words.get(sign).and_then(|word| parse_digits(word)) {
            Some(value) => self.apply_multipliers(value, words, sign + 1),
            None => self.parse_words(words, sign)?,
        };
        let mut value = whole;
        if is_one_of(&self.point, at) {
            let tenths = words[at + 1..].iter().map_while(|word| self.digit(word));
            let mut weight = 1.0;
            for digit in tenths {
                weight /= 10.0;
                value += weight * digit as f64;
                at += 1;
            }
            at += usize::from(weight < 1.0);
            // Rounding removes the noise that adding tenths leaves.
            value = format!("{value:.9}").parse().unwrap_or(value);
        }
        let fraction = (1..=MAX_FRACTION_LEN).rev().find_map(|length| {
            let phrase = words.get(at..at + length)?.join(" ");
            Some((*self.fractions.get(&phrase)?, length))
        });
        if let Some((fraction, length)) = fraction {
            value += fraction;
            at += length;
        }
        Some((if sign == 1 { -value } else { value }, at))
    }

    // Replaces number words by digits, so that `Switch One` equals `switch 1`.
    pub(crate) fn with_digits(&self, words: &[String]) -> Vec<String> {
        let value = |word: &String| self.words.get(word).copied();
        let mut result = Vec::with_capacity(words.len());
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            result.push(match value(word) {
                Some(tens) if (20..100).contains(&tens) && tens.is_multiple_of(10) => {
                    let is_unit =
                        |next: &&String| value(next).is_some_and(|one| (1..10).contains(&one));
                    let unit = words.next_if(is_unit).and_then(value).unwrap_or(0);
                    (tens + unit).to_string()
                }
                Some(number) => number.to_string(),
                None => word.clone(),
            });
        }
        result
    }

    fn digit(&self, word: &str) -> Option<u64> {
        let value = self.words.get(word).copied().or_else(|| word.parse().ok());
        value.filter(|value| *value < 10)
    }

    fn apply_multipliers(&self, mut value: f64, words: &[&str], mut at: usize) -> (f64, usize) {
        while let Some(by) = words.get(at).and_then(|word| self.multipliers.get(*word)) {
            value *= *by as f64;
            at += 1;
        }
        (value, at)
    }

    fn parse_words(&self, words: &[&str], from: usize) -> Option<(f64, usize)> {
        let (mut total, mut group, mut at) = (0_u64, None::<u64>, from);
        let mut last = u64::MAX;
        while let Some(word) = words.get(at) {
            if let Some(value) = self.words.get(*word) {
                let fits = match group {
                    None => true,
                    Some(group) => {
                        let tail = group % 100;
                        (tail == 0 && group >= 100 && *value < 100)
                            || (tail >= 20 && tail % 10 == 0 && (1..10).contains(value))
                    }
                };
                if !fits {
                    break;
                }
                group = Some(group.unwrap_or(0) + value);
            } else if let Some(by) = self.multipliers.get(*word) {
                match group {
                    Some(hundreds @ 1..100) if *by == 100 => group = Some(hundreds * 100),
                    Some(group_value) if *by > 100 && *by < last => {
                        total = total.saturating_add(group_value.saturating_mul(*by));
                        last = *by;
                        group = None;
                    }
                    _ => break,
                }
            } else if self.is_joining_and(word, group, total)
                && self.continues_number(words.get(at + 1))
            {
                // The `and` of `two hundred and five` has no value.
            } else {
                break;
            }
            at += 1;
        }
        let value = total.saturating_add(group.unwrap_or(0));
        (at > from).then_some((value as f64, at))
    }

    fn is_joining_and(&self, word: &str, group: Option<u64>, total: u64) -> bool {
        let hundreds = match group {
            Some(group) => group >= 100 && group.is_multiple_of(100),
            None => total > 0,
        };
        hundreds && self.and.iter().any(|and| and == word)
    }

    fn continues_number(&self, next: Option<&&str>) -> bool {
        let value = next.and_then(|word| self.words.get(*word));
        value.is_some_and(|value| *value < 100)
    }
}

pub(crate) fn number_to_json(value: f64) -> Value {
    // 2^53: above it a double can't represent every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn parse_digits(word: &str) -> Option<f64> {
    let unsigned = word.trim_start_matches('-');
    let is_number = unsigned.starts_with(|first: char| first.is_ascii_digit());
    let value: f64 = word.parse().ok()?;
    (is_number && value.is_finite()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::super::Pack;

    #[test]
    fn spoken_numbers_are_parsed() {
        let numbers = Pack::english().numbers;
        for (text, value, taken) in [
            ("21", 21.0, 1),
            ("-5.5", -5.5, 1),
            ("zero", 0.0, 1),
            ("twenty one", 21.0, 2),
            ("twenty percent", 20.0, 1),
            ("one hundred", 100.0, 2),
            ("two hundred and five", 205.0, 4),
            ("two hundred and lamp", 200.0, 2),
            ("three thousand two hundred", 3200.0, 4),
            ("one million and one", 1_000_001.0, 4),
            ("5 thousand", 5000.0, 2),
            ("twenty one point five", 21.5, 4),
            ("minus three point two five", -3.25, 5),
            ("nineteen eighty", 19.0, 1),
            ("one two", 1.0, 1),
            ("one point", 1.0, 1),
            ("one and a half", 1.5, 4),
            ("twenty one and a quarter", 21.25, 5),
            ("one and a lamp", 1.0, 1),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(numbers.parse(&words), Some((value, taken)), "{text}");
        }
        for text in [
            "lamp",
            "and five",
            "minus",
            "inf",
            "nan",
            "point five x",
            "",
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(numbers.parse(&words), None, "{text}");
        }
    }
}
