//! The messages of a conversation, in an order that every provider accepts.
//!
//! A turn is the user's text, then calls with their results any number of times, then an answer. An
//! interrupted turn is completed with placeholders, so that it has this shape too.

use std::collections::HashSet;

use super::uncut_results::{UncutResult, UncutResults};
use super::window::{MAX_BYTES, MessageSize, measure};
use crate::{AssistantMessage, Message, MessagePart, ModelCall, ToolResult};

const NO_ANSWER: &str = "(This turn ended before there was an answer.)";

const NO_RESULT: &str = "interrupted: the turn was stopped while this call ran, its outcome is unknown. Look before you call it again.";

#[derive(Default)]
pub(super) struct MessageHistory {
    pub(super) messages: Vec<Message>,
    pub(super) sizes: Vec<MessageSize>,
    // The first message that is still sent. It's always one of the user's.
    pub(super) start: usize,
    pub(super) uncut: UncutResults,
    // Results of the last message's calls, in call order; `None` while a call runs.
    pending_results: Vec<Option<ToolResult>>,
    note: ModelNote,
    pub(super) ids: HashSet<String>,
}

// Text for the model alone, at the end of what is sent, and never stored.
#[derive(Default)]
enum ModelNote {
    #[default]
    None,
    Message,
    // Appended to the user's text, which was this many bytes long. Not every provider accepts two
    // user messages in a row.
    Appended(usize),
}

impl MessageHistory {
    /// Continues from saved messages. Repairs what is inconsistent, because providers refuse a
    /// call without a result.
    pub(super) fn from_messages(messages: Vec<Message>) -> Self {
        let mut history = Self::default();
        for message in messages {
            match message {
                Message::User { text } => history.start_turn(text),
                _ if history.messages.is_empty() => {}
                Message::Assistant(message) => history.resume_reply(message),
                Message::Tool { results } => {
                    for result in results {
                        history.resume_result(result);
                    }
                    history.finish_calls();
                }
            }
        }
        history.finish_turn();
        history
    }

    fn resume_reply(&mut self, mut message: AssistantMessage) {
        self.finish_calls();
        message.parts.retain(|part| match part {
            MessagePart::Call(call) => self.ids.insert(call.id.clone()),
            _ => true,
        });
        if !message.parts.is_empty() {
            self.add_reply(message);
        }
    }

    fn resume_result(&mut self, result: ToolResult) {
        let index = self.calls().position(|call| call.id == result.id);
        if let Some(index) = index.filter(|_| !self.pending_results.is_empty()) {
            self.add_result(index, result, usize::MAX);
        }
    }

    pub(super) fn messages(&self) -> &[Message] {
        match self.note {
            ModelNote::Message => &self.messages[..self.messages.len() - 1],
            _ => &self.messages,
        }
    }

    pub(super) fn sent_messages(&self) -> &[Message] {
        &self.messages[self.start..]
    }

    pub(super) fn start_turn(&mut self, text: String) {
        self.finish_turn();
        self.push(Message::User { text });
    }

    pub(super) fn add_note(&mut self, words: &str) {
        self.remove_note();
        if let Some(Message::User { text }) = self.messages.last_mut() {
            self.note = ModelNote::Appended(text.len());
            text.push_str("\n\n");
            text.push_str(words);
        } else {
            self.push(Message::User {
                text: words.to_owned(),
            });
            self.note = ModelNote::Message;
        }
    }

    pub(super) fn remove_note(&mut self) {
        match (std::mem::take(&mut self.note), self.messages.last_mut()) {
            (ModelNote::Message, _) => {
                self.messages.pop();
                self.sizes.pop();
            }
            (ModelNote::Appended(length), Some(Message::User { text })) => text.truncate(length),
            _ => {}
        }
    }

    // A reply after a pause is appended to the message before.
    pub(super) fn add_reply(&mut self, message: AssistantMessage) {
        self.pending_results = message.calls().map(|_| None).collect();
        match self.messages.last_mut() {
            Some(Message::Assistant(before)) => {
                before.parts.extend(message.parts);
                self.measure(self.messages.len() - 1);
            }
            _ => self.push(Message::Assistant(message)),
        }
    }

    /// Reserves `id` for a call of this history. If it is taken, empty or too long, reserves
    /// and returns another one.
    pub(super) fn claim_id(&mut self, id: &str) -> Option<String> {
        const MAX_ID_BYTES: usize = 200;
        if !id.is_empty() && id.len() <= MAX_ID_BYTES && self.ids.insert(id.to_owned()) {
            return None;
        }
        let mut number = self.ids.len();
        loop {
            let id = format!("call_{number}");
            if self.ids.insert(id.clone()) {
                return Some(id);
            }
            number += 1;
        }
    }

    pub(super) fn answer(&self) -> Option<String> {
        match self.messages.last() {
            Some(Message::Assistant(message)) => Some(message.to_text()),
            _ => None,
        }
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &ModelCall> {
        let message = match self.messages.last() {
            Some(Message::Assistant(message)) => Some(message),
            _ => None,
        };
        message.into_iter().flat_map(AssistantMessage::calls)
    }

    pub(super) fn add_result(&mut self, index: usize, mut result: ToolResult, max: usize) {
        if let Some(pending_results @ None) = self.pending_results.get_mut(index) {
            result.cut(max, &mut self.uncut);
            *pending_results = Some(result);
        }
    }

    pub(super) fn finish_calls(&mut self) {
        if self.pending_results.is_empty() {
            return;
        }
        let pending_results = std::mem::take(&mut self.pending_results);
        let results = self.calls().zip(pending_results);
        let results =
            results.map(|(call, result)| result.unwrap_or_else(|| interrupted_result(call)));
        let results = results.collect();
        self.push(Message::Tool { results });
        self.drop_uncut_results(MAX_BYTES);
    }

    pub(super) fn finish_turn(&mut self) {
        self.remove_note();
        self.finish_calls();
        self.uncut.outcomes.recent.clear();
        if !matches!(self.messages.last(), None | Some(Message::Assistant(_))) {
            self.push(Message::Assistant(AssistantMessage::text(NO_ANSWER)));
        }
        self.drop_oldest();
    }

    // Signed thinking stays, because its provider requires it back.
    pub(super) fn drop_thinking(&mut self) {
        for index in self.turn_start()..self.messages.len() {
            if let Message::Assistant(message) = &mut self.messages[index] {
                message.parts.retain(|part| {
                    !matches!(
                        part,
                        MessagePart::Thinking {
                            signature: None,
                            ..
                        }
                    )
                });
                self.measure(index);
            }
        }
    }

    pub(super) fn turn_start(&self) -> usize {
        let mut messages = self.messages().iter();
        messages.rposition(is_user_message).unwrap_or(0)
    }

    pub(super) fn next_turn_start(&self, turn: usize) -> usize {
        let behind = self.messages[turn + 1..].iter();
        let next = behind.clone().position(is_user_message);
        turn + 1 + next.unwrap_or(behind.len())
    }

    // Only sentences store the question they asked; a model sees it in its own words.
    pub(super) fn drop_question(&mut self) {
        if let Some(Message::Assistant(message)) = self.messages.last_mut() {
            for part in &mut message.parts {
                if let MessagePart::Sentence { memory } = part {
                    memory.drop_question();
                }
            }
            self.measure(self.messages.len() - 1);
        }
    }

    pub(super) fn keep_spoken(&mut self, spoken: &str) {
        let mut left = spoken;
        let last = self.messages.len().saturating_sub(1);
        for index in self.turn_start()..self.messages.len() {
            let Message::Assistant(message) = &mut self.messages[index] else {
                continue;
            };
            if index == last {
                // The last message of an unfinished answer is a placeholder, so its text is
                // replaced rather than cut.
                let words = Some(left.trim()).filter(|words| !words.is_empty());
                let text = words.unwrap_or(NO_ANSWER).to_owned();
                let is_text = |part: &MessagePart| matches!(part, MessagePart::Text { .. });
                message.parts.retain(|part| !is_text(part));
                message.parts.push(MessagePart::Text { text });
            } else {
                message.parts.retain_mut(|part| match part {
                    MessagePart::Text { text } => {
                        let (kept, rest) = spoken_prefix(text, left);
                        text.truncate(kept);
                        left = rest;
                        !text.trim().is_empty()
                    }
                    _ => true,
                });
            }
            self.measure(index);
        }
    }

    pub(super) fn cut_results(&mut self, max: &dyn Fn(usize) -> usize) {
        for index in 0..self.messages.len() {
            let Message::Tool { results } = &mut self.messages[index] else {
                continue;
            };
            let max = max(results.len());
            for result in results {
                if let Some(UncutResult { text, images }) = self.uncut.take(&result.id) {
                    (result.text, result.images) = (text, images);
                }
                result.cut(max, &mut self.uncut);
            }
            self.measure(index);
        }
    }

    pub(super) fn uncut_messages(&self) -> Vec<Message> {
        let mut messages = self.messages().to_vec();
        for message in &mut messages {
            let Message::Tool { results } = message else {
                continue;
            };
            for result in results {
                if let Some(UncutResult { text, images }) = self.uncut.results.get(&result.id) {
                    result.text.clone_from(text);
                    result.images.clone_from(images);
                }
            }
        }
        messages
    }

    pub(super) fn drop_uncut_results(&mut self, max: usize) {
        let results = self.messages.iter().filter_map(|message| match message {
            Message::Tool { results } => Some(results),
            _ => None,
        });
        for result in results.flatten() {
            if self.uncut.bytes <= max {
                break;
            }
            self.uncut.take(&result.id);
        }
    }

    fn push(&mut self, message: Message) {
        self.sizes.push(measure(&message));
        self.messages.push(message);
    }

    pub(super) fn measure(&mut self, index: usize) {
        self.sizes[index] = measure(&self.messages[index]);
    }
}

fn interrupted_result(call: &ModelCall) -> ToolResult {
    ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        text: NO_RESULT.to_owned(),
        images: Vec::new(),
        is_error: true,
        call_id: None,
    }
}

fn is_user_message(message: &Message) -> bool {
    matches!(message, Message::User { .. })
}

// Matches `text` with the beginning of `spoken`, ignoring white space. Returns how many bytes of
// `text` were spoken, and the rest of `spoken`.
fn spoken_prefix<'a>(text: &str, spoken: &'a str) -> (usize, &'a str) {
    let (mut kept, mut rest) = (0, spoken);
    for (at, letter) in text.char_indices() {
        if letter.is_whitespace() {
            continue;
        }
        let Some(next) = rest.trim_start().strip_prefix(letter) else {
            break;
        };
        rest = next;
        kept = at + letter.len_utf8();
    }
    (kept, rest)
}
