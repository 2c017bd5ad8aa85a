//! What a person heard of an answer that was spoken and broke off.

use super::Conversation;
use super::history::{History, NO_ANSWER};
use crate::{Message, Part};

impl Conversation {
    /// Of the model's words in the last turn only these were spoken; the others are forgotten, so that it does not take for
    /// said what nobody heard. Its calls and their results stay. White space does not count.
    pub fn keep_spoken(&mut self, spoken: &str) {
        self.history.keep_spoken(spoken);
    }

    /// The last turn was stopped: what the model had said by then stays. Nothing changes if it was not asked yet.
    pub fn keep_told(&mut self) {
        if let Some(told) = self.turn_words.text() {
            self.history.keep_spoken(told);
        }
    }

    /// The person does not want to answer what was asked back last: a yes that comes later means something else.
    pub fn drop_question(&mut self) {
        self.history.drop_question();
    }
}

impl History {
    /// Only the sentences remember what they asked; a model sees what it said.
    fn drop_question(&mut self) {
        if let Some(Message::Assistant(message)) = self.messages.last_mut() {
            for part in &mut message.parts {
                if let Part::Sentence { memory } = part {
                    memory.drop_question();
                }
            }
            self.measure(self.messages.len() - 1);
        }
    }

    fn keep_spoken(&mut self, spoken: &str) {
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
