//! What is remembered of a conversation: a question that was asked back, the calls that were made,
//! and what is still to be done.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::Answer;
use super::meaning::{Choice, Interpretation, Planned, SentenceCall};
use super::replies;

/// What an answer remembers for the next one. The caller keeps it with the answer, also in a file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SentenceMemory {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) asked: Vec<Choice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) begun: Option<String>,
    /// Tools were called, and this is to be said of their results, in the same order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) called: Vec<ResultPhrase>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) then: Vec<Choice>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ResultPhrase {
    pub(crate) answer: Answer,
    pub(crate) slots: Map<String, Value>,
}

/// What a sentence is heard after.
#[derive(Debug, Clone, Copy, Default)]
pub struct SentenceContext<'a> {
    /// The answer right before it, if sentences gave it: its memory, and its words as far as the
    /// person heard them.
    pub answer: Option<(&'a SentenceMemory, &'a str)>,
    /// The memory of the last calls, if they were a sentence's: `it` may be what they were about.
    pub calls: Option<&'a SentenceMemory>,
}

/// Calls that ended, with their results in the same order.
#[derive(Debug, Clone)]
pub struct CompletedCalls<'a> {
    /// None if they were not a sentence's.
    pub memory: Option<&'a SentenceMemory>,
    /// What each came to in words or JSON, and whether it failed.
    pub results: Vec<(&'a str, bool)>,
}

impl SentenceMemory {
    /// The person does not want to answer what was asked: a yes that comes later means something
    /// else.
    pub fn drop_question(&mut self) {
        self.asked.clear();
        self.begun = None;
    }
}

impl<'a> SentenceContext<'a> {
    /// The question that was asked back, if the person heard it. Of one that broke off as it was
    /// spoken nobody knows what was heard, so its answer must not move anything by mistake.
    pub(crate) fn question(&self) -> Option<&'a [Choice]> {
        let (memory, text) = self.answer?;
        let choices = memory.asked.as_slice();
        let is_heard = || {
            let mut choices = choices.iter();
            choices.all(|choice| text.contains(&choice.label))
        };
        let is_question = !choices.is_empty() && (replies::is_harmless(choices) || is_heard());
        is_question.then_some(choices)
    }

    pub(crate) fn begun(&self) -> Option<&'a str> {
        self.answer?.0.begun.as_deref()
    }

    /// What the slots of the last calls were filled with. Of calls that a model made nothing is
    /// known.
    pub(crate) fn last_slots(&self) -> Vec<Map<String, Value>> {
        let called = self.calls.into_iter().flat_map(|memory| &memory.called);
        called.map(|phrase| phrase.slots.clone()).collect()
    }
}

/// The calls of the first step; the others are remembered.
pub(crate) fn call_next(mut steps: Vec<Choice>) -> Interpretation {
    let (mut called, mut calls) = (Vec::new(), Vec::new());
    let then = steps.split_off(steps.len().min(1));
    for planned in steps.into_iter().flat_map(|step| step.calls) {
        let Planned {
            tool,
            arguments,
            answer,
            slots,
        } = planned;
        called.push(ResultPhrase { answer, slots });
        calls.push(SentenceCall { tool, arguments });
    }
    let memory = SentenceMemory {
        called,
        then,
        ..SentenceMemory::default()
    };
    Interpretation::Calls { calls, memory }
}
