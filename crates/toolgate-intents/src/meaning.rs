//! What a sentence can mean, and the context it is matched in.

use std::collections::{BTreeSet, HashMap};

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::AnswerTemplate;
use super::lookups::LookupCache;
use super::matcher::ListState;
use super::memory::SentenceMemory;

/// The result of interpreting a sentence.
#[derive(Debug, Clone, PartialEq)]
pub enum Interpretation {
    /// Tools to call, all at once.
    Calls {
        calls: Vec<SentenceCall>,
        /// How to report the results, and which calls come after them.
        memory: SentenceMemory,
    },
    /// A question to the person: which of several things they mean, or what is missing.
    Question {
        text: String,
        memory: SentenceMemory,
    },
    /// An answer that needs no call, or that reports results.
    Answer(String),
    /// The sentence was not understood, can't be carried out, or its calls failed.
    /// The text says why.
    Failure(String),
}

/// A tool call that a sentence means.
#[derive(Debug, Clone, PartialEq)]
pub struct SentenceCall {
    /// The name under which the tool is listed.
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
    /// Asks which choice is meant, or asks to confirm the only one.
    Ask {
        question: String,
        choices: Vec<CallChoice>,
    },
    /// Asks for a missing part. `words` is the sentence so far, to which the reply is joined.
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
    // True if the calls must not happen by mistake.
    pub(crate) careful: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlannedCall {
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) answer: AnswerTemplate,
    pub(crate) slots: Map<String, Value>,
}

/// The slots whose lists must be read before a sentence can be understood. Returned as an error:
/// the caller reads the lists and tries again.
pub(crate) type MissingLists = BTreeSet<usize>;

/// Whether the tool of an intent is available.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ToolPresence {
    /// The intent answers without a call.
    NotNeeded,
    Ready {
        name: String,
        careful: bool,
    },
    Absent,
    /// Several tools have this name. These are their listed names.
    Ambiguous(Vec<String>),
}

pub(crate) struct MatchContext<'a> {
    /// The state of each intent's tool, in the order of the pack.
    pub(crate) tools: &'a [ToolPresence],
    pub(crate) lists: &'a HashMap<usize, ListState>,
    pub(crate) today: Date,
    /// The slots of the last calls, to which `it` refers.
    pub(crate) last_slots: &'a [Map<String, Value>],
    pub(crate) lookups: &'a LookupCache,
}

impl MatchContext<'_> {
    pub(super) fn is_ready(&self, intent: usize) -> bool {
        matches!(
            self.tools.get(intent),
            Some(ToolPresence::Ready { .. } | ToolPresence::NotNeeded)
        )
    }
}
