//! What was said, as a conversation keeps it: each answer with its memory.

use serde::{Deserialize, Serialize};

use super::*;

#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Message {
    User(String),
    Assistant(Answered),
    /// In words, and whether it failed.
    Results(Vec<(String, bool)>),
}

/// How an answer leaves the turn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) enum Stop {
    End,
    Calls,
    /// A program that asks sees by this that nothing came of it.
    Refusal,
}

/// An answer with its words, or the calls as `(tool, arguments)`.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) text: String,
    pub(super) calls: Vec<(String, Value)>,
    /// None of a model's answer.
    pub(super) memory: Option<SentenceMemory>,
    pub(super) stop: Stop,
}

impl Answered {
    fn new(interpretation: Interpretation) -> Self {
        let none = SentenceMemory::default;
        let (text, calls, memory, stop) = match interpretation {
            Interpretation::Calls { calls, memory } => {
                let calls = calls.into_iter();
                let calls = calls.map(|call| (call.tool, Value::Object(call.arguments)));
                (String::new(), calls.collect(), memory, Stop::Calls)
            }
            Interpretation::Question { text, memory } => (text, Vec::new(), memory, Stop::End),
            Interpretation::Answer(text) => (text, Vec::new(), none(), Stop::End),
            Interpretation::Failure(text) => (text, Vec::new(), none(), Stop::Refusal),
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
            stop: Stop::Calls,
        }
    }
}

pub(super) fn user(text: &str) -> Message {
    Message::User(text.to_owned())
}

/// The history after an answer.
pub(super) fn with(mut history: Vec<Message>, answered: &Answered) -> Vec<Message> {
    history.push(Message::Assistant(answered.clone()));
    // It must survive being saved.
    let saved = serde_json::to_string(&history).unwrap();
    serde_json::from_str(&saved).unwrap()
}

pub(super) fn with_result(mut history: Vec<Message>, text: &str, is_error: bool) -> Vec<Message> {
    history.push(Message::Results(vec![(text.to_owned(), is_error)]));
    history
}

pub(super) async fn ask(client: &SentenceInterpreter, messages: &[Message]) -> Answered {
    ask_where(client, messages, true).await
}

/// The answer to the last message, where calls are allowed or not.
pub(super) async fn ask_where(
    client: &SentenceInterpreter,
    messages: &[Message],
    may_call: bool,
) -> Answered {
    Answered::new(match messages {
        [before @ .., Message::User(text)] => {
            let context = context(before);
            client
                .interpret(text, &context, may_call, &mut |_| {})
                .await
        }
        _ => client.after_calls(&rounds(messages), may_call),
    })
}

fn context(before: &[Message]) -> SentenceContext<'_> {
    let answers = before.iter().rev().filter_map(|message| match message {
        Message::Assistant(answered) => Some(answered),
        _ => None,
    });
    let last = match before.last() {
        Some(Message::Assistant(answered)) => Some(answered),
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

fn rounds(messages: &[Message]) -> Vec<CompletedCalls<'_>> {
    let is_user = |message: &Message| matches!(message, Message::User(_));
    let begin = messages.iter().rposition(is_user).map_or(0, |at| at + 1);
    let pairs = messages[begin..].windows(2);
    let rounds = pairs.filter_map(|pair| match pair {
        [Message::Assistant(called), Message::Results(results)] => Some(CompletedCalls {
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

/// `tool {arguments}` for a call, else the words.
pub(super) fn shown(answered: &Answered) -> String {
    let calls = answered.calls.iter();
    let calls: Vec<String> = calls
        .map(|(tool, arguments)| format!("{tool} {arguments}"))
        .collect();
    assert_eq!(calls.is_empty(), answered.stop != Stop::Calls);
    match calls.is_empty() {
        true => answered.text.clone(),
        false => calls.join(" + "),
    }
}

pub(super) async fn say(client: &SentenceInterpreter, text: &str) -> String {
    shown(&ask(client, &[user(text)]).await)
}
