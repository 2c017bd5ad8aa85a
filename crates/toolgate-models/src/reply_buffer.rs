//! The text of one reply on its way to the person: kept once, told as it comes, and taken back where the attempt fails.

use crate::rescue::{CallDetector, last_calls, rescue};
use crate::think::{Piece, Splitter};
use crate::{AssistantMessage, Event, Listener, ModelCall, Offer, Part};

/// What a model says in one reply.
///
/// Each piece is told at once unless it may be the beginning of a call that is written as text: then it is told when it
/// turns out to be none, at the latest when the reply ends.
pub(crate) struct ReplyBuffer<'a> {
    listener: &'a mut dyn Listener,
    splitter: Splitter,
    /// `None`: nothing is held back, and no calls are looked for.
    detector: Option<CallDetector>,
    text: String,
    told: usize,
    thoughts: String,
    begun: bool,
    /// The listener heard words that are to be taken back if the attempt fails.
    was_heard: bool,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct ReplyText {
    pub(crate) thoughts: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<ModelCall>,
}

impl ReplyText {
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

impl<'a> ReplyBuffer<'a> {
    pub(crate) fn new(listener: &'a mut dyn Listener) -> Self {
        Self {
            listener,
            splitter: Splitter::default(),
            detector: None,
            text: String::new(),
            told: 0,
            thoughts: String::new(),
            begun: false,
            was_heard: false,
        }
    }

    /// An attempt begins, with nothing said yet. `rescue`: whether calls are looked for in the text.
    pub(crate) fn begin(&mut self, rescue: bool) {
        self.splitter = Splitter::default();
        self.detector = rescue.then(CallDetector::default);
        self.text.clear();
        self.told = 0;
        self.thoughts.clear();
        self.begun = false;
    }

    pub(crate) fn take_back(&mut self) {
        if std::mem::take(&mut self.was_heard) {
            self.listener.event(Event::Void);
        }
    }

    pub(crate) fn event(&mut self, event: Event<'_>) {
        self.listener.event(event);
    }

    pub(crate) fn notice(&mut self, text: &str) {
        self.event(Event::Notice(text));
    }

    /// True once there were words or thoughts.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Words that the reader of the stream keeps itself, in the order of the reply's parts.
    pub(crate) fn tell_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.tell(Event::Text(text));
        }
    }

    /// Like [`tell_text`](Self::tell_text), for thinking.
    pub(crate) fn tell_thinking(&mut self, text: &str) {
        if !text.is_empty() {
            self.tell(Event::Thinking(text));
        }
    }

    /// More text; there may be thinking between tags in it.
    pub(crate) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.split(Some(text));
        }
    }

    pub(crate) fn thinking(&mut self, text: &str) {
        if !text.is_empty() {
            self.splitter.thinking_came_apart();
            self.think(text);
        }
    }

    /// Nothing more comes. With an offer, calls that were written as text are found, also those left at the end of the
    /// thinking of a model that then said nothing. What it thought of before it ran out of tokens was not decided yet.
    pub(crate) fn finish(&mut self, offer: Option<&Offer>, was_cut: bool) -> ReplyText {
        self.split(None);
        let (text, mut calls) = self.finish_text(offer);
        if let Some(offer) = offer.filter(|_| self.detector.is_some())
            && !was_cut
            && calls.is_empty()
            && text.trim().is_empty()
        {
            calls = self.calls_in_thoughts(offer);
        }
        ReplyText {
            thoughts: std::mem::take(&mut self.thoughts),
            text,
            calls,
        }
    }

    pub(crate) fn push(&mut self, piece: &str) {
        self.begun = true;
        self.text.push_str(piece);
        let until = match &mut self.detector {
            Some(detector) => detector.decided(&self.text),
            None => self.text.len(),
        };
        self.tell_until(until);
    }

    /// All words for the person. With an offer, calls of its tools are taken out; without, the text is what it is.
    pub(crate) fn finish_text(&mut self, offer: Option<&Offer>) -> (String, Vec<ModelCall>) {
        let offer = offer.filter(|_| self.detector.is_some());
        let Some(rescued) = offer.and_then(|offer| rescue(&self.text, offer)) else {
            self.tell_until(self.text.len());
            return (std::mem::take(&mut self.text), Vec::new());
        };
        let rest = rescued.rest(&self.text, self.told);
        self.tell_text(&rest);
        for call in &rescued.calls {
            let name = toolgate_core::escape(&call.name);
            self.notice(&format!(
                "the model wrote its call of '{name}' as text; it was understood"
            ));
        }
        (rescued.text, rescued.calls)
    }

    fn split(&mut self, text: Option<&str>) {
        let mut splitter = std::mem::take(&mut self.splitter);
        let mut each = |piece: Piece<'_>| match piece {
            Piece::Text(text) => self.push(text),
            Piece::Thinking(text) => self.think(text),
            Piece::AllWasThinking => self.text_was_thinking(),
        };
        match text {
            Some(text) => splitter.feed(text, &mut each),
            None => splitter.finish(&mut each),
        }
        self.splitter = splitter;
    }

    fn text_was_thinking(&mut self) {
        let said = std::mem::take(&mut self.text);
        self.detector = self.detector.take().map(|_| CallDetector::default());
        if std::mem::take(&mut self.told) > 0 {
            self.listener.event(Event::WasThinking);
        }
        if !said.is_empty() {
            self.think(&said);
        }
    }

    fn think(&mut self, text: &str) {
        self.begun = true;
        self.thoughts.push_str(text);
        self.tell(Event::Thinking(text));
    }

    fn tell_until(&mut self, until: usize) {
        if until > self.told {
            self.was_heard = true;
            let text = &self.text[self.told..until];
            self.listener.event(Event::Text(text));
            self.told = until;
        }
    }

    fn tell(&mut self, event: Event<'_>) {
        self.was_heard = true;
        self.listener.event(event);
    }

    /// Some models make their call while they think, and then say nothing.
    fn calls_in_thoughts(&mut self, offer: &Offer) -> Vec<ModelCall> {
        let calls = last_calls(&self.thoughts, offer);
        for call in &calls {
            self.notice(&format!(
                "the model left its call of '{}' inside its thinking; it was understood",
                toolgate_core::escape(&call.name)
            ));
        }
        calls
    }
}
