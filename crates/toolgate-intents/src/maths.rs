//! Calculations as they are said, in the language of `math_eval`: `10 percent of 50` is `10% * 50`.

mod reader;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde::Deserialize;

use self::reader::{Reader, split};
use super::numbers::Numbers;

/// A language's words for calculating: a phrase, and what is written for it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Maths {
    /// Between two numbers: `plus`.
    pub(crate) operators: HashMap<String, String>,
    /// Before a number; what ends in `(` is a function of it: `square root of`.
    pub(crate) prefixes: HashMap<String, String>,
    /// After a number: `squared`.
    pub(crate) suffixes: HashMap<String, String>,
    /// Instead of a number: `pi`.
    pub(crate) constants: HashMap<String, String>,
    /// After a number: `inches`.
    pub(crate) units: HashMap<String, String>,
    /// Before the unit that is wanted: `in`.
    pub(crate) conversions: Vec<String>,
    /// Before two numbers: `add`.
    pub(crate) pairs: HashMap<String, Pair>,
    /// Before the unit that is wanted, where it comes first: `how many`.
    pub(crate) how_many: Vec<String>,
    /// Between that unit and what is converted: `are in`.
    pub(crate) contained: Vec<String>,
    /// For one of a unit: `a`.
    pub(crate) one: Vec<String>,
    /// Functions of an angle, and what is said after a number that has no unit there.
    pub(crate) angles: HashMap<String, String>,
    pub(crate) shown: HashMap<String, String>,
}

/// A calculation whose verb comes first: `subtract 5 from 7`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Pair {
    pub(crate) between: Vec<String>,
    pub(crate) operator: String,
    /// True if the second one is written first.
    pub(crate) turned: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Calculation {
    /// As `math_eval` wants it.
    pub(crate) written: String,
    pub(crate) said: Option<String>,
    /// True if it could be meant otherwise.
    pub(crate) unsure: bool,
}

impl Maths {
    pub(crate) fn merge(&mut self, more: Self) {
        self.operators.extend(more.operators);
        self.prefixes.extend(more.prefixes);
        self.suffixes.extend(more.suffixes);
        self.constants.extend(more.constants);
        self.units.extend(more.units);
        self.conversions.extend(more.conversions);
        self.pairs.extend(more.pairs);
        self.how_many.extend(more.how_many);
        self.contained.extend(more.contained);
        self.one.extend(more.one);
        self.angles.extend(more.angles);
        self.shown.extend(more.shown);
    }

    /// The calculation that a text is; `None` if it is anything else, or just a number.
    pub(crate) fn read(&self, text: &str, numbers: &Numbers) -> Option<Calculation> {
        let text = text.trim_end_matches(['?', '.', '=', ' ', ',']);
        // After a number it is a factorial, after a word it is delight.
        let bare = text.trim_end_matches(['?', '.', '!', '=', ' ', ',']);
        let is_factorial = bare.ends_with(|last: char| last.is_ascii_digit() || last == ')')
            && text[bare.len()..].starts_with('!');
        let factorial = usize::from(is_factorial);
        let words = split(&text[..bare.len() + factorial])?;
        let mut reader = Reader {
            maths: self,
            numbers,
            words: &words,
            at: 0,
            out: String::new(),
            works: false,
            unsure: false,
        };
        if !reader.how_many() && !reader.pair() {
            reader.expression(0)?;
            if reader.conversion() {
                reader.works = true;
            }
        }
        let is_all = reader.at == words.len() && reader.works;
        let (written, unsure) = (reader.out, reader.unsure);
        is_all.then(|| Calculation {
            said: self.said(&written),
            written,
            unsure,
        })
    }

    /// A calculation as people say it, where that differs from how it is written.
    fn said(&self, written: &str) -> Option<String> {
        let mut said = written.replace("% * ", "% of ");
        for (function, unit) in &self.angles {
            // Radians unless a unit is given, which few expect: so it is said.
            let inside = said.strip_prefix(function.as_str());
            let inside = inside.and_then(|rest| rest.strip_prefix('(')?.strip_suffix(')'));
            let is_bare = |inside: &&str| inside.parse::<f64>().is_ok();
            if let Some(inside) = inside.filter(is_bare) {
                said = format!("{function}({inside} {unit})");
                break;
            }
        }
        (said != written).then_some(said)
    }
}
