//! What a person sees of a turn, and what the model has said in it so far.

use toolgate_models::{Event, Listener};

use crate::display::Display;

/// Shows everything, and remembers the model's words: those of a turn that is stopped stand nowhere else.
pub(super) struct Heard {
    display: Display,
    words: String,
    /// Where those of the reply that comes now begin; `None` until the model is asked.
    reply: Option<usize>,
}

impl Heard {
    pub(super) fn new(display: Display) -> Self {
        Self {
            display,
            words: String::new(),
            reply: None,
        }
    }

    /// Before the model is asked the turn has not begun, and there is nothing to be said of it.
    pub(super) fn words(&self) -> Option<&str> {
        self.reply.map(|_| self.words.as_str())
    }
}

impl Listener for Heard {
    fn event(&mut self, event: Event<'_>) {
        match &event {
            Event::Asking { .. } => self.reply = Some(self.words.len()),
            Event::Text(text) => self.words.push_str(text),
            Event::Void | Event::WasThinking => self.words.truncate(self.reply.unwrap_or(0)),
            _ => {}
        }
        self.display.event(event);
    }
}

#[cfg(test)]
mod tests {
    use toolgate_core::Redactor;

    use super::*;
    use crate::display::{AnswerFormat, Manner};
    use crate::spinner::Spinner;

    #[test]
    fn words_that_count_are_kept_over_all_replies_of_a_turn() {
        let manner = Manner {
            streams: false,
            format: AnswerFormat::Plain,
            progress: false,
            thinking: false,
        };
        let display = Display::new(manner, Redactor::default(), Spinner::new(""));
        let mut heard = Heard::new(display);
        assert_eq!(heard.words(), None, "the turn before is not meant");
        let asking = || Event::Asking { round: 1, tools: 0 };
        heard.event(asking());
        assert_eq!(heard.words(), Some(""));
        heard.event(Event::Text("Let me look. "));
        heard.event(asking());
        for event in [
            Event::Text("It br"),
            Event::Void,
            Event::Text("It is "),
            Event::Text("3"),
        ] {
            heard.event(event);
        }
        assert_eq!(heard.words(), Some("Let me look. It is 3"));
    }
}
