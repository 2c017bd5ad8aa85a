//! The text of a turn that listeners have seen. If the turn is dropped, nothing else has it.

use crate::ModelEvent;

#[derive(Default)]
pub(super) struct TurnWords {
    text: String,
    // Where the current reply begins in `text`; `None` until the model is asked.
    reply: Option<usize>,
}

impl TurnWords {
    // `None` before the model is asked: the turn hasn't begun, so there is nothing to keep.
    pub(super) fn text(&self) -> Option<&str> {
        self.reply.map(|_| self.text.as_str())
    }

    pub(super) fn reply(&self) -> &str {
        &self.text[self.reply.unwrap_or(0)..]
    }

    pub(super) fn observe(&mut self, event: &ModelEvent<'_>) {
        match event {
            ModelEvent::Asking { .. } => self.reply = Some(self.text.len()),
            ModelEvent::Text(text) => self.text.push_str(text),
            ModelEvent::Void | ModelEvent::WasThinking => {
                self.text.truncate(self.reply.unwrap_or(0));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_words_are_kept_across_the_replies_of_a_turn() {
        let mut words = TurnWords::default();
        assert_eq!(words.text(), None, "the turn before is not meant");
        let asking = || ModelEvent::Asking { round: 1, tools: 0 };
        words.observe(&asking());
        assert_eq!(words.text(), Some(""));
        words.observe(&ModelEvent::Text("Let me look. "));
        words.observe(&asking());
        for event in [
            ModelEvent::Text("It br"),
            ModelEvent::Void,
            ModelEvent::Text("It is "),
            ModelEvent::Text("3"),
        ] {
            words.observe(&event);
        }
        assert_eq!(words.text(), Some("Let me look. It is 3"));
        assert_eq!(words.reply(), "It is 3");
    }
}
