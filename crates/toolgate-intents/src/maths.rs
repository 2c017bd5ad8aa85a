//! Translates spoken calculations for `math_eval`: `10 percent of 50` becomes `10% * 50`.

mod parser;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde::Deserialize;

use self::parser::{CalculationParser, split_signs};
use super::numbers::NumberWords;

/// A language's phrases for calculations, each with the text that replaces it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MathWords {
    /// Between two numbers: `plus`.
    pub(crate) operators: HashMap<String, String>,
    /// Before a number: `square root of`. A replacement that ends in `(` is a function.
    pub(crate) prefixes: HashMap<String, String>,
    /// After a number: `squared`.
    pub(crate) suffixes: HashMap<String, String>,
    /// Instead of a number: `pi`.
    pub(crate) constants: HashMap<String, String>,
    pub(crate) units: HashMap<String, String>,
    /// Before the target unit: `in`.
    pub(crate) conversions: Vec<String>,
    pub(crate) pairs: HashMap<String, PairOperation>,
    /// Before a target unit at the start of a sentence: `how many`.
    pub(crate) how_many: Vec<String>,
    /// Between a leading target unit and the quantity: `are in`.
    pub(crate) contained: Vec<String>,
    pub(crate) one: Vec<String>,
    /// Trigonometric functions, with the unit to say after a number without one.
    pub(crate) angles: HashMap<String, String>,
    /// The spoken names of units.
    pub(crate) shown: HashMap<String, String>,
}

/// A calculation whose verb comes first: `subtract 5 from 7`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PairOperation {
    pub(crate) between: Vec<String>,
    pub(crate) operator: String,
    /// True if the operands change places: `subtract 5 from 7` is `7 - 5`.
    pub(crate) turned: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SpokenCalculation {
    /// In the syntax of `math_eval`.
    pub(crate) written: String,
    /// How to say it, if that differs from `written`.
    pub(crate) said: Option<String>,
    /// True if people disagree about the meaning.
    pub(crate) unsure: bool,
}

impl MathWords {
    pub(crate) fn merge(&mut self, more: Self) {
        extend_all!(self, more: operators, prefixes, suffixes, constants, units, conversions);
        extend_all!(self, more: pairs, how_many, contained, one, angles, shown);
    }

    /// Parses a calculation. `None` if the text is anything else, or only a number.
    pub(crate) fn parse(&self, text: &str, numbers: &NumberWords) -> Option<SpokenCalculation> {
        let text = text.trim_end_matches(['?', '.', '=', ' ', ',']);
        // An exclamation mark is a factorial after a number, and only emphasis after a word.
        let bare = text.trim_end_matches(['?', '.', '!', '=', ' ', ',']);
        let is_factorial = bare.ends_with(|last: char| last.is_ascii_digit() || last == ')')
            && text[bare.len()..].starts_with('!');
        let factorial = usize::from(is_factorial);
        let words = split_signs(&text[..bare.len() + factorial])?;
        let mut parser = CalculationParser {
            maths: self,
            numbers,
            words: &words,
            at: 0,
            written: String::new(),
            is_calculation: false,
            unsure: false,
        };
        if !parser.parse_how_many() && !parser.parse_pair() {
            parser.parse_expression(0)?;
            if parser.parse_conversion() {
                parser.is_calculation = true;
            }
        }
        let is_all = parser.at == words.len() && parser.is_calculation;
        let (written, unsure) = (parser.written, parser.unsure);
        is_all.then(|| SpokenCalculation {
            said: self.spoken_form(&written),
            written,
            unsure,
        })
    }

    fn spoken_form(&self, written: &str) -> Option<String> {
        let mut said = written.replace("% * ", "% of ");
        for (function, unit) in &self.angles {
            // `math_eval` assumes radians, which few people expect, so the answer names the unit.
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
