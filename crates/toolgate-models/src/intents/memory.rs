//! What is remembered of a conversation, in its own messages: a question that was asked back, the calls that were made, and
//! what is still to be done.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::Answer;
use super::meaning::{Choice, Planned};
use super::replies;
use crate::{AssistantMessage, CallArguments, Message, ModelCall, Part, Provider};

/// What an answer of this provider remembers for the next one.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Memory {
    /// The person was asked which of these is meant.
    Asked(Vec<Choice>),
    /// The person was asked for what was missing after these words.
    Begun(String),
    /// Tools were called, and this is to be said of their results, in the same order.
    Called(Vec<Said>),
    /// Beside that: what is to be done afterwards, one after the other.
    Then(Vec<Choice>),
}

/// What is to be said of a result.
#[derive(Serialize, Deserialize)]
pub(super) struct Said {
    pub(super) answer: Answer,
    pub(super) slots: Map<String, Value>,
}

const CALL_ID: &str = "intent_";

/// A message that asks for the calls of the first step, and remembers the others.
pub(super) fn call_next(messages: &[Message], mut steps: Vec<Choice>) -> AssistantMessage {
    let (mut said, mut calls) = (Vec::new(), Vec::new());
    let first = match steps.is_empty() {
        true => Vec::new(),
        false => steps.remove(0).calls,
    };
    for (id, planned) in (next_id(messages)..).zip(first) {
        let Planned {
            tool,
            arguments,
            answer,
            slots,
        } = planned;
        said.push(Said { answer, slots });
        calls.push(Part::Call(ModelCall {
            id: format!("{CALL_ID}{id}"),
            name: tool,
            arguments: CallArguments::Object(arguments),
        }));
    }
    calls.insert(0, remember(&Memory::Called(said)));
    if !steps.is_empty() {
        calls.push(remember(&Memory::Then(steps)));
    }
    AssistantMessage { parts: calls }
}

/// Of a turn that must end, a conversation says so behind the last results: nobody's words, and nothing to be understood.
pub(super) fn without_aside(messages: &[Message], words_only: bool) -> &[Message] {
    match messages {
        [said @ .., Message::User { .. }]
            if words_only && matches!(said, [.., Message::Tool { .. }]) =>
        {
            said
        }
        all => all,
    }
}

/// What is to be done after the calls of a message.
pub(super) fn then(message: &Message) -> Vec<Choice> {
    let steps = memories(message).find_map(|memory| match memory {
        Memory::Then(steps) => Some(steps),
        _ => None,
    });
    steps.unwrap_or_default()
}

/// What the slots of the last calls were filled with: `it` may be one of these. Of calls that a model made nothing is known.
pub(super) fn last_slots(messages: &[Message]) -> Vec<Map<String, Value>> {
    let has_called = |message: &&Message| match message {
        Message::Assistant(message) => message.calls().next().is_some(),
        _ => false,
    };
    let called = messages.iter().rev().find(has_called);
    match memory(called) {
        Some(Memory::Called(said)) => said.into_iter().map(|said| said.slots).collect(),
        _ => Vec::new(),
    }
}

/// A number that no call before has.
fn next_id(messages: &[Message]) -> u64 {
    let calls = messages.iter().filter_map(|message| match message {
        Message::Assistant(message) => Some(message.calls()),
        _ => None,
    });
    let used = calls
        .flatten()
        .filter_map(|call| call.id.strip_prefix(CALL_ID)?.parse::<u32>().ok());
    used.max().map_or(1, |last| u64::from(last) + 1)
}

pub(super) fn remember(memory: &Memory) -> Part {
    Part::Opaque {
        provider: Provider::Intents,
        value: serde_json::to_value(memory).unwrap_or_default(),
    }
}

/// What this provider remembers in a message, if it is one of its own.
pub(super) fn memory(message: Option<&Message>) -> Option<Memory> {
    memories(message?).next()
}

fn memories(message: &Message) -> impl Iterator<Item = Memory> {
    let parts = match message {
        Message::Assistant(message) => message.parts.as_slice(),
        _ => &[],
    };
    parts.iter().filter_map(|part| match part {
        Part::Opaque {
            provider: Provider::Intents,
            value,
        } => Memory::deserialize(value).ok(),
        _ => None,
    })
}

/// True if a question stands in a message as it was asked. Of one that broke off as it was spoken nobody knows what was heard,
/// and nothing that must not be done by mistake comes of the answer.
pub(super) fn was_heard(question: Option<&Message>, choices: &[Choice]) -> bool {
    let Some(Message::Assistant(message)) = question else {
        return false;
    };
    let text = message.to_text();
    replies::is_harmless(choices) || choices.iter().all(|choice| text.contains(&choice.label))
}
