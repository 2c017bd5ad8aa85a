//! What was said and done, in an order that every provider takes: a turn is the person's words, then calls with their
//! results as often as there were any, then an answer. Nothing that happens to a turn can leave it in another shape.

use std::collections::HashSet;

use super::whole::{Whole, Wholes};
use super::window::{Keep, MOST_BYTES, Size, size};
use crate::{AssistantMessage, Message, ModelCall, Part, ToolResult};

/// In place of an answer that never came.
const NO_ANSWER: &str = "(This turn ended before there was an answer.)";

/// In place of a result that never came.
const NO_RESULT: &str = "interrupted: the turn was stopped while this call ran, its outcome is unknown. Look before you call it again.";

#[derive(Default)]
pub(super) struct History {
    pub(super) messages: Vec<Message>,
    pub(super) sizes: Vec<Size>,
    /// The first message that is still sent; the person's words, always.
    pub(super) start: usize,
    pub(super) wholes: Wholes,
    /// What came of the calls of the last message so far, in their order.
    open: Vec<Option<ToolResult>>,
    aside: Aside,
    pub(super) ids: HashSet<String>,
}

/// Words for the model alone, at the end of what it is sent, never kept.
#[derive(Default)]
enum Aside {
    #[default]
    None,
    Message,
    /// Behind the person's words, which were this long: two messages of a person in a row are not taken everywhere.
    Behind(usize),
}

impl History {
    /// From messages of an earlier day. What does not fit together is mended: nobody is to be sent a call without a result.
    pub(super) fn resumed(messages: Vec<Message>) -> Self {
        let mut history = Self::default();
        for message in messages {
            match message {
                Message::User { text } => history.begin(text),
                _ if history.messages.is_empty() => {}
                Message::Assistant(message) => history.resume_reply(message),
                Message::Tool { results } => {
                    for result in results {
                        history.resume_result(result);
                    }
                    history.settle();
                }
            }
        }
        history.close();
        history
    }

    fn resume_reply(&mut self, mut message: AssistantMessage) {
        self.settle();
        message.parts.retain(|part| match part {
            Part::Call(call) => self.ids.insert(call.id.clone()),
            _ => true,
        });
        if !message.parts.is_empty() {
            self.reply(message);
        }
    }

    fn resume_result(&mut self, result: ToolResult) {
        let place = self.calls().position(|call| call.id == result.id);
        if let Some(place) = place.filter(|_| !self.open.is_empty()) {
            self.result(place, result, usize::MAX, &mut |_| false);
        }
    }

    pub(super) fn messages(&self) -> &[Message] {
        match self.aside {
            Aside::Message => &self.messages[..self.messages.len() - 1],
            _ => &self.messages,
        }
    }

    pub(super) fn sent(&self) -> &[Message] {
        &self.messages[self.start..]
    }

    pub(super) fn begin(&mut self, text: String) {
        self.close();
        self.push(Message::User { text });
    }

    /// Says something to the model alone, until [`end_aside`](Self::end_aside).
    pub(super) fn say_aside(&mut self, words: &str) {
        self.end_aside();
        if let Some(Message::User { text }) = self.messages.last_mut() {
            self.aside = Aside::Behind(text.len());
            text.push_str("\n\n");
            text.push_str(words);
        } else {
            self.push(Message::User {
                text: words.to_owned(),
            });
            self.aside = Aside::Message;
        }
    }

    pub(super) fn end_aside(&mut self) {
        match (std::mem::take(&mut self.aside), self.messages.last_mut()) {
            (Aside::Message, _) => {
                self.messages.pop();
                self.sizes.pop();
            }
            (Aside::Behind(length), Some(Message::User { text })) => text.truncate(length),
            _ => {}
        }
    }

    /// The model answers. What follows a pause belongs to the same message.
    pub(super) fn reply(&mut self, message: AssistantMessage) {
        self.open = message.calls().map(|_| None).collect();
        match self.messages.last_mut() {
            Some(Message::Assistant(before)) => {
                before.parts.extend(message.parts);
                self.measure_last();
            }
            _ => self.push(Message::Assistant(message)),
        }
    }

    /// An id for a call that no other call of this conversation has: the one it came with, if that is so.
    pub(super) fn claim_id(&mut self, id: &str) -> Option<String> {
        const LONGEST: usize = 200;
        if !id.is_empty() && id.len() <= LONGEST && self.ids.insert(id.to_owned()) {
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

    /// What came of a call of the last message; no more than `most` bytes of it are sent.
    pub(super) fn result(
        &mut self,
        place: usize,
        mut result: ToolResult,
        most: usize,
        keep: Keep<'_>,
    ) {
        if let Some(open @ None) = self.open.get_mut(place) {
            result.cut(most, keep, &mut self.wholes);
            *open = Some(result);
        }
    }

    /// All calls are done, or will never be.
    pub(super) fn settle(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let open = std::mem::take(&mut self.open);
        let results = self.calls().zip(open);
        let results = results.map(|(call, result)| result.unwrap_or_else(|| interrupted(call)));
        let results = results.collect();
        self.push(Message::Tool { results });
        self.forget_wholes(MOST_BYTES);
    }

    pub(super) fn close(&mut self) {
        self.end_aside();
        self.settle();
        if !matches!(self.messages.last(), None | Some(Message::Assistant(_))) {
            self.push(Message::Assistant(AssistantMessage::text(NO_ANSWER)));
        }
        self.forget();
    }

    /// Takes the thinking of the last turn away, but what its provider wants back.
    pub(super) fn drop_thinking(&mut self) {
        for index in self.turn()..self.messages.len() {
            if let Message::Assistant(message) = &mut self.messages[index] {
                let is_thinking = |part: &Part| {
                    matches!(
                        part,
                        Part::Thinking {
                            signature: None,
                            ..
                        }
                    )
                };
                if message.parts.iter().any(is_thinking) {
                    message.parts.retain(|part| !is_thinking(part));
                    self.measure(index);
                }
            }
        }
    }

    pub(super) fn turn(&self) -> usize {
        let mut messages = self.messages().iter();
        messages.rposition(is_user_message).unwrap_or(0)
    }

    pub(super) fn next_turn(&self, turn: usize) -> usize {
        let behind = self.messages[turn + 1..].iter();
        let next = behind.clone().position(is_user_message);
        turn + 1 + next.unwrap_or(behind.len())
    }

    /// Only the sentences remember what they asked; a model sees what it said.
    pub(super) fn drop_question(&mut self) {
        if let Some(Message::Assistant(message)) = self.messages.last_mut() {
            for part in &mut message.parts {
                if let Part::Sentence { memory } = part {
                    memory.drop_question();
                }
            }
            self.measure(self.messages.len() - 1);
        }
    }

    pub(super) fn keep_spoken(&mut self, spoken: &str) {
        let mut left = spoken;
        let last = self.messages.len().saturating_sub(1);
        for index in self.turn()..self.messages.len() {
            let Message::Assistant(message) = &mut self.messages[index] else {
                continue;
            };
            if index == last {
                // What was spoken of an answer that never came to its end stands nowhere else.
                let words = Some(left.trim()).filter(|words| !words.is_empty());
                let text = words.unwrap_or(NO_ANSWER).to_owned();
                let is_text = |part: &Part| matches!(part, Part::Text { .. });
                message.parts.retain(|part| !is_text(part));
                message.parts.push(Part::Text { text });
            } else {
                message.parts.retain_mut(|part| match part {
                    Part::Text { text } => {
                        let (kept, rest) = shared(text, left);
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

    /// Cuts all results anew, for a model that is given `most` bytes of each of so many.
    pub(super) fn cut_for(&mut self, most: &dyn Fn(usize) -> usize, keep: Keep<'_>) {
        for index in 0..self.messages.len() {
            let Message::Tool { results } = &mut self.messages[index] else {
                continue;
            };
            let most = most(results.len());
            for result in results {
                if let Some(Whole { text, images }) = self.wholes.take(&result.id) {
                    (result.text, result.images) = (text, images);
                }
                result.cut(most, keep, &mut self.wholes);
            }
            self.measure(index);
        }
    }

    pub(super) fn whole_messages(&self) -> Vec<Message> {
        let mut messages = self.messages().to_vec();
        for message in &mut messages {
            let Message::Tool { results } = message else {
                continue;
            };
            for result in results {
                if let Some(Whole { text, images }) = self.wholes.results.get(&result.id) {
                    result.text.clone_from(text);
                    result.images.clone_from(images);
                }
            }
        }
        messages
    }

    /// Lets the oldest go until no more than this many bytes are kept beside the history.
    pub(super) fn forget_wholes(&mut self, most: usize) {
        let results = self.messages.iter().filter_map(|message| match message {
            Message::Tool { results } => Some(results),
            _ => None,
        });
        for result in results.flatten() {
            if self.wholes.bytes <= most {
                break;
            }
            self.wholes.take(&result.id);
        }
    }

    fn push(&mut self, message: Message) {
        self.sizes.push(size(&message));
        self.messages.push(message);
    }

    fn measure_last(&mut self) {
        if let Some(last) = self.messages.len().checked_sub(1) {
            self.measure(last);
        }
    }

    pub(super) fn measure(&mut self, index: usize) {
        self.sizes[index] = size(&self.messages[index]);
    }
}

fn interrupted(call: &ModelCall) -> ToolResult {
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

/// How many bytes of a text were spoken, and what was spoken after them.
fn shared<'a>(text: &str, spoken: &'a str) -> (usize, &'a str) {
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
