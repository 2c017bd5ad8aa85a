//! What a model says beside its calls, told as it arrives: words for the person, words for itself, and calls that it wrote as
//! words.

use crate::rescue::{Hold, last_calls};
use crate::think::{Piece, Splitter};
use crate::{AssistantMessage, Event, Listener, ModelCall, Offer, Part};

/// The words of an answer while it comes.
pub(crate) struct Words {
    splitter: Splitter,
    text: Hold,
    thoughts: String,
    rescue: bool,
    begun: bool,
}

/// All the words of an answer.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) thoughts: String,
    pub(crate) text: String,
    /// Those that were written as text.
    pub(crate) calls: Vec<ModelCall>,
}

impl Said {
    /// As it is kept.
    pub(crate) fn message(self) -> AssistantMessage {
        let thoughts = Some(self.thoughts).filter(|thoughts| !thoughts.is_empty());
        let thoughts = thoughts.map(|text| Part::Thinking {
            text,
            signature: None,
        });
        let text = Some(self.text).filter(|text| !text.is_empty());
        let text = text.map(|text| Part::Text { text });
        let calls = self.calls.into_iter().map(Part::Call);
        AssistantMessage {
            parts: thoughts.into_iter().chain(text).chain(calls).collect(),
        }
    }
}

impl Words {
    /// `rescue`: whether calls are looked for in the text.
    pub(crate) fn new(rescue: bool) -> Self {
        Self {
            splitter: Splitter::default(),
            text: Hold::new(rescue),
            thoughts: String::new(),
            rescue,
            begun: false,
        }
    }

    /// True once there were any.
    pub(crate) fn have_begun(&self) -> bool {
        self.begun
    }

    /// More text; there may be thinking between tags in it.
    pub(crate) fn text(&mut self, text: &str, listener: &mut dyn Listener) {
        if !text.is_empty() {
            self.split(Some(text), listener);
        }
    }

    /// More thinking, told apart by the provider.
    pub(crate) fn thinking(&mut self, text: &str, listener: &mut dyn Listener) {
        if !text.is_empty() {
            self.splitter.thinking_came_apart();
            self.piece(&Piece::Thinking(text), listener);
        }
    }

    /// Nothing more comes. With an offer, calls that were written as text are found, also those left at the end of the
    /// thinking of a model that then said nothing. What it thought of before it ran out of tokens was not decided yet.
    pub(crate) fn finish(
        mut self,
        offer: Option<&Offer>,
        was_cut: bool,
        listener: &mut dyn Listener,
    ) -> Said {
        self.split(None, listener);
        let offer = offer.filter(|_| self.rescue);
        let (text, mut calls) = self.text.finish(offer, listener);
        if let Some(offer) = offer
            && !was_cut
            && calls.is_empty()
            && text.trim().is_empty()
        {
            calls = from_thoughts(&self.thoughts, offer, listener);
        }
        Said {
            thoughts: self.thoughts,
            text,
            calls,
        }
    }

    fn split(&mut self, text: Option<&str>, listener: &mut dyn Listener) {
        let mut splitter = std::mem::take(&mut self.splitter);
        let mut each = |piece: Piece<'_>| self.piece(&piece, listener);
        match text {
            Some(text) => splitter.feed(text, &mut each),
            None => splitter.finish(&mut each),
        }
        self.splitter = splitter;
    }

    fn piece(&mut self, piece: &Piece<'_>, listener: &mut dyn Listener) {
        self.begun = true;
        match *piece {
            Piece::Text(text) => self.text.push(text, listener),
            Piece::Thinking(text) => self.thought(text, listener),
            Piece::AllWasThinking => {
                let said = std::mem::replace(&mut self.text, Hold::new(self.rescue));
                let told = said.has_told();
                let (said, _) = said.finish(None, &mut |_: Event<'_>| ());
                if told {
                    listener.event(Event::WasThinking);
                }
                if !said.is_empty() {
                    self.thought(&said, listener);
                }
            }
        }
    }

    fn thought(&mut self, text: &str, listener: &mut dyn Listener) {
        self.thoughts.push_str(text);
        listener.event(Event::Thinking(text));
    }
}

/// Some models make their call while they think, and then say nothing.
fn from_thoughts(thoughts: &str, offer: &Offer, listener: &mut dyn Listener) -> Vec<ModelCall> {
    let calls = last_calls(thoughts, offer);
    for call in &calls {
        listener.event(Event::Notice(&format!(
            "the model left its call of '{}' inside its thinking; it was understood",
            toolgate_core::escape(&call.name)
        )));
    }
    calls
}
