//! How much of a conversation a model is sent, and how much of it is kept.

use super::cut;
use super::history::History;
use crate::{CallArguments, Message, Part, tokens};

/// A conversation is kept up to here; beyond, turns that no model is sent any more are forgotten.
pub(super) const MOST_MESSAGES: usize = 20_000;
pub(super) const MOST_BYTES: usize = 32 << 20;

#[derive(Clone, Copy, Default)]
pub(super) struct Size {
    tokens: usize,
    bytes: usize,
}

/// What had to be done so that a conversation fits.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Fit {
    /// Turns that are not sent any more.
    pub(super) turns: usize,
    pub(super) results: usize,
    pub(super) tokens: usize,
}

/// Keeps the whole result of a call, by the executor's id, and says whether it did.
pub(super) type Keep<'a> = &'a mut dyn FnMut(&str) -> bool;

impl History {
    /// Everything is sent again: another model may hold more.
    pub(super) fn send_all(&mut self) {
        self.start = 0;
    }

    /// Makes what is sent fit: leaves out the oldest turns, whole; if the last one alone is too long, shortens its results.
    ///
    /// More is left out than is needed at the moment, so that not every turn begins with another prompt: the model's cache
    /// of it would never serve.
    ///
    /// `keep` is asked to keep the whole result of a call before it is shortened, by the executor's id, and says if it did.
    pub(super) fn fit(&mut self, budget: usize, keep: Keep<'_>) -> Fit {
        let mut fit = Fit {
            tokens: self.tokens(),
            ..Fit::default()
        };
        if fit.tokens > budget {
            fit.turns = self.leave_out(&mut fit.tokens, budget / 4 * 3);
            for index in self.turn()..self.messages.len() {
                if fit.tokens > budget {
                    fit.results += self.shorten(index, keep);
                    fit.tokens = self.tokens();
                }
            }
        }
        fit
    }

    /// Sends only the newer half, or only the beginning of each result: the model counts in another way than we do.
    pub(super) fn halve(&mut self, keep: Keep<'_>) -> Fit {
        let mut tokens = self.tokens();
        let goal = tokens / 2;
        let turns = self.leave_out(&mut tokens, goal);
        let results = match turns {
            0 => (self.turn()..self.messages.len())
                .map(|index| self.shorten(index, keep))
                .sum(),
            _ => 0,
        };
        Fit {
            turns,
            results,
            tokens: self.tokens(),
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

    fn shorten(&mut self, index: usize, keep: Keep<'_>) -> usize {
        const KEPT: usize = 300;
        let Message::Tool { results } = &mut self.messages[index] else {
            return 0;
        };
        let mut shortened = 0;
        for result in results {
            if result.text.len() > 2 * KEPT || !result.images.is_empty() {
                self.wholes.keep(result);
                let kept = result.text.floor_char_boundary(KEPT);
                let left_out = cut::size(result.text.len() - kept);
                result.text.truncate(kept);
                let id = result.call_id.as_deref().filter(|id| keep(id));
                let kept_as = cut::kept_as(id);
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

    pub(super) fn forget(&mut self) {
        let mut bytes = sum(&self.sizes).bytes;
        self.forget_wholes(MOST_BYTES.saturating_sub(bytes));
        let mut gone = 0;
        while gone < self.turn()
            && (self.messages.len() - gone > MOST_MESSAGES || bytes > MOST_BYTES)
        {
            let next = self.next_turn(gone);
            bytes -= sum(&self.sizes[gone..next]).bytes;
            gone = next;
        }
        for message in self.messages.drain(..gone) {
            if let Message::Assistant(message) = message {
                for call in message.calls() {
                    self.ids.remove(&call.id);
                    self.wholes.take(&call.id);
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

fn sum(sizes: &[Size]) -> Size {
    sizes.iter().fold(Size::default(), |sum, size| Size {
        tokens: sum.tokens + size.tokens,
        bytes: sum.bytes + size.bytes,
    })
}

pub(crate) fn tokens_of(message: &Message) -> usize {
    size(message).tokens
}

pub(super) fn size(message: &Message) -> Size {
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
                    Part::Sentence { memory } => {
                        size.add(&serde_json::to_string(memory).unwrap_or_default());
                    }
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
