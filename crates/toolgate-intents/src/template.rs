//! Parses the sentence templates of language packs.
//!
//! `turn (on|off) [the] {device}` has words, alternatives, an optional word and a slot.
//! `{action:on|off}` is a slot that takes one of the listed words.

use std::fmt;

use serde::Deserialize;

use super::words::plain_words;

// Packs are user input: both limits keep a template from exhausting time or stack.
const MAX_CHARS: usize = 1000;
const MAX_DEPTH: usize = 16;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct SentenceTemplate {
    pub(crate) text: String,
    pub(crate) parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TemplatePart {
    Word(String),
    Slot(TemplateSlot),
    /// Any one of these. An empty alternative makes the part optional.
    OneOf(Vec<Vec<TemplatePart>>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TemplateSlot {
    pub(crate) name: String,
    /// The words that fill it, if the template lists them.
    pub(crate) choices: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the sentence '{template}' has an error at character {at}: {reason}")]
pub(crate) struct TemplateError {
    template: String,
    /// In characters, counted from 1.
    at: usize,
    reason: String,
}

impl TryFrom<String> for SentenceTemplate {
    type Error = TemplateError;

    fn try_from(text: String) -> Result<Self, TemplateError> {
        Self::parse(&text)
    }
}

impl SentenceTemplate {
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateError> {
        let letters: Vec<char> = text.chars().take(MAX_CHARS + 1).collect();
        let mut parser = TemplateParser {
            letters: &letters,
            at: 0,
            depth: 0,
        };
        let parts = match letters.len() {
            0..=MAX_CHARS => parser.parse_all(),
            _ => Err(format!("it is longer than {MAX_CHARS} characters")),
        };
        let problem = |at: usize, reason| TemplateError {
            template: toolgate_core::text::escape(&letters.iter().take(200).collect::<String>()),
            at: at + 1,
            reason,
        };
        let parts = parts.map_err(|reason| problem(parser.at, reason))?;
        if may_be_empty(&parts) {
            return Err(problem(0, "it also matches an empty sentence".to_owned()));
        }
        Ok(Self {
            text: text.to_owned(),
            parts,
        })
    }

    pub(crate) fn slots(&self) -> Vec<&TemplateSlot> {
        let mut found = Vec::new();
        collect_slots(&self.parts, &mut found);
        found
    }
}

fn collect_slots<'a>(parts: &'a [TemplatePart], found: &mut Vec<&'a TemplateSlot>) {
    for part in parts {
        match part {
            TemplatePart::Word(_) => {}
            TemplatePart::Slot(slot) => found.push(slot),
            TemplatePart::OneOf(choices) => {
                choices.iter().for_each(|parts| collect_slots(parts, found));
            }
        }
    }
}

fn may_be_empty(parts: &[TemplatePart]) -> bool {
    parts.iter().all(|part| match part {
        TemplatePart::Word(_) | TemplatePart::Slot(_) => false,
        TemplatePart::OneOf(choices) => choices.iter().any(|parts| may_be_empty(parts)),
    })
}

struct TemplateParser<'a> {
    letters: &'a [char],
    at: usize,
    depth: usize,
}

impl TemplateParser<'_> {
    fn parse_all(&mut self) -> Result<Vec<TemplatePart>, String> {
        let parts = self.parse_sequence()?;
        match self.peek() {
            None => Ok(parts),
            Some('|') => Err("a | must be inside ( ) or [ ]".to_owned()),
            Some(other) => Err(format!("this {other} has no opening bracket")),
        }
    }

    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn parse_sequence(&mut self) -> Result<Vec<TemplatePart>, String> {
        let mut parts = Vec::new();
        loop {
            match self.peek() {
                None | Some(')' | ']' | '}' | '|') => return Ok(parts),
                Some('(') => parts.push(TemplatePart::OneOf(self.parse_choices(')')?)),
                Some('[') => {
                    let mut choices = self.parse_choices(']')?;
                    choices.push(Vec::new());
                    parts.push(TemplatePart::OneOf(choices));
                }
                Some('{') => parts.push(TemplatePart::Slot(self.parse_slot()?)),
                Some(_) => {
                    let words = self.take_until(|letter| "()[]{}|".contains(letter));
                    parts.extend(plain_words(&words).into_iter().map(TemplatePart::Word));
                }
            }
        }
    }

    fn parse_choices(&mut self, end: char) -> Result<Vec<Vec<TemplatePart>>, String> {
        let open = self.at;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("it is nested deeper than {MAX_DEPTH}"));
        }
        let mut choices = Vec::new();
        loop {
            self.at += 1;
            choices.push(self.parse_sequence()?);
            match self.peek() {
                Some('|') => {}
                Some(found) if found == end => break,
                Some(found) => return Err(format!("expected {end} but found {found}")),
                None => {
                    self.at = open;
                    return Err(format!("the closing {end} is missing"));
                }
            }
        }
        self.at += 1;
        self.depth -= 1;
        Ok(choices)
    }

    fn parse_slot(&mut self) -> Result<TemplateSlot, String> {
        let open = self.at;
        self.at += 1;
        let name = self.take_until(|letter| !(letter.is_ascii_alphanumeric() || letter == '_'));
        if name.is_empty() {
            return Err("a slot needs a name of letters, digits and _".to_owned());
        }
        let mut choices = Vec::new();
        if self.peek() == Some(':') {
            self.at += 1;
            let words = self.take_until(|letter| "()[]{}".contains(letter));
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
            Some(found) => return Err(format!("expected }} but found {found}")),
            None => {
                self.at = open;
                return Err("the closing } is missing".to_owned());
            }
        }
        Ok(TemplateSlot { name, choices })
    }

    fn take_until(&mut self, is_end: impl Fn(char) -> bool) -> String {
        let rest = self.letters[self.at..].iter();
        let text: String = rest.take_while(|letter| !is_end(**letter)).collect();
        self.at += text.chars().count();
        text
    }
}

impl fmt::Display for SentenceTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(parts: &[TemplatePart]) -> String {
        let shown = parts.iter().map(|part| match part {
            TemplatePart::Word(word) => word.clone(),
            TemplatePart::Slot(slot) if slot.choices.is_empty() => format!("<{}>", slot.name),
            TemplatePart::Slot(slot) => format!("<{}={}>", slot.name, slot.choices.join("/")),
            TemplatePart::OneOf(choices) => {
                let choices: Vec<String> = choices.iter().map(|parts| shown(parts)).collect();
                format!("({})", choices.join("|"))
            }
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_alternatives_options_and_slots_are_parsed() {
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
            assert_eq!(
                shown(&SentenceTemplate::parse(text).unwrap().parts),
                expected
            );
        }
    }

    #[test]
    fn errors_have_a_position_and_a_reason() {
        let deep = format!("a {}", "(".repeat(40));
        for (text, at, reason) in [
            ("turn (on|off", 6, "the closing ) is missing"),
            ("a [b", 3, "the closing ] is missing"),
            ("a {b", 3, "the closing } is missing"),
            ("a (b]", 5, "expected ) but found ]"),
            ("a ) b", 3, "this ) has no opening bracket"),
            ("a } b", 3, "this } has no opening bracket"),
            ("a|b", 2, "a | must be inside ( ) or [ ]"),
            ("{}", 2, "a slot needs a name of letters, digits and _"),
            ("{a b}", 3, "expected } but found  "),
            ("{a:}", 4, "each of a slot's choices needs a word"),
            ("", 1, "it also matches an empty sentence"),
            ("[a] [b]", 1, "it also matches an empty sentence"),
            (&deep, 19, "it is nested deeper than 16"),
            (&"a".repeat(1001), 1, "it is longer than 1000 characters"),
        ] {
            let error = SentenceTemplate::parse(text).unwrap_err();
            assert_eq!((error.at, error.reason.as_str()), (at, reason), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[a-z(){}\\[\\]|: é]{0,60}") {
            let read = SentenceTemplate::parse(&text);
            prop_assert!(read.is_ok() || read.unwrap_err().to_string().contains("has an error at"));
        }
    }
}
