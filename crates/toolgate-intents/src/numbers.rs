//! Numbers as they are said: `21`, `twenty one`, `two hundred and five`, `minus three point five`.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Number, Value};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Numbers {
    /// `three`, `twenty`.
    pub(crate) words: HashMap<String, u64>,
    /// `hundred`, `thousand`.
    pub(crate) multipliers: HashMap<String, u64>,
    pub(crate) and: Vec<String>,
    pub(crate) point: Vec<String>,
    pub(crate) minus: Vec<String>,
    /// Said after a whole number: `and a half`.
    pub(crate) fractions: HashMap<String, f64>,
}

/// The most words of a fraction.
const LONGEST_FRACTION: usize = 3;

impl Numbers {
    pub(crate) fn merge(&mut self, more: Self) {
        self.words.extend(more.words);
        self.multipliers.extend(more.multipliers);
        self.and.extend(more.and);
        self.point.extend(more.point);
        self.minus.extend(more.minus);
        self.fractions.extend(more.fractions);
    }

    /// The longest number at the start of some words, and how many of them it takes.
    pub(crate) fn read(&self, words: &[&str]) -> Option<(f64, usize)> {
        let is_one_of = |list: &[String], at: usize| {
            words
                .get(at)
                .is_some_and(|word| list.iter().any(|one| one == word))
        };
        let sign = usize::from(is_one_of(&self.minus, 0));
        let (whole, mut at) = match words.get(sign).and_then(|word| digits(word)) {
            Some(value) => self.multiplied(value, words, sign + 1),
            None => self.spoken(words, sign)?,
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
            // As precise as it was said, without the noise of adding tenths.
            value = format!("{value:.9}").parse().unwrap_or(value);
        }
        let fraction = (1..=LONGEST_FRACTION).rev().find_map(|length| {
            let phrase = words.get(at..at + length)?.join(" ");
            Some((*self.fractions.get(&phrase)?, length))
        });
        if let Some((fraction, length)) = fraction {
            value += fraction;
            at += length;
        }
        Some((if sign == 1 { -value } else { value }, at))
    }

    /// Words with their numbers as digits, so that `Switch One` is `switch 1` and `Lamp Twenty One` is `lamp 21`.
    pub(crate) fn in_digits(&self, words: &[String]) -> Vec<String> {
        let value = |word: &String| self.words.get(word).copied();
        let mut told = Vec::with_capacity(words.len());
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            told.push(match value(word) {
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
        told
    }

    fn digit(&self, word: &str) -> Option<u64> {
        let value = self.words.get(word).copied().or_else(|| word.parse().ok());
        value.filter(|value| *value < 10)
    }

    fn multiplied(&self, mut value: f64, words: &[&str], mut at: usize) -> (f64, usize) {
        while let Some(by) = words.get(at).and_then(|word| self.multipliers.get(*word)) {
            value *= *by as f64;
            at += 1;
        }
        (value, at)
    }

    fn spoken(&self, words: &[&str], from: usize) -> Option<(f64, usize)> {
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
            } else if self.joins(word, group, total) && self.goes_on(words.get(at + 1)) {
            } else {
                break;
            }
            at += 1;
        }
        let value = total.saturating_add(group.unwrap_or(0));
        (at > from).then_some((value as f64, at))
    }

    fn joins(&self, word: &str, group: Option<u64>, total: u64) -> bool {
        let hundreds = match group {
            Some(group) => group >= 100 && group.is_multiple_of(100),
            None => total > 0,
        };
        hundreds && self.and.iter().any(|and| and == word)
    }

    fn goes_on(&self, next: Option<&&str>) -> bool {
        next.and_then(|word| self.words.get(*word))
            .is_some_and(|value| *value < 100)
    }
}

/// A number as JSON: whole ones as such.
pub(crate) fn to_json(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn digits(word: &str) -> Option<f64> {
    let is_number = word
        .trim_start_matches('-')
        .starts_with(|first: char| first.is_ascii_digit());
    word.parse()
        .ok()
        .filter(|value: &f64| is_number && value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::super::Pack;

    #[test]
    fn numbers_are_read_as_they_are_said() {
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
            assert_eq!(numbers.read(&words), Some((value, taken)), "{text}");
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
            assert_eq!(numbers.read(&words), None, "{text}");
        }
    }
}
