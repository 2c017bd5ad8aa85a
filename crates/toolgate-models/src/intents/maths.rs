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
    /// How units are written for people.
    pub(crate) shown: HashMap<String, String>,
}

/// A calculation whose verb comes first: `subtract 5 from 7`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Pair {
    /// Said between the two.
    pub(crate) between: Vec<String>,
    pub(crate) operator: String,
    /// True if the second one is written first.
    pub(crate) turned: bool,
}

/// A calculation.
#[derive(Debug, PartialEq)]
pub(crate) struct Calculation {
    /// As `math_eval` wants it.
    pub(crate) written: String,
    /// As people say it, where that differs.
    pub(crate) said: Option<String>,
    /// True if it could be meant otherwise.
    pub(crate) unsure: bool,
}

impl Maths {
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

struct Reader<'a> {
    maths: &'a Maths,
    numbers: &'a Numbers,
    words: &'a [String],
    at: usize,
    out: String,
    /// True once there is something to calculate.
    works: bool,
    /// True if it could be meant otherwise.
    unsure: bool,
}

impl<'a> Reader<'a> {
    /// `how many inches are in a foot`.
    fn how_many(&mut self) -> bool {
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
    fn pair(&mut self) -> bool {
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

    /// Takes the longest of these phrases that comes next.
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

    fn expression(&mut self, depth: usize) -> Option<()> {
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

    /// The unit that is wanted, if one is.
    fn conversion(&mut self) -> bool {
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

    /// Takes the longest phrase of these that comes next.
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
            ("5!", "5!"),
            ("100!", "100!"),
            ("(2+3)!", "(2 + 3)!"),
            ("two plus two!", "2 + 2"),
            ("add 5 and 7", "5 + 7"),
            ("subtract 5 from 7", "7 - 5"),
            ("multiply six by seven", "6 * 7"),
            ("divide 10 by 4", "10 / 4"),
            ("the sum of 5 and 7", "5 + 7"),
            ("three quarters of 80", "3 / 4 * 80"),
            ("10 percent off 50", "50 - 10%"),
            ("10% off $50", "50 - 10%"),
            ("one and a half times two", "1.5 * 2"),
            ("2 to the 8th", "2 ^ 8"),
            ("2 to the eighth power", "2^8"),
            ("a 20 percent tip on 45 dollars", "20% * 45"),
            ("1 000 times 3", "1000 * 3"),
            ("1 000 000 plus 5", "1000000 + 5"),
            ("negative five squared", "(-5)^2"),
            ("minus 3 squared", "(-3)^2"),
            ("-5 squared", "-5^2"),
            ("10 minus 3 squared", "10 - 3^2"),
            ("72 f to c", "72 degF to degC"),
            ("100 F in C", "100 degF to degC"),
            ("how many inches in a foot", "1 ft to inch"),
            ("how many inches are there in a foot", "1 ft to inch"),
            ("how many grams in 2 pounds", "2 lb to g"),
            ("sin 90", "sin(90)"),
            (
                "123456789012345678901234567890 plus 1",
                "123456789012345678901234567890 + 1",
            ),
        ] {
            let read = pack.maths.read(text, &pack.numbers);
            let written = read.map_or(String::new(), |read| read.written);
            assert_eq!(written, expected, "{text}");
        }
    }

    #[test]
    fn what_people_say_otherwise_is_known() {
        let pack = Pack::english();
        for (text, said, unsure) in [
            ("12 percent of 80", Some("12% of 80"), false),
            ("sin 90", Some("sin(90 radians)"), false),
            ("sin 90 degrees", None, false),
            ("negative five squared", None, true),
            ("2 + 2", None, false),
        ] {
            let read = pack.maths.read(text, &pack.numbers).unwrap();
            assert_eq!(
                (read.said.as_deref(), read.unsure),
                (said, unsure),
                "{text}"
            );
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
            "a 5",
            "5th",
            "5 dollars",
            "5 dollars in euros",
            "add 5",
            "how many inches",
            "how many lamps in a foot",
            &deep,
        ] {
            assert_eq!(pack.maths.read(text, &pack.numbers), None, "{text}");
        }
    }
}
