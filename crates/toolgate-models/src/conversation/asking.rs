//! One question to the model: what it is sent, and what is told of its reply.

use std::time::Duration;

use tokio::time::Instant;

use super::history::History;
use super::running::{Running, millis};
use super::turn_words::TurnWords;
use super::window::{Fit, Keep};
use super::{Conversation, Round, TurnEnd, system};
use crate::error::NOT_FINISHED;
use crate::{AssistantMessage, Event, Listener, ModelError, Reply, Request, Stop, Usage};

/// A client keeps the deadline itself; this is for one that does not.
const GRACE: Duration = Duration::from_secs(1);

struct ReplyListener<'a> {
    listener: &'a mut dyn Listener,
    words: &'a mut TurnWords,
    retries: u32,
    /// Words or thoughts were told that are void if the model fails.
    was_heard: bool,
}

impl Listener for ReplyListener<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Text(_) | Event::Thinking(_) => self.was_heard = true,
            Event::Void => self.was_heard = false,
            Event::Retrying { .. } => self.retries += 1,
            _ => {}
        }
        self.words.see(&event);
        self.listener.event(event);
    }
}

/// Words that were told until the time was up are an answer, if half of one; of any other failure they are void.
fn cut_short(error: ModelError, mut told: ReplyListener<'_>) -> Result<Reply, ModelError> {
    let is_late = matches!(
        error,
        ModelError::TimedOut {
            what: NOT_FINISHED,
            ..
        }
    );
    if !is_late || told.words.reply().trim().is_empty() {
        if told.was_heard {
            told.event(Event::Void);
        }
        return Err(error);
    }
    Ok(Reply {
        message: AssistantMessage::text(told.words.reply()),
        stop: Stop::Length,
        usage: Usage::default(),
        first_token: None,
    })
}

impl Running<'_> {
    pub(super) fn is_words_only(&self, limit: Option<TurnEnd>) -> bool {
        limit.is_some() || self.conversation.settings.max_tool_rounds == 0
    }

    pub(super) async fn ask(&mut self, limit: Option<TurnEnd>) -> Result<Reply, ModelError> {
        const LAST: &str = "(No more tools can be used in this turn. Answer now with what you have, and say what is missing.)";
        self.refresh_tools();
        self.fit()?;
        if let Some(aside) = self.aside.take().or(limit.map(|_| LAST)) {
            self.conversation.history.say_aside(aside);
        }
        let words_only = self.is_words_only(limit);
        let reply = match self.ask_once(words_only).await {
            // The model counts in another way than we do.
            Err(error @ ModelError::TooLong { .. }) => {
                let fit = self.shortening(|history, keep| history.halve(keep));
                if fit.turns + fit.results == 0 {
                    return Err(error);
                }
                self.tell_left_out(&fit);
                self.ask_once(words_only).await
            }
            reply => reply,
        };
        self.conversation.history.end_aside();
        reply
    }

    async fn ask_once(&mut self, words_only: bool) -> Result<Reply, ModelError> {
        let round = self.rounds.len() + 1;
        self.tell(Event::Asking {
            round,
            tools: if words_only { 0 } else { self.offer.len() },
        });
        let asked = Instant::now();
        let router = self.conversation.router.clone();
        let request = Request {
            system: system(&self.conversation.settings),
            messages: self.conversation.history.sent(),
            tokens: self.conversation.system_tokens + self.conversation.history.tokens(),
            tools: &self.offer,
            words_only,
            deadline: self.deadline,
        };
        let mut told = ReplyListener {
            listener: self.listener,
            words: &mut self.conversation.turn_words,
            retries: 0,
            was_heard: false,
        };
        let reply = router.reply(request, &mut told);
        let reply = tokio::time::timeout_at(self.deadline + GRACE, reply).await;
        let reply = reply.unwrap_or_else(|_| router.overdue(self.conversation.settings.timeout));
        let retries = told.retries;
        let reply = match reply {
            Err(error) => cut_short(error, told)?,
            Ok(reply) => reply,
        };
        self.replied(round, &reply, asked, retries);
        Ok(reply)
    }

    fn replied(&mut self, round: usize, reply: &Reply, asked: Instant, retries: u32) {
        let Reply { stop, usage, .. } = *reply;
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
        self.listener.event(Event::Replied {
            source: self.conversation.source_of(&reply.message),
            round,
            stop,
            usage,
            first_token,
            took,
        });
        self.usage += usage;
        self.rounds.push(Round {
            text: reply.message.to_text(),
            stop,
            retries,
            usage,
            first_token_ms: first_token.map(millis),
            model_ms: millis(took),
            calls: Vec::new(),
        });
    }

    /// Keeps what is sent within the model's window, with room for the answer.
    fn fit(&mut self) -> Result<(), ModelError> {
        let conversation = &*self.conversation;
        let window = conversation.router.window();
        let tools = self.offer.tokens();
        let room = conversation.settings.max_tokens.min(window / 4);
        let around = room + tools + conversation.system_tokens;
        let budget = window.saturating_sub(around);
        let fit = self.shortening(|history, keep| history.fit(budget, keep));
        if fit.tokens + around > window {
            let model = self.conversation.router.model_name().to_owned();
            let needed = fit.tokens + around;
            let reason = format!(
                "it takes about {needed} tokens, {tools} of them for tools, and the model holds {window}. Ask for less at \
                 once, offer fewer tools, or raise model.contextTokens if the model can hold more"
            );
            return Err(ModelError::TooLong { model, reason });
        }
        self.tell_left_out(&fit);
        Ok(())
    }

    /// What is shortened of this turn's results is kept whole for the person.
    fn shortening(&mut self, shorten: impl FnOnce(&mut History, Keep<'_>) -> Fit) -> Fit {
        let Conversation {
            history,
            full_results,
            ..
        } = &mut *self.conversation;
        let used = || self.rounds.iter().flat_map(|round| &round.calls);
        shorten(history, &mut |id| {
            let outcome = used().find(|used| used.outcome.call_id.to_string() == id);
            outcome.is_some_and(|used| full_results.keep(&used.outcome))
        })
    }

    fn tell_left_out(&mut self, fit: &Fit) {
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
        self.listener.event(Event::Notice(text));
    }
}
