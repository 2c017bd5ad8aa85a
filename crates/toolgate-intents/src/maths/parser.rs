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
    pub(super) written: String,
    /// True once an operator, function or conversion was seen; a bare number is not a calculation.
    pub(super) is_calculation: bool,
    pub(super) unsure: bool,
}

impl<'a> CalculationParser<'a> {
    /// `how many inches are in a foot`.
    pub(super) fn parse_how_many(&mut self) -> bool {
        let converted = (|| {
            let maths = self.maths;
            self.take_phrase(&maths.how_many)?;
            let unit = self
                .take_mapped_phrase(&maths.units)
                .filter(|unit| !unit.is_empty())?;
            self.take_phrase(&maths.contained)?;
            if self.take_phrase(&maths.one).is_some() {
                let whole = self
                    .take_mapped_phrase(&maths.units)
                    .filter(|unit| !unit.is_empty())?;
                self.written.extend(["1 ", whole]);
            } else {
                self.parse_number()?;
            }
            self.written.extend([" to ", unit]);
            Some(())
        })();
        self.is_calculation = converted.is_some();
        self.rewind_unless(self.is_calculation)
    }

    /// `add 5 and 7`.
    pub(super) fn parse_pair(&mut self) -> bool {
        let paired = (|| {
            let maths = self.maths;
            let (length, pair) = self.longest_phrase(&maths.pairs)?;
            self.at += length;
            self.parse_operand(0, false)?;
            let first = std::mem::take(&mut self.written);
            self.take_phrase(&pair.between)?;
            self.parse_operand(0, false)?;
            let second = std::mem::take(&mut self.written);
            let (first, second) = match pair.turned {
                true => (second, first),
                false => (first, second),
            };
            self.written = format!("{first} {} {second}", pair.operator);
            Some(())
        })();
        self.is_calculation = paired.is_some();
        self.rewind_unless(self.is_calculation)
    }

    fn rewind_unless(&mut self, keeps: bool) -> bool {
        if !keeps {
            self.at = 0;
            self.written.clear();
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

    pub(super) fn parse_expression(&mut self, depth: usize) -> Option<()> {
        let start = self.written.len();
        self.parse_operand(depth, false)?;
        while let Some(operator) = self.take_mapped_phrase(&self.maths.operators) {
            self.is_calculation = true;
            match operator {
                // No space before the sign: a percentage belongs to its number.
                "% *" => self.written.push_str("% * "),
                // `20 percent off 50` is written after the price it reduces.
                "% off" => {
                    let percent = self.written.split_off(start);
                    self.parse_operand(depth, true)?;
                    self.written.extend([" - ", percent.as_str(), "%"]);
                    continue;
                }
                _ => self.written.extend([" ", operator, " "]),
            }
            self.parse_operand(depth, true)?;
        }
        Some(())
    }

    fn parse_operand(&mut self, depth: usize, after_operator: bool) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        if let Some(prefix) = self.take_mapped_phrase(&self.maths.prefixes) {
            let is_spoken = self.words[self.at - 1] != "-";
            if prefix == "-" && is_spoken && self.parse_negative_power().is_some() {
                return Some(());
            }
            self.written.push_str(prefix);
            self.is_calculation |= prefix != "-" && !prefix.is_empty();
            if !prefix.ends_with('(') {
                return self.parse_operand(depth + 1, false);
            }
            if self.take_symbol("(") {
                self.parse_arguments(depth + 1)?;
            } else {
                self.parse_operand(depth + 1, false)?;
            }
            self.written.push(')');
        } else if self.take_symbol("(") {
            self.written.push('(');
            self.parse_arguments(depth + 1)?;
            self.written.push(')');
        } else if let Some(constant) = self.take_mapped_phrase(&self.maths.constants) {
            self.written.push_str(constant);
            self.is_calculation = true;
        } else if let Some(unit) = self
            .take_mapped_phrase(&self.maths.units)
            .filter(|_| after_operator)
        {
            self.written.push_str(unit);
        } else {
            self.parse_number()?;
        }
        while let Some((length, suffix)) = self.peek_mapped_phrase(&self.maths.suffixes) {
            // The longer phrase wins: `percent of` is an operator, `percent` alone a suffix.
            let longer = self.peek_mapped_phrase(&self.maths.operators);
            if longer.is_some_and(|(operator, _)| operator > length) {
                break;
            }
            self.at += length;
            self.written.push_str(suffix);
            self.is_calculation |= !suffix.is_empty();
        }
        Some(())
    }

    /// `negative five squared`. Most people mean the square of minus five, but not all, so the
    /// calculation is marked as unsure.
    fn parse_negative_power(&mut self) -> Option<()> {
        let (at, length) = (self.at, self.written.len());
        self.written.push_str("(-");
        let power = self.parse_number().and_then(|()| {
            let power = self.take_mapped_phrase(&self.maths.suffixes)?;
            power.starts_with('^').then_some(power)
        });
        let Some(power) = power else {
            self.at = at;
            self.written.truncate(length);
            return None;
        };
        self.written.extend([")", power]);
        (self.is_calculation, self.unsure) = (true, true);
        Some(())
    }

    fn parse_arguments(&mut self, depth: usize) -> Option<()> {
        self.parse_expression(depth)?;
        while self.take_symbol(",") {
            self.written.push_str(", ");
            self.parse_expression(depth)?;
        }
        self.take_symbol(")").then_some(())
    }

    fn parse_number(&mut self) -> Option<()> {
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
            (1, true) => self.written.push_str(rest[0]),
            _ => self.written.push_str(&number_to_json(value).to_string()),
        }
        self.at += taken;
        if let Some(unit) = self.take_mapped_phrase(&self.maths.units) {
            self.write_unit(unit);
        }
        Some(())
    }

    // Currencies have an empty unit, because amounts of money are never converted.
    fn write_unit(&mut self, unit: &str) {
        if !unit.is_empty() {
            self.written.extend([" ", unit]);
        }
    }

    pub(super) fn parse_conversion(&mut self) -> bool {
        let start = self.at;
        let is_conversion = |word: &String| self.maths.conversions.contains(word);
        if !self.words.get(self.at).is_some_and(is_conversion) {
            return false;
        }
        self.at += 1;
        let unit = self.take_mapped_phrase(&self.maths.units);
        let Some(unit) = unit.filter(|unit| !unit.is_empty()) else {
            self.at = start;
            return false;
        };
        self.written.extend([" to ", unit]);
        if self.take_symbol("/") {
            let Some(per) = self.take_mapped_phrase(&self.maths.units) else {
                return false;
            };
            self.written.extend(["/", per]);
        }
        true
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = self.words.get(self.at).is_some_and(|word| word == symbol);
        self.at += usize::from(found);
        found
    }

    fn take_mapped_phrase(&mut self, phrases: &'a HashMap<String, String>) -> Option<&'a str> {
        let (length, written) = self.peek_mapped_phrase(phrases)?;
        self.at += length;
        Some(written)
    }

    fn peek_mapped_phrase(&self, phrases: &'a HashMap<String, String>) -> Option<(usize, &'a str)> {
        let (length, written) = self.longest_phrase(phrases)?;
        Some((length, written.as_str()))
    }

    fn longest_phrase<T>(&self, phrases: &'a HashMap<String, T>) -> Option<(usize, &'a T)> {
        let rest = &self.words[self.at..];
        let longest = rest.len().min(MAX_PHRASE_LEN);
        (1..=longest)
            .rev()
            .find_map(|length| Some((length, phrases.get(&rest[..length].join(" "))?)))
    }
}

/// Splits a text into numbers, words and signs. `None` if it has a sign that doesn't
/// belong in a calculation.
pub(super) fn split_signs(text: &str) -> Option<Vec<String>> {
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
    Some(join_thousands(words))
}

/// Joins numbers such as `1 000`.
fn join_thousands(words: Vec<String>) -> Vec<String> {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let mut joined: Vec<String> = Vec::new();
    let mut may_continue = false;
    for word in words {
        match joined.last_mut() {
            Some(last) if may_continue && word.len() == 3 && is_number(&word) => {
                last.push_str(&word);
            }
            _ => {
                may_continue = is_number(&word) && (1..=3).contains(&word.len());
                joined.push(word);
            }
        }
    }
    joined
}
