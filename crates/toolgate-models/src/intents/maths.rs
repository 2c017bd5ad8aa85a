//! Calculations as they are said, in the language of `math_eval`: `10 percent of 50` is `10% * 50`.

use std::collections::HashMap;

use serde::Deserialize;

use super::numbers::{Numbers, to_json};
use super::words::plain_words;

const DEEPEST: usize = 24;
/// The most words of one phrase of a pack.
const LONGEST_PHRASE: usize = 5;

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
}

impl Maths {
    /// The calculation that a text is; `None` if it is anything else, or just a number.
    pub(crate) fn read(&self, text: &str, numbers: &Numbers) -> Option<String> {
        let words = split(text.trim_end_matches(['?', '.', '!', '=', ' ', ',']))?;
        let mut reader = Reader {
            maths: self,
            numbers,
            words: &words,
            at: 0,
            out: String::new(),
            works: false,
        };
        reader.expression(0)?;
        if reader.conversion() {
            reader.works = true;
        }
        (reader.at == words.len() && reader.works).then_some(reader.out)
    }
}

struct Reader<'a> {
    maths: &'a Maths,
    numbers: &'a Numbers,
    words: &'a [String],
    at: usize,
    out: String,
    /// True once there is something to calculate.
    works: bool,
}

impl<'a> Reader<'a> {
    fn expression(&mut self, depth: usize) -> Option<()> {
        self.operand(depth, false)?;
        while let Some(operator) = self.phrase(&self.maths.operators) {
            self.works = true;
            match operator {
                // A percentage belongs to its number.
                "% *" => self.out.push_str("% * "),
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
            self.out.push_str(prefix);
            self.works |= prefix != "-";
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
            self.works = true;
        }
        Some(())
    }

    /// What stands inside brackets, up to the closing one.
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
            self.out.extend([" ", unit]);
        }
        Some(())
    }

    /// The unit that is wanted, if one is.
    fn conversion(&mut self) -> bool {
        let start = self.at;
        let is_conversion = |word: &String| self.maths.conversions.contains(word);
        if !self.words.get(self.at).is_some_and(is_conversion) {
            return false;
        }
        self.at += 1;
        let Some(unit) = self.phrase(&self.maths.units) else {
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

    /// Takes the longest phrase of these that comes next.
    fn phrase(&mut self, phrases: &'a HashMap<String, String>) -> Option<&'a str> {
        let (length, written) = self.peek(phrases)?;
        self.at += length;
        Some(written)
    }

    fn peek(&self, phrases: &'a HashMap<String, String>) -> Option<(usize, &'a str)> {
        let rest = &self.words[self.at..];
        let longest = rest.len().min(LONGEST_PHRASE);
        (1..=longest)
            .rev()
            .find_map(|length| Some((length, phrases.get(&rest[..length].join(" "))?.as_str())))
    }
}

/// Numbers, words and signs; `None` if there is a sign that no calculation has.
fn split(text: &str) -> Option<Vec<String>> {
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
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::super::Pack;

    #[test]
    fn calculations_are_written_as_math_eval_wants_them() {
        let pack = Pack::english();
        for (text, expected) in [
            ("2 plus 2", "2 + 2"),
            ("2+2", "2 + 2"),
            ("two plus twenty one", "2 + 21"),
            ("5 times 7?", "5 * 7"),
            ("5 x 7", "5 * 7"),
            ("5 × 7 − 3", "5 * 7 - 3"),
            ("10 divided by 4", "10 / 4"),
            ("10 percent of 50", "10% * 50"),
            ("12% of 80", "12% * 80"),
            ("100 plus 10 percent", "100 + 10%"),
            ("sqrt 16", "sqrt(16)"),
            ("sqrt(16)", "sqrt(16)"),
            ("the square root of sixteen plus 9", "sqrt(16) + 9"),
            ("√16", "sqrt(16)"),
            ("3 squared", "3^2"),
            ("3 cubed plus 1", "3^3 + 1"),
            ("3²", "3^2"),
            ("2 to the power of 10", "2 ^ 10"),
            ("2^10", "2 ^ 10"),
            ("(1.2 + 3) * 2", "(1.2 + 3) * 2"),
            ("-5 + 3", "-5 + 3"),
            ("minus five plus 3", "-5 + 3"),
            ("5 minus -3", "5 - -3"),
            ("5 minus minus 3", "5 - -3"),
            ("half of 50", "0.5 * 50"),
            ("7 mod 3", "7 mod 3"),
            ("log(8, 2)", "log(8, 2)"),
            ("5 factorial", "5!"),
            ("5!+1", "5! + 1"),
            ("5 feet in inches", "5 ft to inch"),
            ("20 degrees celsius in fahrenheit", "20 degC to degF"),
            ("20°C to °F", "20 degC to degF"),
            ("90 km/h to m/s", "90 km / h to m/s"),
            ("1,000 times 3", "1000 * 3"),
            ("pi", "pi"),
            ("two pi", ""),
            (
                "123456789012345678901234567890 plus 1",
                "123456789012345678901234567890 + 1",
            ),
        ] {
            let read = pack.maths.read(text, &pack.numbers);
            assert_eq!(read.as_deref().unwrap_or(""), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_calculation_is_not_taken_for_one() {
        let pack = Pack::english();
        let deep = format!("1 + {}1", "(".repeat(500));
        for text in [
            "the weather",
            "5",
            "minus 5",
            "five",
            "",
            "plus",
            "2 plus",
            "2 + + x",
            "the time",
            "times",
            "a",
            "x",
            "in",
            "5 apples",
            "2 plus two apples",
            "(2",
            "2)",
            "()",
            "1; import('fs')",
            "a = 3",
            "sqrt",
            "2 in 3",
            "5 cm in lamps",
            "[1, 2]",
            &deep,
        ] {
            assert_eq!(pack.maths.read(text, &pack.numbers), None, "{text}");
        }
    }
}
