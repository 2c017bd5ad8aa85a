//! Sentences with gaps, as they stand in a language pack.
//!
//! `turn (on|off) [the] {device}`: words, one of several, what may be left out, and slots. `{action:on|off}` is a slot that
//! takes one of the words written there.

use std::fmt;

use serde::Deserialize;

use super::words::plain_words;

const LONGEST: usize = 1000;
const DEEPEST: usize = 16;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Template {
    pub(crate) text: String,
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    Word(String),
    Slot(Slot),
    /// One of these; an empty one if nothing at all will do.
    OneOf(Vec<Vec<Part>>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slot {
    pub(crate) name: String,
    /// The words that fill it, where they stand in the template.
    pub(crate) choices: Vec<String>,
}

/// Why a template can not be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the sentence '{template}' is wrong at character {at}: {reason}")]
pub(crate) struct TemplateError {
    template: String,
    /// Counted from 1.
    at: usize,
    reason: String,
}

impl TryFrom<String> for Template {
    type Error = TemplateError;

    fn try_from(text: String) -> Result<Self, TemplateError> {
        Self::read(&text)
    }
}

impl Template {
    pub(crate) fn read(text: &str) -> Result<Self, TemplateError> {
        let letters: Vec<char> = text.chars().take(LONGEST + 1).collect();
        let mut reader = Reader {
            letters: &letters,
            at: 0,
            depth: 0,
        };
        let parts = match letters.len() {
            0..=LONGEST => reader.all(),
            _ => Err(format!("it is longer than {LONGEST} characters")),
        };
        let problem = |at: usize, reason| TemplateError {
            template: toolgate_core::escape(&letters.iter().take(200).collect::<String>()),
            at: at + 1,
            reason,
        };
        let parts = parts.map_err(|reason| problem(reader.at, reason))?;
        if may_be_empty(&parts) {
            return Err(problem(0, "it may be nothing at all".to_owned()));
        }
        Ok(Self {
            text: text.to_owned(),
            parts,
        })
    }

    pub(crate) fn slots(&self) -> Vec<&Slot> {
        let mut found = Vec::new();
        collect_slots(&self.parts, &mut found);
        found
    }
}

fn collect_slots<'a>(parts: &'a [Part], found: &mut Vec<&'a Slot>) {
    for part in parts {
        match part {
            Part::Word(_) => {}
            Part::Slot(slot) => found.push(slot),
            Part::OneOf(choices) => choices.iter().for_each(|parts| collect_slots(parts, found)),
        }
    }
}

fn may_be_empty(parts: &[Part]) -> bool {
    parts.iter().all(|part| match part {
        Part::Word(_) | Part::Slot(_) => false,
        Part::OneOf(choices) => choices.iter().any(|parts| may_be_empty(parts)),
    })
}

struct Reader<'a> {
    letters: &'a [char],
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn all(&mut self) -> Result<Vec<Part>, String> {
        let parts = self.sequence()?;
        match self.peek() {
            None => Ok(parts),
            Some('|') => Err("a | must stand inside ( ) or [ ]".to_owned()),
            Some(other) => Err(format!("this {other} closes nothing")),
        }
    }

    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn sequence(&mut self) -> Result<Vec<Part>, String> {
        let mut parts = Vec::new();
        loop {
            match self.peek() {
                None | Some(')' | ']' | '}' | '|') => return Ok(parts),
                Some('(') => parts.push(Part::OneOf(self.choices(')')?)),
                Some('[') => {
                    let mut choices = self.choices(']')?;
                    choices.push(Vec::new());
                    parts.push(Part::OneOf(choices));
                }
                Some('{') => parts.push(Part::Slot(self.slot()?)),
                Some(_) => {
                    let words = self.until(|letter| "()[]{}|".contains(letter));
                    parts.extend(plain_words(&words).into_iter().map(Part::Word));
                }
            }
        }
    }

    fn choices(&mut self, end: char) -> Result<Vec<Vec<Part>>, String> {
        let open = self.at;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("it is nested deeper than {DEEPEST}"));
        }
        let mut choices = Vec::new();
        loop {
            self.at += 1;
            choices.push(self.sequence()?);
            match self.peek() {
                Some('|') => {}
                Some(found) if found == end => break,
                Some(found) => return Err(format!("expected {end} and found {found}")),
                None => {
                    self.at = open;
                    return Err(format!("the {end} that closes this is missing"));
                }
            }
        }
        self.at += 1;
        self.depth -= 1;
        Ok(choices)
    }

    fn slot(&mut self) -> Result<Slot, String> {
        let open = self.at;
        self.at += 1;
        let name = self.until(|letter| !(letter.is_ascii_alphanumeric() || letter == '_'));
        if name.is_empty() {
            return Err("a slot needs a name of letters, digits and _".to_owned());
        }
        let mut choices = Vec::new();
        if self.peek() == Some(':') {
            self.at += 1;
            let words = self.until(|letter| "()[]{}".contains(letter));
            choices = words
                .split('|')
                .map(|word| word.trim().to_owned())
                .collect();
            if choices.iter().any(|choice| plain_words(choice).is_empty()) {
                return Err("each of a slot's choices needs a word".to_owned());
            }
        }
        match self.peek() {
            Some('}') => self.at += 1,
            Some(found) => return Err(format!("expected }} and found {found}")),
            None => {
                self.at = open;
                return Err("the } that closes this is missing".to_owned());
            }
        }
        Ok(Slot { name, choices })
    }

    fn until(&mut self, is_end: impl Fn(char) -> bool) -> String {
        let rest = self.letters[self.at..].iter();
        let text: String = rest.take_while(|letter| !is_end(**letter)).collect();
        self.at += text.chars().count();
        text
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(parts: &[Part]) -> String {
        let shown = parts.iter().map(|part| match part {
            Part::Word(word) => word.clone(),
            Part::Slot(slot) if slot.choices.is_empty() => format!("<{}>", slot.name),
            Part::Slot(slot) => format!("<{}={}>", slot.name, slot.choices.join("/")),
            Part::OneOf(choices) => {
                let choices: Vec<String> = choices.iter().map(|parts| shown(parts)).collect();
                format!("({})", choices.join("|"))
            }
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_alternatives_options_and_slots_are_read() {
        for (text, expected) in [
            (
                "turn (on|off) [the] {device}",
                "turn (on|off) (the|) <device>",
            ),
            (
                "what time is it [in {zone}]",
                "what time is it (in <zone>|)",
            ),
            ("turn {action: on | off} {x}", "turn <action=on/off> <x>"),
            ("[a|b (c|d)] e", "(a|b (c|d)|) e"),
            ("What's up-to Été?", "what's up to ete"),
            ("(a|) b", "(a|) b"),
        ] {
            assert_eq!(shown(&Template::read(text).unwrap().parts), expected);
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let deep = format!("a {}", "(".repeat(40));
        for (text, at, reason) in [
            ("turn (on|off", 6, "the ) that closes this is missing"),
            ("a [b", 3, "the ] that closes this is missing"),
            ("a {b", 3, "the } that closes this is missing"),
            ("a (b]", 5, "expected ) and found ]"),
            ("a ) b", 3, "this ) closes nothing"),
            ("a } b", 3, "this } closes nothing"),
            ("a|b", 2, "a | must stand inside ( ) or [ ]"),
            ("{}", 2, "a slot needs a name of letters, digits and _"),
            ("{a b}", 3, "expected } and found  "),
            ("{a:}", 4, "each of a slot's choices needs a word"),
            ("", 1, "it may be nothing at all"),
            ("[a] [b]", 1, "it may be nothing at all"),
            (&deep, 19, "it is nested deeper than 16"),
            (&"a".repeat(1001), 1, "it is longer than 1000 characters"),
        ] {
            let error = Template::read(text).unwrap_err();
            assert_eq!((error.at, error.reason.as_str()), (at, reason), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[a-z(){}\\[\\]|: é]{0,60}") {
            let read = Template::read(&text);
            prop_assert!(read.is_ok() || read.unwrap_err().to_string().contains("is wrong at"));
        }
    }
}
