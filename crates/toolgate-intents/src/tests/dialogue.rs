//! A test conversation. Like a real one, it stores the memory of each answer.

use serde::{Deserialize, Serialize};

use super::*;

#[derive(Clone, Serialize, Deserialize)]
pub(super) enum DialogueMessage {
    User(String),
    Assistant(DialogueAnswer),
    Results(Vec<(String, bool)>),
}

/// How a turn ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) enum DialogueEnd {
    End,
    Calls,
    /// Nothing was done, which a program can see.
    Refusal,
}

/// An answer: its text, or its calls as `(tool, arguments)`.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct DialogueAnswer {
    pub(super) text: String,
    pub(super) calls: Vec<(String, Value)>,
    pub(super) memory: Option<SentenceMemory>,
    pub(super) stop: DialogueEnd,
}

impl DialogueAnswer {
    fn new(interpretation: Interpretation) -> Self {
        let none = SentenceMemory::default;
        let (text, calls, memory, stop) = match interpretation {
            Interpretation::Calls { calls, memory } => {
                let calls = calls.into_iter();
                let calls = calls.map(|call| (call.tool, Value::Object(call.arguments)));
                (String::new(), calls.collect(), memory, DialogueEnd::Calls)
            }
            Interpretation::Question { text, memory } => {
                (text, Vec::new(), memory, DialogueEnd::End)
            }
            Interpretation::Answer(text) => (text, Vec::new(), none(), DialogueEnd::End),
            Interpretation::Failure(text) => (text, Vec::new(), none(), DialogueEnd::Refusal),
        };
        Self {
            text,
            calls,
            memory: Some(memory),
            stop,
        }
    }

    pub(super) fn model_call(tool: &str) -> Self {
        Self {
            text: String::new(),
            calls: vec![(tool.to_owned(), json!({}))],
            memory: None,
            stop: DialogueEnd::Calls,
        }
    }
}

pub(super) fn user(text: &str) -> DialogueMessage {
    DialogueMessage::User(text.to_owned())
}

/// The history including an answer.
pub(super) fn with_answer(
    mut history: Vec<DialogueMessage>,
    answered: &DialogueAnswer,
) -> Vec<DialogueMessage> {
    history.push(DialogueMessage::Assistant(answered.clone()));
    // Round-trips the memory through JSON, because callers save it.
    let saved = serde_json::to_string(&history).unwrap();
    serde_json::from_str(&saved).unwrap()
}

pub(super) fn with_result(
    mut history: Vec<DialogueMessage>,
    text: &str,
    is_error: bool,
) -> Vec<DialogueMessage> {
    history.push(DialogueMessage::Results(vec![(text.to_owned(), is_error)]));
    history
}

pub(super) async fn ask(
    interpreter: &SentenceInterpreter,
    messages: &[DialogueMessage],
) -> DialogueAnswer {
    reply_with(interpreter, messages, true).await
}

pub(super) async fn reply_with(
    interpreter: &SentenceInterpreter,
    messages: &[DialogueMessage],
    may_call: bool,
) -> DialogueAnswer {
    DialogueAnswer::new(match messages {
        [before @ .., DialogueMessage::User(text)] => {
            let context = context(before);
            interpreter
                .interpret(text, &context, may_call, &mut |_| {})
                .await
        }
        _ => interpreter.after_calls(&rounds(messages), may_call),
    })
}

fn context(before: &[DialogueMessage]) -> SentenceContext<'_> {
    let answers = before.iter().rev().filter_map(|message| match message {
        DialogueMessage::Assistant(answered) => Some(answered),
        _ => None,
    });
    let last = match before.last() {
        Some(DialogueMessage::Assistant(answered)) => Some(answered),
        _ => None,
    };
    let called = answers
        .into_iter()
        .find(|answered| !answered.calls.is_empty());
    SentenceContext {
        answer: last.and_then(|last| Some((last.memory.as_ref()?, last.text.as_str()))),
        calls: called.and_then(|called| called.memory.as_ref()),
    }
}

fn rounds(messages: &[DialogueMessage]) -> Vec<CompletedCalls<'_>> {
    let is_user = |message: &DialogueMessage| matches!(message, DialogueMessage::User(_));
    let begin = messages.iter().rposition(is_user).map_or(0, |at| at + 1);
    let pairs = messages[begin..].windows(2);
    let rounds = pairs.filter_map(|pair| match pair {
        [
            DialogueMessage::Assistant(called),
            DialogueMessage::Results(results),
        ] => Some(CompletedCalls {
            memory: called.memory.as_ref(),
            results: results
                .iter()
                .map(|(text, is_error)| (text.as_str(), *is_error))
                .collect(),
        }),
        _ => None,
    });
    rounds.collect()
}

/// Formats calls as `tool {arguments}`, and any other answer as its text.
pub(super) fn describe_answer(answered: &DialogueAnswer) -> String {
    let calls = answered.calls.iter();
    let calls: Vec<String> = calls
        .map(|(tool, arguments)| format!("{tool} {arguments}"))
        .collect();
    assert_eq!(calls.is_empty(), answered.stop != DialogueEnd::Calls);
    match calls.is_empty() {
        true => answered.text.clone(),
        false => calls.join(" + "),
    }
}

pub(super) async fn say(interpreter: &SentenceInterpreter, text: &str) -> String {
    describe_answer(&ask(interpreter, &[user(text)]).await)
}
