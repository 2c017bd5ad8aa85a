//! What a sentence means as the answer to a question.
//!
//! Consent is never guessed: what is no yes counts as none, and a sentence of its own is no answer. Some words of a choice are
//! enough to tell it from others, and never enough to agree to the only one.

use std::collections::BTreeSet;

use super::engine::{Engine, phrases};
use super::items::Item;
use super::lists::{Found, Names};
use super::matcher::{ListState, Mercy};
use super::meaning::{Choice, Meaning, Moment};
use super::talk::MOST_TOGETHER;
use super::words::{Sentence, plain_words};

impl Engine {
    /// What a sentence means after a question; `None` if it is not understood as it stands.
    pub(crate) fn answer_to(
        &self,
        text: &str,
        choices: &[Choice],
        moment: &Moment<'_>,
    ) -> Result<Option<Meaning>, BTreeSet<usize>> {
        let Some(sentence) = Sentence::read(text, &self.replace) else {
            return Ok(None);
        };
        let words = sentence.words();
        if is_one_of(&self.pack.replies.no, &words) {
            return Ok(Some(self.cancelled()));
        }
        // Who asks back does not agree.
        let agrees = is_harmless(choices) || !text.trim_end().ends_with('?');
        let plain = || self.plain_answer(&words, choices);
        if let Some(meaning) = agrees.then(plain).flatten() {
            return Ok(Some(meaning));
        }
        if let Some(meaning) = self.meant(&sentence, moment, Mercy::None)? {
            return Ok(Some(meaning));
        }
        Ok(match self.is_no(text) {
            true => Some(self.cancelled()),
            false if agrees => self.told_apart(&words, choices, moment),
            false => None,
        })
    }

    /// True if a text begins with a word of no.
    pub(crate) fn is_no(&self, text: &str) -> bool {
        let words = plain_words(text);
        longest_at(&phrases(&self.pack.replies.no), self.after_fillers(&words)).is_some()
    }

    pub(super) fn after_fillers<'a>(&self, words: &'a [String]) -> &'a [String] {
        let mut rest = words;
        while let Some(first) = rest.first() {
            let fillers = self.fillers(first).iter().map(|(filler, _)| filler);
            match longest_at(fillers, rest) {
                Some(length) => rest = &rest[length..],
                None => break,
            }
        }
        rest
    }

    pub(crate) fn cancelled(&self) -> Meaning {
        Meaning::Say(self.text("cancelled").to_owned())
    }

    /// Yes, all of them, or one of the choices word for word. Where there is but one, its thing is enough: `front door` for
    /// `unlock Front Door`.
    fn plain_answer(&self, words: &[String], choices: &[Choice]) -> Option<Meaning> {
        let replies = &self.pack.replies;
        if choices.len() > 1 && is_one_of(&replies.all, words) {
            let calls = choices.iter().flat_map(|choice| choice.calls.clone());
            return Some(act(Choice {
                label: String::new(),
                calls: calls.take(MOST_TOGETHER).collect(),
                careful: choices.iter().any(|choice| choice.careful),
            }));
        }
        if is_one_of(&replies.yes, words) {
            return Some(match choices {
                [only] => act(only.clone()),
                _ => self.ask(choices.to_vec()),
            });
        }
        let in_digits = |words: &[String]| self.pack.numbers.in_digits(words);
        let said = [in_digits(words), in_digits(&self.telling(words))];
        let is_said = |name: &str| said.contains(&self.spoken().words(name));
        let is_meant = |choice: &&Choice| {
            let thing = self.thing(choice).filter(|_| choices.len() == 1);
            is_said(&choice.label) || thing.is_some_and(|(_, name)| is_said(name))
        };
        choices.iter().find(is_meant).cloned().map(act)
    }

    /// What some words of a choice, where it is, or its place in the question tell it from the others by.
    fn told_apart(
        &self,
        words: &[String],
        choices: &[Choice],
        moment: &Moment<'_>,
    ) -> Option<Meaning> {
        let telling = self.telling(words);
        let items = choices.iter().map(|choice| Item {
            place: self.place_of(choice, moment),
            ..Item::named(&choice.label)
        });
        let names = Names::live(items.collect(), &[], &self.spoken());
        let mercy = is_harmless(choices);
        let Some((found, entries)) = names.find(&telling, &self.spoken(), mercy) else {
            let ordinal = *self.pack.replies.ordinals.get(&telling.join(" "))?;
            let index = if ordinal == 0 { choices.len() } else { ordinal }.checked_sub(1)?;
            let choice = choices.get(index).filter(|_| choices.len() > 1)?;
            return Some(act(choice.clone()));
        };
        let is_meant = |choice: &&Choice| entries.iter().any(|entry| entry.label == choice.label);
        let meant: Vec<Choice> = choices.iter().filter(is_meant).cloned().collect();
        match meant.as_slice() {
            [] => None,
            [one] if choices.len() > 1 && (found == Found::Whole || one.calls.len() == 1) => {
                Some(act(one.clone()))
            }
            _ => Some(self.ask(meant)),
        }
    }

    fn thing<'a>(&self, choice: &'a Choice) -> Option<(usize, &'a str)> {
        let [call] = choice.calls.as_slice() else {
            return None;
        };
        let slots = call.slots.iter();
        let mut things =
            slots.filter_map(|(name, value)| Some((self.list_of(name)?, value.as_str()?)));
        let first = things.next()?;
        things.next().is_none().then_some(first)
    }

    fn place_of(&self, choice: &Choice, moment: &Moment<'_>) -> Option<String> {
        let (slot, _) = self
            .thing(choice)
            .filter(|(_, name)| *name == choice.label)?;
        match moment.lists.get(&slot)? {
            ListState::Known(names) => names.place_of(&choice.label).map(str::to_owned),
            ListState::Unreadable(_) => None,
        }
    }

    fn telling(&self, words: &[String]) -> Vec<String> {
        let small = phrases(&self.pack.replies.small);
        let (mut telling, mut rest) = (Vec::new(), words);
        while let [first, others @ ..] = rest {
            rest = match longest_at(&small, rest) {
                Some(length) => &rest[length..],
                None => {
                    telling.push(first.clone());
                    others
                }
            };
        }
        match telling.is_empty() {
            true => words.to_vec(),
            false => telling,
        }
    }
}

fn act(choice: Choice) -> Meaning {
    Meaning::Act {
        choice,
        then: Vec::new(),
        certain: true,
    }
}

/// True if there is something to choose from, and nothing of it must not be done by mistake.
pub(super) fn is_harmless(choices: &[Choice]) -> bool {
    choices.len() > 1 && !choices.iter().any(|choice| choice.careful)
}

fn is_one_of(texts: &[String], words: &[String]) -> bool {
    phrases(texts).iter().any(|phrase| phrase == words)
}

/// How many words the longest of these phrases takes at the beginning of others.
fn longest_at<'a>(
    phrases: impl IntoIterator<Item = &'a Vec<String>>,
    words: &[String],
) -> Option<usize> {
    let phrases = phrases.into_iter();
    let here = phrases.filter(|phrase| words.starts_with(phrase));
    here.map(Vec::len).max()
}
