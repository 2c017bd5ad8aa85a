//! Decides how much of a conversation is sent to the model, and how much of it is kept.

use super::history::MessageHistory;
use super::result_text;
use crate::{CallArguments, Message, MessagePart, tokens};

// Beyond these limits, the oldest turns are deleted.
pub(super) const MAX_MESSAGES: usize = 20_000;
pub(super) const MAX_BYTES: usize = 32 << 20;

#[derive(Clone, Copy, Default)]
pub(super) struct MessageSize {
    tokens: usize,
    bytes: usize,
}

#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct FitReport {
    // How many turns were left out.
    pub(super) turns: usize,
    // How many results were shortened.
    pub(super) results: usize,
    // Estimated tokens of what is sent now.
    pub(super) tokens: usize,
}

impl MessageHistory {
    // Called when the model changes, because the new one may hold more.
    pub(super) fn send_all(&mut self) {
        self.start = 0;
    }

    /// Makes the messages that are sent fit into `budget` tokens: leaves out the oldest turns, and
    /// if the last turn alone is too long, shortens its results.
    ///
    /// Leaves out more than needed right now. Otherwise the beginning of the prompt would change
    /// with every turn, and the provider's prompt cache would never help.
    pub(super) fn fit_into(&mut self, budget: usize) -> FitReport {
        let mut fit = FitReport {
            tokens: self.tokens(),
            ..FitReport::default()
        };
        if fit.tokens > budget {
            fit.turns = self.drop_turns(&mut fit.tokens, budget / 4 * 3);
            for index in self.turn_start()..self.messages.len() {
                if fit.tokens > budget {
                    fit.results += self.shorten(index);
                    fit.tokens = self.tokens();
                }
            }
        }
        fit
    }

    // The provider said that the prompt is too long, but counts tokens differently than we do, so
    // the exact number to aim for is unknown.
    pub(super) fn halve(&mut self) -> FitReport {
        let mut tokens = self.tokens();
        let goal = tokens / 2;
        let turns = self.drop_turns(&mut tokens, goal);
        let results = match turns {
            0 => (self.turn_start()..self.messages.len())
                .map(|index| self.shorten(index))
                .sum(),
            _ => 0,
        };
        FitReport {
            turns,
            results,
            tokens: self.tokens(),
        }
    }

    fn drop_turns(&mut self, tokens: &mut usize, goal: usize) -> usize {
        let (last, mut turns) = (self.turn_start(), 0);
        while self.start < last && *tokens > goal {
            let next = self.next_turn_start(self.start);
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
                self.uncut.keep(result);
                let kept = result.text.floor_char_boundary(KEPT);
                let left_out = result_text::display_size(result.text.len() - kept);
                result.text.truncate(kept);
                let id = result
                    .call_id
                    .as_deref()
                    .filter(|id| self.uncut.outcomes.keep(id));
                let kept_as = result_text::full_result_note(id);
                let mark =
                    format!("… [shortened to make room for others: {left_out} left out{kept_as}]");
                result.text.push_str(&mark);
                result.images.clear();
                shortened += 1;
            }
        }
        self.measure(index);
        shortened
    }

    pub(super) fn drop_oldest(&mut self) {
        let mut bytes = sum(&self.sizes).bytes;
        self.drop_uncut_results(MAX_BYTES.saturating_sub(bytes));
        let mut gone = 0;
        while gone < self.turn_start()
            && (self.messages.len() - gone > MAX_MESSAGES || bytes > MAX_BYTES)
        {
            let next = self.next_turn_start(gone);
            bytes -= sum(&self.sizes[gone..next]).bytes;
            gone = next;
        }
        for message in self.messages.drain(..gone) {
            if let Message::Assistant(message) = message {
                for call in message.calls() {
                    self.ids.remove(&call.id);
                    self.uncut.take(&call.id);
                }
            }
        }
        self.sizes.drain(..gone);
        self.start = self.start.saturating_sub(gone);
    }

    pub(super) fn tokens(&self) -> usize {
        sum(&self.sizes[self.start..]).tokens
    }
}

fn sum(sizes: &[MessageSize]) -> MessageSize {
    sizes
        .iter()
        .fold(MessageSize::default(), |sum, size| MessageSize {
            tokens: sum.tokens + size.tokens,
            bytes: sum.bytes + size.bytes,
        })
}

pub(crate) fn message_tokens(message: &Message) -> usize {
    measure(message).tokens
}

pub(super) fn measure(message: &Message) -> MessageSize {
    // Tokens of an image, for models that can see it.
    const IMAGE: usize = 1600;
    // Tokens of roles, ids and brackets.
    const AROUND: usize = 8;
    let mut size = MessageSize {
        tokens: AROUND,
        bytes: 0,
    };
    match message {
        Message::User { text } => size.add(text),
        Message::Assistant(message) => {
            for part in &message.parts {
                match part {
                    MessagePart::Text { text } => size.add(text),
                    MessagePart::Thinking { text, signature } => {
                        size.add(text);
                        size.add(signature.as_deref().unwrap_or_default());
                    }
                    MessagePart::Opaque { value, .. } => size.add(&value.to_string()),
                    MessagePart::Sentence { memory } => {
                        size.add(&serde_json::to_string(memory).unwrap_or_default());
                    }
                    MessagePart::Call(call) => {
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

impl MessageSize {
    fn add(&mut self, text: &str) {
        self.tokens += tokens::estimate(text);
        self.bytes += text.len();
    }
}
