//! The model's words in a turn, as the listener was told them: a turn that is dropped leaves nothing else behind.

use crate::Event;

#[derive(Default)]
pub(super) struct TurnWords {
    text: String,
    /// Where those of the reply that comes now begin; `None` until the model is asked.
    reply: Option<usize>,
}

impl TurnWords {
    /// Before the model is asked the turn has not begun, and there is nothing to be said of it.
    pub(super) fn text(&self) -> Option<&str> {
        self.reply.map(|_| self.text.as_str())
    }

    pub(super) fn reply(&self) -> &str {
        &self.text[self.reply.unwrap_or(0)..]
    }

    pub(super) fn see(&mut self, event: &Event<'_>) {
        match event {
            Event::Asking { .. } => self.reply = Some(self.text.len()),
            Event::Text(text) => self.text.push_str(text),
            Event::Void | Event::WasThinking => self.text.truncate(self.reply.unwrap_or(0)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_count_are_kept_over_all_replies_of_a_turn() {
        let mut words = TurnWords::default();
        assert_eq!(words.text(), None, "the turn before is not meant");
        let asking = || Event::Asking { round: 1, tools: 0 };
        words.see(&asking());
        assert_eq!(words.text(), Some(""));
        words.see(&Event::Text("Let me look. "));
        words.see(&asking());
        for event in [
            Event::Text("It br"),
            Event::Void,
            Event::Text("It is "),
            Event::Text("3"),
        ] {
            words.see(&event);
        }
        assert_eq!(words.text(), Some("Let me look. It is 3"));
        assert_eq!(words.reply(), "It is 3");
    }
}
