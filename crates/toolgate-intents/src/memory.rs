//! The memory of a conversation: the open question, the calls that were made, and the
//! steps that are left.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::AnswerTemplate;
use super::meaning::{CallChoice, Interpretation, PlannedCall, SentenceCall};
use super::replies;

/// The state that an answer passes on to the next one. The caller stores it with the answer,
/// possibly in a file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SentenceMemory {
    /// The choices of an open question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) asked: Vec<CallChoice>,
    /// An incomplete sentence, to which the reply is joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) begun: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) called: Vec<ResultPhrase>,
    /// The steps that follow these calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) then: Vec<CallChoice>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ResultPhrase {
    pub(crate) answer: AnswerTemplate,
    pub(crate) slots: Map<String, Value>,
}

/// What was said and done before a sentence.
#[derive(Debug, Clone, Copy, Default)]
pub struct SentenceContext<'a> {
    /// The previous answer, if the interpreter gave it: its memory, and its text as far as
    /// the person heard it.
    pub answer: Option<(&'a SentenceMemory, &'a str)>,
    /// The memory of the last calls, if a sentence made them. `it` may refer to their subject.
    pub calls: Option<&'a SentenceMemory>,
}

/// The calls of one round, with their results.
#[derive(Debug, Clone)]
pub struct CompletedCalls<'a> {
    /// `None` if a model made the calls.
    pub memory: Option<&'a SentenceMemory>,
    /// For each call, in order, its result as text or JSON, and whether it failed.
    pub results: Vec<(&'a str, bool)>,
}

impl SentenceMemory {
    /// Forgets the open question if the person doesn't want to answer it, so that a later
    /// `yes` doesn't confirm it.
    pub fn drop_question(&mut self) {
        self.asked.clear();
        self.begun = None;
    }
}

impl<'a> SentenceContext<'a> {
    /// The open question, if the person heard it.
    pub(crate) fn question(&self) -> Option<&'a [CallChoice]> {
        // If the spoken question was cut off, the person may not have heard all of it. Their reply
        // must not do anything by mistake.
        let (memory, text) = self.answer?;
        let choices = memory.asked.as_slice();
        let is_heard = || {
            let mut choices = choices.iter();
            choices.all(|choice| text.contains(&choice.label))
        };
        let is_question = !choices.is_empty() && (replies::is_harmless(choices) || is_heard());
        is_question.then_some(choices)
    }

    pub(crate) fn unfinished_sentence(&self) -> Option<&'a str> {
        self.answer?.0.begun.as_deref()
    }

    pub(crate) fn last_slots(&self) -> Vec<Map<String, Value>> {
        let called = self.calls.into_iter().flat_map(|memory| &memory.called);
        called.map(|phrase| phrase.slots.clone()).collect()
    }
}

pub(crate) fn start_next_step(mut steps: Vec<CallChoice>) -> Interpretation {
    let (mut called, mut calls) = (Vec::new(), Vec::new());
    let then = steps.split_off(steps.len().min(1));
    for planned in steps.into_iter().flat_map(|step| step.calls) {
        let PlannedCall {
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
