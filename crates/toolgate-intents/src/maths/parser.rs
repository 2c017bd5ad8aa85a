//! A recursive-descent parser from spoken words to a calculation.

use std::collections::HashMap;

use super::super::numbers::{NumberWords, number_to_json};
use super::super::words::plain_words;
use super::MathWords;

// Bounds the recursion: a sentence is untrusted input.
const MAX_DEPTH: usize = 24;
const MAX_PHRASE_LEN: usize = 5;

pub(super) struct CalculationParser<'a> {
    pub(super) maths: &'a MathWords,
    pub(super) numbers: &'a NumberWords,
    pub(super) words: &'a [String],
    pub(super) at: usize,
    pub(super) out: String,
    /// True once an operator, function or conversion was seen; a bare number is not a calculation.
    pub(super) works: bool,
    pub(super) unsure: bool,
}

impl<'a> CalculationParser<'a> {
    /// `how many inches are in a foot`.
    pub(super) fn how_many(&mut self) -> bool {
        let converted = (|| {
            let maths = self.maths;
            self.take_phrase(&maths.how_many)?;
            let unit = self.phrase(&maths.units).filter(|unit| !unit.is_empty())?;
            self.take_phrase(&maths.contained)?;
            if self.take_phrase(&maths.one).is_some() {
                let whole = self.phrase(&maths.units).filter(|unit| !unit.is_empty())?;
                self.out.extend(["1 ", whole]);
            } else {
                self.number()?;
            }
            self.out.extend([" to ", unit]);
            Some(())
        })();
        self.works = converted.is_some();
        self.rewind_unless(self.works)
    }

    /// `add 5 and 7`.
    pub(super) fn pair(&mut self) -> bool {
        let paired = (|| {
            let maths = self.maths;
            let (length, pair) = self.longest(&maths.pairs)?;
            self.at += length;
            self.operand(0, false)?;
            let first = std::mem::take(&mut self.out);
            self.take_phrase(&pair.between)?;
            self.operand(0, false)?;
            let second = std::mem::take(&mut self.out);
            let (first, second) = match pair.turned {
                true => (second, first),
                false => (first, second),
            };
            self.out = format!("{first} {} {second}", pair.operator);
            Some(())
        })();
        self.works = paired.is_some();
        self.rewind_unless(self.works)
    }

    fn rewind_unless(&mut self, keeps: bool) -> bool {
        if !keeps {
            self.at = 0;
            self.out.clear();
        }
        keeps
    }

    fn take_phrase(&mut self, phrases: &[String]) -> Option<()> {
        let rest = &self.words[self.at..];
        let is_next = |phrase: &&String| {
            let mut words = phrase.split(' ').zip(rest);
            phrase.split(' ').count() <= rest.len() && words.all(|(one, other)| one == other)
        };
        let lengths = phrases.iter().filter(is_next);
        self.at += lengths.map(|phrase| phrase.split(' ').count()).max()?;
        Some(())
    }

    pub(super) fn expression(&mut self, depth: usize) -> Option<()> {
        let start = self.out.len();
        self.operand(depth, false)?;
        while let Some(operator) = self.phrase(&self.maths.operators) {
            self.works = true;
            match operator {
                // No space before the sign: a percentage belongs to its number.
                "% *" => self.out.push_str("% * "),
                // `20 percent off 50` is written after the price it reduces.
                "% off" => {
                    let percent = self.out.split_off(start);
                    self.operand(depth, true)?;
                    self.out.extend([" - ", percent.as_str(), "%"]);
                    continue;
                }
                _ => self.out.extend([" ", operator, " "]),
            }
            self.operand(depth, true)?;
        }
        Some(())
    }

    fn operand(&mut self, depth: usize, after_operator: bool) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        if let Some(prefix) = self.phrase(&self.maths.prefixes) {
            let is_spoken = self.words[self.at - 1] != "-";
            if prefix == "-" && is_spoken && self.negative_power().is_some() {
                return Some(());
            }
            self.out.push_str(prefix);
            self.works |= prefix != "-" && !prefix.is_empty();
            if !prefix.ends_with('(') {
                return self.operand(depth + 1, false);
            }
            if self.symbol("(") {
                self.arguments(depth + 1)?;
            } else {
                self.operand(depth + 1, false)?;
            }
            self.out.push(')');
        } else if self.symbol("(") {
            self.out.push('(');
            self.arguments(depth + 1)?;
            self.out.push(')');
        } else if let Some(constant) = self.phrase(&self.maths.constants) {
            self.out.push_str(constant);
            self.works = true;
        } else if let Some(unit) = self.phrase(&self.maths.units).filter(|_| after_operator) {
            self.out.push_str(unit);
        } else {
            self.number()?;
        }
        while let Some((length, suffix)) = self.peek(&self.maths.suffixes) {
            // The longer phrase wins: `percent of` is an operator, `percent` alone a suffix.
            let longer = self.peek(&self.maths.operators);
            if longer.is_some_and(|(operator, _)| operator > length) {
                break;
            }
            self.at += length;
            self.out.push_str(suffix);
            self.works |= !suffix.is_empty();
        }
        Some(())
    }

    /// Most people mean the square of minus five by `negative five squared`, but not all: it
    /// is marked as unsure.
    fn negative_power(&mut self) -> Option<()> {
        let (at, length) = (self.at, self.out.len());
        self.out.push_str("(-");
        let power = self.number().and_then(|()| {
            let power = self.phrase(&self.maths.suffixes)?;
            power.starts_with('^').then_some(power)
        });
        let Some(power) = power else {
            self.at = at;
            self.out.truncate(length);
            return None;
        };
        self.out.extend([")", power]);
        (self.works, self.unsure) = (true, true);
        Some(())
    }

    fn arguments(&mut self, depth: usize) -> Option<()> {
        self.expression(depth)?;
        while self.symbol(",") {
            self.out.push_str(", ");
            self.expression(depth)?;
        }
        self.symbol(")").then_some(())
    }

    fn number(&mut self) -> Option<()> {
        let rest: Vec<&str> = self.words[self.at..]
            .iter()
            .take(16)
            .map(String::as_str)
            .collect();
        // A minus sign was already handled as an operator or a prefix.
        let is_sign = rest.first().is_some_and(|word| {
            word.starts_with('-') || self.numbers.minus.iter().any(|minus| minus == word)
        });
        let (value, taken) = self.numbers.parse(&rest).filter(|_| !is_sign)?;
        // Digits are copied verbatim: they may be more precise than a float.
        match (
            taken,
            rest[0].starts_with(|first: char| first.is_ascii_digit()),
        ) {
            (1, true) => self.out.push_str(rest[0]),
            _ => self.out.push_str(&number_to_json(value).to_string()),
        }
        self.at += taken;
        if let Some(unit) = self.phrase(&self.maths.units) {
            self.write_unit(unit);
        }
        Some(())
    }

    // Currencies have an empty unit, because money is counted and not converted.
    fn write_unit(&mut self, unit: &str) {
        if !unit.is_empty() {
            self.out.extend([" ", unit]);
        }
    }

    pub(super) fn conversion(&mut self) -> bool {
        let start = self.at;
        let is_conversion = |word: &String| self.maths.conversions.contains(word);
        if !self.words.get(self.at).is_some_and(is_conversion) {
            return false;
        }
        self.at += 1;
        let unit = self.phrase(&self.maths.units);
        let Some(unit) = unit.filter(|unit| !unit.is_empty()) else {
            self.at = start;
            return false;
        };
        self.out.extend([" to ", unit]);
        if self.symbol("/") {
            let Some(per) = self.phrase(&self.maths.units) else {
                return false;
            };
            self.out.extend(["/", per]);
        }
        true
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        let found = self.words.get(self.at).is_some_and(|word| word == symbol);
        self.at += usize::from(found);
        found
    }

    fn phrase(&mut self, phrases: &'a HashMap<String, String>) -> Option<&'a str> {
        let (length, written) = self.peek(phrases)?;
        self.at += length;
        Some(written)
    }

    fn peek(&self, phrases: &'a HashMap<String, String>) -> Option<(usize, &'a str)> {
        let (length, written) = self.longest(phrases)?;
        Some((length, written.as_str()))
    }

    fn longest<T>(&self, phrases: &'a HashMap<String, T>) -> Option<(usize, &'a T)> {
        let rest = &self.words[self.at..];
        let longest = rest.len().min(MAX_PHRASE_LEN);
        (1..=longest)
            .rev()
            .find_map(|length| Some((length, phrases.get(&rest[..length].join(" "))?)))
    }
}

/// Splits a text into numbers, words and signs. `None` if it has a sign that no calculation has.
pub(super) fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut plain = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let sign = match letter {
            '+' | '*' | '/' | '^' | '(' | ')' | '!' | '%' | '√' | '°' => letter,
            '-' | '−' | '–' => '-',
            '×' | '·' => '*',
            '÷' => '/',
            '²' | '³' => letter,
            '$' | '€' | '£' => continue,
            ',' if !letters.peek().is_some_and(char::is_ascii_digit) => ',',
            _ if letter.is_alphanumeric() || letter.is_whitespace() || "'’,.".contains(letter) => {
                plain.push(letter);
                continue;
            }
            _ => return None,
        };
        words.extend(plain_words(&plain));
        plain.clear();
        words.push(sign.to_string());
    }
    words.extend(plain_words(&plain));
    Some(with_thousands(words))
}

/// `1 000` is one number.
fn with_thousands(words: Vec<String>) -> Vec<String> {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let mut joined: Vec<String> = Vec::new();
    let mut may_go_on = false;
    for word in words {
        match joined.last_mut() {
            Some(last) if may_go_on && word.len() == 3 && is_number(&word) => last.push_str(&word),
            _ => {
                may_go_on = is_number(&word) && (1..=3).contains(&word.len());
                joined.push(word);
            }
        }
    }
    joined
}
