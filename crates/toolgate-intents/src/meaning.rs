//! What a sentence can mean, and the context it is matched in.

use std::collections::HashMap;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::AnswerTemplate;
use super::lookups::LookupCache;
use super::matcher::ListState;
use super::memory::SentenceMemory;

#[derive(Debug, Clone, PartialEq)]
pub enum Interpretation {
    /// Tools to call, all at once.
    Calls {
        calls: Vec<SentenceCall>,
        /// How to report the results, and which calls come after them.
        memory: SentenceMemory,
    },
    /// The person must choose what is meant, or add what is missing.
    Question {
        text: String,
        memory: SentenceMemory,
    },
    Answer(String),
    /// Not understood, impossible, or failed; the text says why.
    Failure(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct SentenceCall {
    /// The listed name of the tool.
    pub tool: String,
    /// Not validated yet: the executor does that.
    pub arguments: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SentenceMeaning {
    /// Calls, and the further steps that follow. `certain` if no mistake was tolerated and
    /// nothing is free text.
    Act {
        choice: CallChoice,
        then: Vec<CallChoice>,
        certain: bool,
    },
    /// Asks which choice is meant, or to confirm the only one.
    Ask {
        question: String,
        choices: Vec<CallChoice>,
    },
    AskMissing {
        question: String,
        words: String,
    },
    Say(String),
    Fail(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CallChoice {
    pub(crate) label: String,
    pub(crate) calls: Vec<PlannedCall>,
    // True if it must not happen by mistake.
    pub(crate) careful: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlannedCall {
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) answer: AnswerTemplate,
    pub(crate) slots: Map<String, Value>,
}

/// Whether the tool of an intent is available.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ToolPresence {
    Words,
    Ready { name: String, careful: bool },
    Absent,
    Several(Vec<String>),
}

pub(crate) struct MatchContext<'a> {
    /// The state of each intent's tool, in the order of the pack.
    pub(crate) tools: &'a [ToolPresence],
    pub(crate) lists: &'a HashMap<usize, ListState>,
    pub(crate) today: Date,
    pub(crate) last: &'a [Map<String, Value>],
    pub(crate) lookups: &'a LookupCache,
}

impl MatchContext<'_> {
    pub(super) fn is_ready(&self, intent: usize) -> bool {
        matches!(
            self.tools.get(intent),
            Some(ToolPresence::Ready { .. } | ToolPresence::Words)
        )
    }
}
