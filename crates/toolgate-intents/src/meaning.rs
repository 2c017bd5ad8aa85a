//! What a sentence can mean, and what is known when it is heard.

use std::collections::HashMap;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::Answer;
use super::lookups::Lookups;
use super::matcher::ListState;
use super::memory::SentenceMemory;

/// What a sentence comes to, or what follows its calls.
#[derive(Debug, Clone, PartialEq)]
pub enum Interpretation {
    /// Tools are to be called, all of them at once.
    Calls {
        /// In the order of the sentence.
        calls: Vec<SentenceCall>,
        /// What is to be said of the results, and what is to be done after them.
        memory: SentenceMemory,
    },
    /// The person is asked what is meant, or for what is missing.
    Question {
        /// The question.
        text: String,
        /// What the answer is about.
        memory: SentenceMemory,
    },
    /// Words that need no tool, or those for results.
    Answer(String),
    /// It was not understood, cannot be done, or failed, and this is why.
    Failure(String),
}

/// A call that a sentence means.
#[derive(Debug, Clone, PartialEq)]
pub struct SentenceCall {
    /// The name the tool is listed under.
    pub tool: String,
    /// Not validated yet: the executor does that.
    pub arguments: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Meaning {
    /// A tool is called, and then what else was wished for. `certain` if nothing was forgiven and nothing is free text.
    Act {
        choice: Choice,
        then: Vec<Choice>,
        certain: bool,
    },
    /// The person is asked which of these is meant, or whether the only one is.
    Ask {
        question: String,
        choices: Vec<Choice>,
    },
    Begun {
        question: String,
        words: String,
    },
    Say(String),
    Fail(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Choice {
    pub(crate) label: String,
    pub(crate) calls: Vec<Planned>,
    /// True if it must not be done by mistake.
    pub(crate) careful: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Planned {
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) answer: Answer,
    pub(crate) slots: Map<String, Value>,
}

/// Whether the tool of an intent is there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Presence {
    /// None is needed.
    Words,
    Ready {
        name: String,
        careful: bool,
    },
    Absent,
    /// Several of that name, and no way to tell which.
    Several(Vec<String>),
}

pub(crate) struct Moment<'a> {
    /// For each intent.
    pub(crate) tools: &'a [Presence],
    pub(crate) lists: &'a HashMap<usize, ListState>,
    pub(crate) today: Date,
    /// What the slots of the last calls were filled with.
    pub(crate) last: &'a [Map<String, Value>],
    pub(crate) lookups: &'a Lookups,
}

impl Moment<'_> {
    pub(super) fn is_ready(&self, intent: usize) -> bool {
        matches!(
            self.tools.get(intent),
            Some(Presence::Ready { .. } | Presence::Words)
        )
    }
}
