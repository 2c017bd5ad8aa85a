//! Asks the model once: prepares the request, forwards the reply to the
//! listener, records the round.

use std::time::Duration;

use tokio::time::Instant;

use super::running_turn::{RunningTurn, millis};
use super::turn_words::TurnWords;
use super::window::FitReport;
use super::{RoundRecord, TurnEnd, system};
use crate::error::FINISH;
use crate::{
    AssistantMessage, ModelError, ModelEvent, ModelListener, ModelReply, ModelRequest, StopReason,
    TokenUsage,
};

// Clients enforce the deadline themselves. This ends the turn if one doesn't.
const GRACE: Duration = Duration::from_secs(1);

struct ReplyListener<'a> {
    listener: &'a mut dyn ModelListener,
    words: &'a mut TurnWords,
    retries: u32,
    // Text or thinking was shown, and must be withdrawn if the model fails.
    has_shown_text: bool,
}

impl ModelListener for ReplyListener<'_> {
    fn event(&mut self, event: ModelEvent<'_>) {
        match event {
            ModelEvent::Text(_) | ModelEvent::Thinking(_) => self.has_shown_text = true,
            ModelEvent::Void => self.has_shown_text = false,
            ModelEvent::Retrying { .. } => self.retries += 1,
            _ => {}
        }
        self.words.observe(&event);
        self.listener.event(event);
    }
}

// Text that arrived before the time ran out becomes the answer. After any other failure it is
// withdrawn.
fn salvage_reply(error: ModelError, mut seen: ReplyListener<'_>) -> Result<ModelReply, ModelError> {
    let is_late = matches!(error, ModelError::TimedOut { what: FINISH, .. });
    if !is_late || seen.words.reply().trim().is_empty() {
        if seen.has_shown_text {
            seen.event(ModelEvent::Void);
        }
        return Err(error);
    }
    let message = AssistantMessage::text(seen.words.reply());
    Ok(ModelReply::new(
        message,
        StopReason::Length,
        TokenUsage::default(),
    ))
}

impl RunningTurn<'_> {
    pub(super) fn forbids_tools(&self, limit: Option<TurnEnd>) -> bool {
        limit.is_some() || self.conversation.settings.max_tool_rounds == 0
    }

    pub(super) async fn ask(&mut self, limit: Option<TurnEnd>) -> Result<ModelReply, ModelError> {
        const LAST: &str = "(No more tools can be used in this turn. Answer now with what you have, and say what is missing.)";
        self.refresh_tools();
        self.fit_window()?;
        if let Some(note) = self.note.take().or(limit.map(|_| LAST)) {
            self.conversation.history.add_note(note);
        }
        let forbid_tools = self.forbids_tools(limit);
        let reply = match self.ask_once(forbid_tools).await {
            // The provider counts tokens differently than we do.
            Err(error @ ModelError::TooLong { .. }) => {
                let fit = self.conversation.history.halve();
                if fit.turns + fit.results == 0 {
                    return Err(error);
                }
                self.notify_shortened(&fit);
                self.ask_once(forbid_tools).await
            }
            reply => reply,
        };
        self.conversation.history.remove_note();
        reply
    }

    async fn ask_once(&mut self, forbid_tools: bool) -> Result<ModelReply, ModelError> {
        let round = self.rounds.len() + 1;
        self.emit(ModelEvent::Asking {
            round,
            tools: if forbid_tools { 0 } else { self.offer.len() },
        });
        let asked = Instant::now();
        let router = self.conversation.router.clone();
        let request = ModelRequest {
            system: system(&self.conversation.settings),
            messages: self.conversation.history.sent_messages(),
            tokens: self.conversation.system_tokens + self.conversation.history.tokens(),
            tools: &self.offer,
            forbid_tools,
            max_tokens: None,
            temperature: None,
            deadline: self.deadline,
        };
        let mut listener = ReplyListener {
            listener: self.listener,
            words: &mut self.conversation.turn_words,
            retries: 0,
            has_shown_text: false,
        };
        let reply = router.reply(request, &mut listener);
        let reply = tokio::time::timeout_at(self.deadline + GRACE, reply).await;
        let reply =
            reply.unwrap_or_else(|_| router.timeout_reply(self.conversation.settings.timeout));
        let retries = listener.retries;
        let reply = match reply {
            Err(error) => salvage_reply(error, listener)?,
            Ok(reply) => reply,
        };
        self.record_reply(round, &reply, asked, retries);
        Ok(reply)
    }

    fn record_reply(&mut self, round: usize, reply: &ModelReply, asked: Instant, retries: u32) {
        let ModelReply { stop, usage, .. } = *reply;
        let took = asked.elapsed();
        let first_token = reply.first_token.map(|first| first.duration_since(asked));
        tracing::debug!(
            round,
            ?stop,
            input_tokens = usage.input,
            output_tokens = usage.output,
            first_token_ms = first_token.map(|time| time.as_secs_f64() * 1000.0),
            took_ms = took.as_secs_f64() * 1000.0,
            "the model replied"
        );
        self.listener.event(ModelEvent::Replied {
            source: self.conversation.source_of(&reply.message),
            round,
            stop,
            usage,
            first_token,
            took,
        });
        self.usage += usage;
        self.rounds.push(RoundRecord {
            text: reply.message.to_text(),
            stop,
            retries,
            usage,
            first_token_ms: first_token.map(millis),
            model_ms: millis(took),
            calls: Vec::new(),
        });
    }

    fn fit_window(&mut self) -> Result<(), ModelError> {
        let conversation = &*self.conversation;
        let window = conversation.router.window();
        let tools = self.offer.tokens();
        let room = conversation.settings.max_tokens.min(window / 4);
        let around = room + tools + conversation.system_tokens;
        let budget = window.saturating_sub(around);
        let fit = self.conversation.history.fit_into(budget);
        if fit.tokens + around > window {
            let model = self.conversation.router.model_name().to_owned();
            let needed = fit.tokens + around;
            let reason = format!(
                "it takes about {needed} tokens, {tools} of them for tools, and the model holds {window}. Ask for less at \
                 once, offer fewer tools, or raise model.contextTokens if the model can hold more"
            );
            return Err(ModelError::TooLong { model, reason });
        }
        self.notify_shortened(&fit);
        Ok(())
    }

    fn notify_shortened(&mut self, fit: &FitReport) {
        if fit.turns > 0 {
            let turns = match fit.turns {
                1 => "turn is".to_owned(),
                turns => format!("{turns} turns are"),
            };
            self.notice(&format!(
                "The conversation is longer than the model can hold: the oldest {turns} left out from now on."
            ));
        }
        if fit.results > 0 {
            let results = match fit.results {
                1 => "a result of a tool is".to_owned(),
                results => format!("{results} results of tools are"),
            };
            self.notice(&format!(
                "This turn is longer than the model can hold: {results} shortened."
            ));
        }
    }

    pub(super) fn notice(&mut self, text: &str) {
        tracing::debug!("{text}");
        self.listener.event(ModelEvent::Notice(text));
    }
}
