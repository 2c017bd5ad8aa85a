//! What was said and done, in an order that every provider takes: a turn is the person's words, then calls with their
//! results as often as there were any, then an answer. Nothing that happens to a turn can leave it in another shape.

use std::collections::HashSet;

use crate::{AssistantMessage, CallArguments, Message, ModelCall, Part, ToolResult, tokens};

/// In place of an answer that never came.
const NO_ANSWER: &str = "(This turn ended before there was an answer.)";

/// In place of a result that never came.
const NO_RESULT: &str = "interrupted: the turn was stopped while this call ran, its outcome is unknown. Look before you call it again.";

/// A conversation is kept up to here; beyond, turns that no model is sent any more are forgotten.
pub(super) const MOST_MESSAGES: usize = 20_000;
pub(super) const MOST_BYTES: usize = 32 << 20;

/// All that was said, and what of it a model is sent.
#[derive(Default)]
pub(super) struct History {
    messages: Vec<Message>,
    /// Of each message.
    sizes: Vec<Size>,
    /// The first message that is still sent; the person's words, always.
    start: usize,
    /// What came of the calls of the last message so far, in their order.
    open: Vec<Option<ToolResult>>,
    aside: Aside,
    ids: HashSet<String>,
}

/// Words for the model alone, at the end of what it is sent, never kept.
#[derive(Default)]
enum Aside {
    #[default]
    None,
    /// A message of its own.
    Message,
    /// Behind the person's words, which were this long: two messages of a person in a row are not taken everywhere.
    Behind(usize),
}

#[derive(Clone, Copy, Default)]
struct Size {
    tokens: usize,
    bytes: usize,
}

/// What had to be done so that a conversation fits.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Fit {
    /// Turns that are not sent any more.
    pub(super) turns: usize,
    /// Results of this turn that were shortened.
    pub(super) results: usize,
    /// About how many tokens there are, all done.
    pub(super) tokens: usize,
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
            self.result(place, result);
        }
    }

    /// All of it, without what was said to the model alone.
    pub(super) fn messages(&self) -> &[Message] {
        match self.aside {
            Aside::Message => &self.messages[..self.messages.len() - 1],
            _ => &self.messages,
        }
    }

    /// What a model is sent.
    pub(super) fn sent(&self) -> &[Message] {
        &self.messages[self.start..]
    }

    /// The person says something.
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

    /// The words of the last message, if they are the model's.
    pub(super) fn answer(&self) -> Option<String> {
        match self.messages.last() {
            Some(Message::Assistant(message)) => Some(message.to_text()),
            _ => None,
        }
    }

    /// The calls of the last message.
    pub(super) fn calls(&self) -> impl Iterator<Item = &ModelCall> {
        let message = match self.messages.last() {
            Some(Message::Assistant(message)) => Some(message),
            _ => None,
        };
        message.into_iter().flat_map(AssistantMessage::calls)
    }

    /// What came of a call of the last message.
    pub(super) fn result(&mut self, place: usize, result: ToolResult) {
        if let Some(open) = self.open.get_mut(place) {
            open.get_or_insert(result);
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
    }

    /// The turn is over, whatever became of it.
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

    /// Everything is sent again: another model may hold more.
    pub(super) fn send_all(&mut self) {
        self.start = 0;
    }

    /// Makes what is sent fit: leaves out the oldest turns, whole; if the last one alone is too long, shortens its results.
    ///
    /// More is left out than is needed at the moment, so that not every turn begins with another prompt: the model's cache
    /// of it would never serve.
    pub(super) fn fit(&mut self, budget: usize) -> Fit {
        let mut fit = Fit {
            tokens: self.tokens(),
            ..Fit::default()
        };
        if fit.tokens > budget {
            fit.turns = self.leave_out(&mut fit.tokens, budget / 4 * 3);
            for index in self.turn()..self.messages.len() {
                if fit.tokens > budget {
                    fit.results += self.shorten(index);
                    fit.tokens = self.tokens();
                }
            }
        }
        fit
    }

    /// Sends only the newer half of it: the model counts in another way than we do.
    pub(super) fn halve(&mut self) -> Fit {
        let mut tokens = self.tokens();
        let goal = tokens / 2;
        Fit {
            turns: self.leave_out(&mut tokens, goal),
            results: 0,
            tokens,
        }
    }

    fn leave_out(&mut self, tokens: &mut usize, goal: usize) -> usize {
        let (last, mut turns) = (self.turn(), 0);
        while self.start < last && *tokens > goal {
            let next = self.next_turn(self.start);
            *tokens -= sum(&self.sizes[self.start..next]).tokens;
            self.start = next;
            turns += 1;
        }
        turns
    }

    fn shorten(&mut self, index: usize) -> usize {
        const KEPT: usize = 300;
        let Message::Tool { results } = &mut self.messages[index] else {
            return 0;
        };
        let mut shortened = 0;
        for result in results {
            if result.text.len() > 2 * KEPT || !result.images.is_empty() {
                let kept = result.text.floor_char_boundary(KEPT);
                result.text.truncate(kept);
                result
                    .text
                    .push_str("… [shortened: the conversation is too long for the model]");
                result.images.clear();
                shortened += 1;
            }
        }
        self.measure(index);
        shortened
    }

    /// Keeps the whole within its bounds.
    fn forget(&mut self) {
        let mut bytes = sum(&self.sizes).bytes;
        let mut gone = 0;
        while gone < self.turn()
            && (self.messages.len() - gone > MOST_MESSAGES || bytes > MOST_BYTES)
        {
            let next = self.next_turn(gone);
            bytes -= sum(&self.sizes[gone..next]).bytes;
            gone = next;
        }
        self.messages.drain(..gone);
        self.sizes.drain(..gone);
        self.start = self.start.saturating_sub(gone);
    }

    fn tokens(&self) -> usize {
        sum(&self.sizes[self.start..]).tokens
    }

    /// Where the last turn begins.
    fn turn(&self) -> usize {
        let mut messages = self.messages().iter();
        messages.rposition(is_user_message).unwrap_or(0)
    }

    fn next_turn(&self, turn: usize) -> usize {
        let behind = self.messages[turn + 1..].iter();
        let next = behind.clone().position(is_user_message);
        turn + 1 + next.unwrap_or(behind.len())
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

    fn measure(&mut self, index: usize) {
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

fn sum(sizes: &[Size]) -> Size {
    sizes.iter().fold(Size::default(), |sum, size| Size {
        tokens: sum.tokens + size.tokens,
        bytes: sum.bytes + size.bytes,
    })
}

/// About how much a message is.
fn size(message: &Message) -> Size {
    /// What a picture costs with those who can look.
    const IMAGE: usize = 1600;
    /// Roles, ids, brackets.
    const AROUND: usize = 8;
    let mut size = Size {
        tokens: AROUND,
        bytes: 0,
    };
    match message {
        Message::User { text } => size.add(text),
        Message::Assistant(message) => {
            for part in &message.parts {
                match part {
                    Part::Text { text } => size.add(text),
                    Part::Thinking { text, signature } => {
                        size.add(text);
                        size.add(signature.as_deref().unwrap_or_default());
                    }
                    Part::Opaque { value, .. } => size.add(&value.to_string()),
                    Part::Call(call) => {
                        size.tokens += AROUND;
                        size.add(&call.name);
                        match &call.arguments {
                            CallArguments::Object(object) => {
                                size.add(&serde_json::to_string(object).unwrap_or_default());
                            }
                            CallArguments::Unusable(text) => size.add(text),
                        }
                    }
                }
            }
        }
        Message::Tool { results } => {
            for result in results {
                size.tokens += AROUND + IMAGE * result.images.len();
                size.add(&result.text);
                let images = result.images.iter().map(|image| image.data.len());
                size.bytes += images.sum::<usize>();
            }
        }
    }
    size
}

impl Size {
    fn add(&mut self, text: &str) {
        self.tokens += tokens::estimate(text);
        self.bytes += text.len();
    }
}
