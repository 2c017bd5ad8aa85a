//! The text of one reply on its way to the listener: stored, forwarded as it arrives, and withdrawn
//! if the attempt fails.

use crate::rescue::{CallDetector, last_calls, rescue};
use crate::think::{ThinkPiece, ThinkSplitter};
use crate::{AssistantMessage, MessagePart, ModelCall, ModelEvent, ModelListener, OfferedTools};

/// Collects the text and thinking of one reply.
///
/// Text is forwarded at once, unless a call written as text may begin in it. Then it's held back
/// until that is ruled out, at the latest until the reply ends.
pub(crate) struct ReplyBuffer<'a> {
    listener: &'a mut dyn ModelListener,
    splitter: ThinkSplitter,
    // `None` if calls written as text are not looked for, so nothing is held back.
    detector: Option<CallDetector>,
    text: String,
    // How many bytes of `text` the listener has.
    forwarded: usize,
    thoughts: String,
    begun: bool,
    // The listener has text or thinking that must be withdrawn if the attempt fails.
    has_shown_text: bool,
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
        let thoughts = thoughts.map(|text| MessagePart::Thinking {
            text,
            signature: None,
        });
        let text = Some(self.text).filter(|text| !text.is_empty());
        let text = text.map(|text| MessagePart::Text { text });
        let calls = self.calls.into_iter().map(MessagePart::Call);
        AssistantMessage {
            parts: thoughts.into_iter().chain(text).chain(calls).collect(),
        }
    }
}

impl<'a> ReplyBuffer<'a> {
    pub(crate) fn new(listener: &'a mut dyn ModelListener) -> Self {
        Self {
            listener,
            splitter: ThinkSplitter::default(),
            detector: None,
            text: String::new(),
            forwarded: 0,
            thoughts: String::new(),
            begun: false,
            has_shown_text: false,
        }
    }

    /// Begins an attempt. `rescue` says whether calls written as text are looked for.
    pub(crate) fn begin(&mut self, rescue: bool) {
        self.splitter = ThinkSplitter::default();
        self.detector = rescue.then(CallDetector::default);
        self.text.clear();
        self.forwarded = 0;
        self.thoughts.clear();
        self.begun = false;
    }

    pub(crate) fn withdraw(&mut self) {
        if std::mem::take(&mut self.has_shown_text) {
            self.listener.event(ModelEvent::Void);
        }
    }

    pub(crate) fn event(&mut self, event: ModelEvent<'_>) {
        self.listener.event(event);
    }

    pub(crate) fn notice(&mut self, text: &str) {
        self.event(ModelEvent::Notice(text));
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Forwards text that the stream's reader stores itself, as a part of the reply.
    pub(crate) fn forward_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.forward(ModelEvent::Text(text));
        }
    }

    pub(crate) fn forward_thinking(&mut self, text: &str) {
        if !text.is_empty() {
            self.forward(ModelEvent::Thinking(text));
        }
    }

    /// Takes text that may contain `<think>` tags or calls.
    pub(crate) fn feed_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.split(Some(text));
        }
    }

    /// Takes thinking that the provider separates from the text.
    pub(crate) fn feed_thinking(&mut self, text: &str) {
        if !text.is_empty() {
            self.splitter.mark_thinking_separate();
            self.push_thinking(text);
        }
    }

    /// Ends the reply. With an offer, calls that were written as text are extracted, also from the
    /// end of the thinking if the model said nothing after it. If the reply was cut, thinking is
    /// ignored, because the model hadn't decided yet.
    pub(crate) fn finish(&mut self, offer: Option<&OfferedTools>, is_truncated: bool) -> ReplyText {
        self.split(None);
        let (text, mut calls) = self.finish_text(offer);
        if let Some(offer) = offer.filter(|_| self.detector.is_some())
            && !is_truncated
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

    pub(crate) fn push_text(&mut self, piece: &str) {
        self.begun = true;
        self.text.push_str(piece);
        let until = match &mut self.detector {
            Some(detector) => detector.safe_len(&self.text),
            None => self.text.len(),
        };
        self.forward_until(until);
    }

    pub(crate) fn finish_text(&mut self, offer: Option<&OfferedTools>) -> (String, Vec<ModelCall>) {
        let offer = offer.filter(|_| self.detector.is_some());
        let Some(rescued) = offer.and_then(|offer| rescue(&self.text, offer)) else {
            self.forward_until(self.text.len());
            return (std::mem::take(&mut self.text), Vec::new());
        };
        let rest = rescued.remaining_text(&self.text, self.forwarded);
        self.forward_text(&rest);
        for call in &rescued.calls {
            let name = toolgate_core::text::escape(&call.name);
            self.notice(&format!(
                "the model wrote its call of '{name}' as text; it was run anyway"
            ));
        }
        (rescued.text, rescued.calls)
    }

    fn split(&mut self, text: Option<&str>) {
        let mut splitter = std::mem::take(&mut self.splitter);
        let mut each = |piece: ThinkPiece<'_>| match piece {
            ThinkPiece::Text(text) => self.push_text(text),
            ThinkPiece::Thinking(text) => self.push_thinking(text),
            ThinkPiece::AllWasThinking => self.move_text_to_thinking(),
        };
        match text {
            Some(text) => splitter.feed(text, &mut each),
            None => splitter.finish(&mut each),
        }
        self.splitter = splitter;
    }

    fn move_text_to_thinking(&mut self) {
        let text = std::mem::take(&mut self.text);
        self.detector = self.detector.take().map(|_| CallDetector::default());
        if std::mem::take(&mut self.forwarded) > 0 {
            self.listener.event(ModelEvent::WasThinking);
        }
        if !text.is_empty() {
            self.push_thinking(&text);
        }
    }

    fn push_thinking(&mut self, text: &str) {
        self.begun = true;
        self.thoughts.push_str(text);
        self.forward(ModelEvent::Thinking(text));
    }

    fn forward_until(&mut self, until: usize) {
        if until > self.forwarded {
            self.has_shown_text = true;
            let text = &self.text[self.forwarded..until];
            self.listener.event(ModelEvent::Text(text));
            self.forwarded = until;
        }
    }

    fn forward(&mut self, event: ModelEvent<'_>) {
        self.has_shown_text = true;
        self.listener.event(event);
    }

    /// Some models make their call while they think, and then say nothing.
    fn calls_in_thoughts(&mut self, offer: &OfferedTools) -> Vec<ModelCall> {
        let calls = last_calls(&self.thoughts, offer);
        for call in &calls {
            self.notice(&format!(
                "the model left its call of '{}' inside its thinking; it was run anyway",
                toolgate_core::text::escape(&call.name)
            ));
        }
        calls
    }
}
