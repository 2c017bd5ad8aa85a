//! Interprets a sentence as the reply to a question.
//!
//! Consent is never guessed: only a yes or the full name confirms a single choice. A complete
//! sentence is understood as a new request. Some words of a choice are enough to select it among
//! others, but never to confirm the only one.

use super::engine::{SentenceEngine, split_phrases};
use super::items::ListItem;
use super::matcher::{ListState, MatchTolerance};
use super::meaning::{CallChoice, MatchContext, MissingLists, SentenceMeaning};
use super::name_index::{NameIndex, NameMatch};
use super::understanding::MAX_CALLS;
use super::words::{Sentence, plain_words};

impl SentenceEngine {
    pub(crate) fn interpret_reply(
        &self,
        text: &str,
        choices: &[CallChoice],
        context: &MatchContext<'_>,
    ) -> Result<Option<SentenceMeaning>, MissingLists> {
        let Some(sentence) = Sentence::parse(text, &self.replace) else {
            return Ok(None);
        };
        let words = sentence.words();
        if is_one_of(&self.pack.replies.no, &words) {
            return Ok(Some(self.cancelled()));
        }
        // A reply that is a question, such as `the front door?`, is not a yes.
        let agrees = is_harmless(choices) || !text.trim_end().ends_with('?');
        let plain = || self.exact_reply(&words, choices);
        if let Some(meaning) = agrees.then(plain).flatten() {
            return Ok(Some(meaning));
        }
        if let Some(meaning) = self.find_meaning(&sentence, context, MatchTolerance::None)? {
            return Ok(Some(meaning));
        }
        Ok(match self.is_no(text) {
            true => Some(self.cancelled()),
            false if agrees => self.select_choice(&words, choices, context),
            false => None,
        })
    }

    /// True if a text begins with a word for no, after fillers.
    pub(crate) fn is_no(&self, text: &str) -> bool {
        let words = plain_words(text);
        let no = split_phrases(&self.pack.replies.no);
        longest_prefix(&no, self.without_fillers(&words)).is_some()
    }

    pub(super) fn without_fillers<'a>(&self, words: &'a [String]) -> &'a [String] {
        let mut rest = words;
        while let Some(first) = rest.first() {
            let fillers = self.fillers(first).iter().map(|(filler, _)| filler);
            match longest_prefix(fillers, rest) {
                Some(length) => rest = &rest[length..],
                None => break,
            }
        }
        rest
    }

    pub(crate) fn cancelled(&self) -> SentenceMeaning {
        SentenceMeaning::Say(self.text("cancelled").to_owned())
    }

    /// Accepts yes, all, or one of the choices word for word. For a single choice its subject is
    /// enough: `front door` for `unlock Front Door`.
    fn exact_reply(&self, words: &[String], choices: &[CallChoice]) -> Option<SentenceMeaning> {
        let replies = &self.pack.replies;
        if choices.len() > 1 && is_one_of(&replies.all, words) {
            let calls = choices.iter().flat_map(|choice| choice.calls.clone());
            return Some(act_on(CallChoice {
                label: String::new(),
                calls: calls.take(MAX_CALLS).collect(),
                careful: choices.iter().any(|choice| choice.careful),
            }));
        }
        if is_one_of(&replies.yes, words) {
            return Some(match choices {
                [only] => act_on(only.clone()),
                _ => self.ask_choice(choices.to_vec()),
            });
        }
        let in_digits = |words: &[String]| self.pack.numbers.with_digits(words);
        let said = [
            in_digits(words),
            in_digits(&self.distinguishing_words(words)),
        ];
        let is_said = |name: &str| said.contains(&self.normalizer().normalize(name));
        let is_match = |choice: &&CallChoice| {
            let subject = self.single_subject(choice).filter(|_| choices.len() == 1);
            is_said(&choice.label) || subject.is_some_and(|(_, name)| is_said(name))
        };
        choices.iter().find(is_match).cloned().map(act_on)
    }

    fn select_choice(
        &self,
        words: &[String],
        choices: &[CallChoice],
        context: &MatchContext<'_>,
    ) -> Option<SentenceMeaning> {
        let distinguishing = self.distinguishing_words(words);
        let items = choices.iter().map(|choice| ListItem {
            location: self.location_of(choice, context),
            ..ListItem::from_name(&choice.label)
        });
        let names = NameIndex::from_items(items.collect(), &[], &self.normalizer());
        let tolerance = is_harmless(choices);
        let Some((found, entries)) = names.find(&distinguishing, &self.normalizer(), tolerance)
        else {
            let ordinal = *self.pack.replies.ordinals.get(&distinguishing.join(" "))?;
            let index = if ordinal == 0 { choices.len() } else { ordinal }.checked_sub(1)?;
            let choice = choices.get(index).filter(|_| choices.len() > 1)?;
            return Some(act_on(choice.clone()));
        };
        let is_match =
            |choice: &&CallChoice| entries.iter().any(|entry| entry.label == choice.label);
        let meant: Vec<CallChoice> = choices.iter().filter(is_match).cloned().collect();
        match meant.as_slice() {
            [] => None,
            [one] if choices.len() > 1 && (found == NameMatch::Whole || one.calls.len() == 1) => {
                Some(act_on(one.clone()))
            }
            _ => Some(self.ask_choice(meant)),
        }
    }

    fn single_subject<'a>(&self, choice: &'a CallChoice) -> Option<(usize, &'a str)> {
        let [call] = choice.calls.as_slice() else {
            return None;
        };
        let slots = call.slots.iter();
        let mut subjects =
            slots.filter_map(|(name, value)| Some((self.list_slot(name)?, value.as_str()?)));
        let first = subjects.next()?;
        subjects.next().is_none().then_some(first)
    }

    fn location_of(&self, choice: &CallChoice, context: &MatchContext<'_>) -> Option<String> {
        let subject = self.single_subject(choice);
        let (slot, _) = subject.filter(|(_, name)| *name == choice.label)?;
        match context.lists.get(&slot)? {
            ListState::Known(names) => names.location_of(&choice.label).map(str::to_owned),
            ListState::Unreadable(_) => None,
        }
    }

    fn distinguishing_words(&self, words: &[String]) -> Vec<String> {
        let small = split_phrases(&self.pack.replies.small);
        let (mut distinguishing, mut rest) = (Vec::new(), words);
        while let [first, others @ ..] = rest {
            rest = match longest_prefix(&small, rest) {
                Some(length) => &rest[length..],
                None => {
                    distinguishing.push(first.clone());
                    others
                }
            };
        }
        match distinguishing.is_empty() {
            true => words.to_vec(),
            false => distinguishing,
        }
    }
}

fn act_on(choice: CallChoice) -> SentenceMeaning {
    SentenceMeaning::Act {
        choice,
        then: Vec::new(),
        certain: true,
    }
}

pub(super) fn is_harmless(choices: &[CallChoice]) -> bool {
    choices.len() > 1 && !choices.iter().any(|choice| choice.careful)
}

fn is_one_of(texts: &[String], words: &[String]) -> bool {
    split_phrases(texts).iter().any(|phrase| phrase == words)
}

fn longest_prefix<'a>(
    phrases: impl IntoIterator<Item = &'a Vec<String>>,
    words: &[String],
) -> Option<usize> {
    let phrases = phrases.into_iter();
    let here = phrases.filter(|phrase| words.starts_with(phrase));
    here.map(Vec::len).max()
}
