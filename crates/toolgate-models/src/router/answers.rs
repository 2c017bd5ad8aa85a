//! Presents a conversation's history to sentences, and turns their answers into replies.

use tokio::time::Instant;
use toolgate_core::ToolWaitListener;
use toolgate_intents::{
    CompletedCalls, Interpretation, SentenceContext, SentenceInterpreter, SentenceMemory,
};

use crate::{
    AssistantMessage, CallArguments, Message, MessagePart, ModelCall, ModelReply, ModelRequest,
    StopReason, TokenUsage,
};

pub(super) struct PendingTurn<'a> {
    messages: &'a [Message],
    may_call: bool,
}

impl<'a> PendingTurn<'a> {
    pub(super) fn new(request: &ModelRequest<'a>) -> Self {
        // When the model must answer in words, the conversation appends a note for it after the
        // last results. The user didn't write that, so sentences must not interpret it.
        let messages = match request.messages {
            [said @ .., Message::User { .. }]
                if request.forbid_tools && matches!(said, [.., Message::Tool { .. }]) =>
            {
                said
            }
            all => all,
        };
        Self {
            messages,
            may_call: !request.forbid_tools,
        }
    }

    pub(super) fn is_beginning(&self) -> bool {
        matches!(self.messages, [.., Message::User { .. }])
    }

    fn has_called(&self) -> bool {
        match self.messages {
            [.., called, Message::Tool { .. }] => sentence_memory(called).is_some(),
            _ => false,
        }
    }

    /// True if sentences made the last calls and none of them failed. A failure is for the model to
    /// explain, if there is one.
    pub(super) fn has_called_successfully(&self) -> bool {
        match self.messages.last() {
            Some(Message::Tool { results }) => {
                self.has_called() && !results.iter().any(|result| result.is_error)
            }
            _ => false,
        }
    }

    pub(super) async fn answer(
        &self,
        sentences: &SentenceInterpreter,
        waits: ToolWaitListener<'_>,
    ) -> Interpretation {
        match self.messages {
            [.., _, Message::Tool { .. }] => sentences.after_calls(&self.rounds(), self.may_call),
            [before @ .., Message::User { text }] => {
                let words = last_answer_text(before);
                let context = context(before, &words);
                sentences
                    .interpret(text, &context, self.may_call, waits)
                    .await
            }
            _ => sentences.ask_to_repeat(),
        }
    }

    /// The sentences' answer while the model is unavailable. `None` if they don't understand the
    /// question, because the model's error says more, and if the model made the last calls.
    pub(super) async fn answer_without_model(
        &self,
        sentences: &SentenceInterpreter,
        waits: ToolWaitListener<'_>,
    ) -> Option<Interpretation> {
        let is_beginning = self.is_beginning();
        if !is_beginning && !self.has_called() {
            return None;
        }
        let answer = self.answer(sentences, waits).await;
        let is_failure = matches!(answer, Interpretation::Failure(_));
        (!is_beginning || !is_failure).then_some(answer)
    }

    pub(super) async fn find_certain_answer(
        &self,
        sentences: &SentenceInterpreter,
    ) -> Option<Interpretation> {
        let [before @ .., Message::User { text }] = self.messages else {
            return None;
        };
        if !self.may_call {
            return None;
        }
        let words = last_answer_text(before);
        let context = context(before, &words);
        sentences.certain_calls(text, &context).await
    }

    fn rounds(&self) -> Vec<CompletedCalls<'a>> {
        let is_user = |message: &Message| matches!(message, Message::User { .. });
        let spoken = self.messages.iter().rposition(is_user);
        let pairs = self.messages[spoken.map_or(0, |at| at + 1)..].windows(2);
        let rounds = pairs.filter_map(|pair| match pair {
            [called, Message::Tool { results }] => Some(CompletedCalls {
                memory: sentence_memory(called),
                results: results
                    .iter()
                    .map(|result| (result.text.as_str(), result.is_error))
                    .collect(),
            }),
            _ => None,
        });
        rounds.collect()
    }
}

fn context<'a>(before: &'a [Message], words: &'a str) -> SentenceContext<'a> {
    let has_called = |message: &&Message| match message {
        Message::Assistant(message) => message.calls().next().is_some(),
        _ => false,
    };
    let answer = before.last().and_then(sentence_memory);
    SentenceContext {
        answer: answer.map(|memory| (memory, words)),
        calls: before
            .iter()
            .rev()
            .find(has_called)
            .and_then(sentence_memory),
    }
}

fn last_answer_text(before: &[Message]) -> String {
    match before.last() {
        Some(Message::Assistant(message)) => message.to_text(),
        _ => String::new(),
    }
}

fn sentence_memory(message: &Message) -> Option<&SentenceMemory> {
    match message {
        Message::Assistant(message) => message.sentence_memory(),
        _ => None,
    }
}

pub(super) fn to_reply(answer: Interpretation, messages: &[Message]) -> ModelReply {
    let empty = SentenceMemory::default();
    let (text, calls, memory, stop) = match answer {
        Interpretation::Calls { calls, memory } => {
            (String::new(), calls, memory, StopReason::Calls)
        }
        Interpretation::Question { text, memory } => (text, Vec::new(), memory, StopReason::End),
        Interpretation::Answer(text) => (text, Vec::new(), empty, StopReason::End),
        // Shows programs that nothing was done.
        Interpretation::Failure(text) => (text, Vec::new(), empty, StopReason::Refusal),
    };
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(MessagePart::Text { text });
    }
    parts.push(MessagePart::Sentence { memory });
    let calls = (next_id(messages)..)
        .zip(calls)
        .map(|(id, call)| ModelCall {
            id: format!("{CALL_ID}{id}"),
            name: call.tool,
            arguments: CallArguments::Object(call.arguments),
        });
    parts.extend(calls.map(MessagePart::Call));
    ModelReply {
        message: AssistantMessage { parts },
        stop,
        usage: TokenUsage::default(),
        first_token: Some(Instant::now()),
    }
}

// For people who read a saved conversation; no code relies on it.
const CALL_ID: &str = "intent_";

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
