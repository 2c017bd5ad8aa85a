//! From words to a calculation, in one pass.

use std::collections::HashMap;

use super::super::numbers::{Numbers, to_json};
use super::super::words::plain_words;
use super::Maths;

const DEEPEST: usize = 24;
/// The most words of one phrase of a pack.
const LONGEST_PHRASE: usize = 5;

/// Reads the words of a calculation one after the other, and writes it down.
pub(super) struct Reader<'a> {
    pub(super) maths: &'a Maths,
    pub(super) numbers: &'a Numbers,
    pub(super) words: &'a [String],
    pub(super) at: usize,
    pub(super) out: String,
    /// True once there is something to calculate.
    pub(super) works: bool,
    /// True if it could be meant otherwise.
    pub(super) unsure: bool,
}

impl<'a> Reader<'a> {
    /// `how many inches are in a foot`.
    pub(super) fn how_many(&mut self) -> bool {
        let converted = (|| {
            let maths = self.maths;
            self.one_of(&maths.how_many)?;
            let unit = self.phrase(&maths.units).filter(|unit| !unit.is_empty())?;
            self.one_of(&maths.contained)?;
            if self.one_of(&maths.one).is_some() {
                let whole = self.phrase(&maths.units).filter(|unit| !unit.is_empty())?;
                self.out.extend(["1 ", whole]);
            } else {
                self.number()?;
            }
            self.out.extend([" to ", unit]);
            Some(())
        })();
        self.works = converted.is_some();
        self.rewound_unless(self.works)
    }

    /// `add 5 and 7`.
    pub(super) fn pair(&mut self) -> bool {
        let paired = (|| {
            let maths = self.maths;
            let (length, pair) = self.longest(&maths.pairs)?;
            self.at += length;
            self.operand(0, false)?;
            let first = std::mem::take(&mut self.out);
            self.one_of(&pair.between)?;
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
        self.rewound_unless(self.works)
    }

    fn rewound_unless(&mut self, keeps: bool) -> bool {
        if !keeps {
            self.at = 0;
            self.out.clear();
        }
        keeps
    }

    fn one_of(&mut self, phrases: &[String]) -> Option<()> {
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
                // A percentage belongs to its number.
                "% *" => self.out.push_str("% * "),
                // So much less than what comes next.
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
        if depth > DEEPEST {
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
            // `percent of` is more than `percent`.
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

    /// `negative five squared` is the square of minus five for most who say it, and not for all.
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
        // A minus is an operator or a prefix, and was seen as such.
        let is_sign = rest.first().is_some_and(|word| {
            word.starts_with('-') || self.numbers.minus.iter().any(|minus| minus == word)
        });
        let (value, taken) = self.numbers.read(&rest).filter(|_| !is_sign)?;
        // Digits stay as they were written: they may have more of them than a float.
        match (
            taken,
            rest[0].starts_with(|first: char| first.is_ascii_digit()),
        ) {
            (1, true) => self.out.push_str(rest[0]),
            _ => self.out.push_str(&to_json(value).to_string()),
        }
        self.at += taken;
        if let Some(unit) = self.phrase(&self.maths.units) {
            self.push_unit(unit);
        }
        Some(())
    }

    /// Money is counted and not converted: its name is not written.
    fn push_unit(&mut self, unit: &str) {
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
        let longest = rest.len().min(LONGEST_PHRASE);
        (1..=longest)
            .rev()
            .find_map(|length| Some((length, phrases.get(&rest[..length].join(" "))?)))
    }
}

/// Numbers, words and signs; `None` if there is a sign that no calculation has.
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
