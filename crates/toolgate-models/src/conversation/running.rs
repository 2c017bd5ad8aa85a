//! A turn that goes on.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolgate_core::CallId;

use super::calls::{Made, Planned};
use super::offering::choose;
use super::{Conversation, Round, Turn, TurnEnd};
use crate::rescue::rescue;
use crate::{
    AssistantMessage, Catalog, Event, Listener, ModelError, Offer, Part, Reply, Stop, Usage,
};

/// How often a model that makes a pause is asked to go on.
const MOST_PAUSES: usize = 10;

/// No tool has a longer name; what a model makes up goes no further than this.
const LONGEST_NAME: usize = 500;

/// A limit longer than this is as good as none, and a clock can hold it.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

/// One turn. Dropped at any moment, it leaves history in order.
pub(super) struct Running<'a> {
    pub(super) conversation: &'a mut Conversation,
    pub(super) listener: &'a mut dyn Listener,
    pub(super) text: &'a str,
    pub(super) catalog: Arc<Catalog>,
    pub(super) offer: Offer,
    pub(super) rounds: Vec<Round>,
    pub(super) deadline: Instant,
    /// From then on no tool is begun, so that there is time for an answer.
    pub(super) tools_until: Instant,
    started: Instant,
    pub(super) usage: Usage,
    made: Made,
    /// The first call of the turn: the others are in its trace.
    pub(super) first: Option<CallId>,
    tool_rounds: usize,
    rounds_with_repetition: usize,
    pauses: usize,
    was_cut: bool,
    was_empty: bool,
    pub(super) aside: Option<&'static str>,
}

pub(super) enum Next {
    Run(Vec<Planned>),
    AskAgain,
    End(TurnEnd),
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.conversation.settings.keep_thinking {
            self.conversation.history.drop_thinking();
        }
        self.conversation.history.close();
    }
}

impl<'a> Running<'a> {
    pub(super) async fn begin(
        conversation: &'a mut Conversation,
        text: &'a str,
        listener: &'a mut dyn Listener,
    ) -> Self {
        let started = Instant::now();
        let limit = conversation.settings.timeout.min(LONGEST);
        conversation.router.prepare(started + limit).await;
        // Before history knows of the turn: whoever breaks off here has said nothing.
        conversation.wait_for_tools(text, listener).await;
        conversation.cut_results();
        conversation.history.begin(text.to_owned());
        let catalog = conversation.router.catalog(&conversation.toolbox.current());
        let offer = choose(conversation, &catalog, text, listener);
        Self {
            catalog,
            offer,
            conversation,
            listener,
            text,
            rounds: Vec::new(),
            deadline: started + limit,
            tools_until: started + limit / 5 * 4,
            started,
            usage: Usage::default(),
            made: Made::default(),
            first: None,
            tool_rounds: 0,
            rounds_with_repetition: 0,
            pauses: 0,
            was_cut: false,
            was_empty: false,
            aside: None,
        }
    }

    pub(super) fn tell(&mut self, event: Event<'_>) {
        self.conversation.turn_words.see(&event);
        self.listener.event(event);
    }

    /// Why tools, after some were used, may not be used any more.
    pub(super) fn limit(&self) -> Option<TurnEnd> {
        if self.tool_rounds == 0 {
            None
        } else if self.tool_rounds >= self.conversation.settings.max_tool_rounds {
            Some(TurnEnd::RoundLimit)
        } else if self.rounds_with_repetition > 1 {
            Some(TurnEnd::Repetition)
        } else if Instant::now() >= self.tools_until {
            Some(TurnEnd::Deadline)
        } else {
            None
        }
    }

    pub(super) fn take(&mut self, reply: Reply, limit: Option<TurnEnd>) -> Next {
        let Reply {
            mut message, stop, ..
        } = reply;
        if self.is_words_only(limit) || stop == Stop::Refusal {
            // Whatever it still wants to call is not going to happen.
            message.parts.retain(|part| !matches!(part, Part::Call(_)));
            self.drop_written_calls(&mut message);
        }
        if message.calls().next().is_some() {
            return Next::Run(self.plan(message));
        }
        // Words that lead up to a call that was cut are no answer yet.
        let leads_nowhere = stop == Stop::CutCall && !self.was_cut;
        let has_said = has_words(&message);
        let has_words = has_said && !leads_nowhere;
        if has_words || stop == Stop::Pause && !message.parts.is_empty() {
            self.conversation.history.reply(message);
        } else if has_said {
            self.tell(Event::Void);
        }
        match stop {
            Stop::Refusal => Next::End(TurnEnd::Refusal),
            Stop::Pause if self.pauses < MOST_PAUSES => {
                self.pauses += 1;
                Next::AskAgain
            }
            Stop::Length | Stop::CutCall if has_words => Next::End(TurnEnd::Length),
            _ if has_words => Next::End(limit.unwrap_or(TurnEnd::Answered)),
            Stop::Length | Stop::CutCall if !self.was_cut => {
                self.was_cut = true;
                self.ask_again(
                    "(Your last reply reached the limit of its length before it said anything or finished a call, and is \
                     lost. Be brief: answer in few words, or make one call with short arguments.)",
                )
            }
            Stop::Length | Stop::CutCall => Next::End(TurnEnd::Length),
            _ if !self.was_empty => {
                self.was_empty = true;
                self.ask_again("(Your last reply was empty. Answer in words.)")
            }
            _ => Next::End(limit.unwrap_or(TurnEnd::Empty)),
        }
    }

    /// The same of calls that it wrote as text: nobody wants to read those.
    fn drop_written_calls(&mut self, message: &mut AssistantMessage) {
        if !self.conversation.settings.rescue {
            return;
        }
        let mut has_dropped = false;
        for part in &mut message.parts {
            if let Part::Text { text } = part
                && let Some(rescued) = rescue(text, &self.offer)
            {
                *text = rescued.text;
                has_dropped = true;
            }
        }
        if has_dropped {
            message
                .parts
                .retain(|part| !matches!(part, Part::Text { text } if text.trim().is_empty()));
            self.tell(Event::Void);
            for part in &message.parts {
                if let Part::Text { text } = part {
                    self.tell(Event::Text(text));
                }
            }
        }
    }

    fn ask_again(&mut self, aside: &'static str) -> Next {
        self.aside = Some(aside);
        Next::AskAgain
    }

    /// Judges the calls of a reply and puts it into history, each call with an id of its own.
    fn plan(&mut self, mut message: AssistantMessage) -> Vec<Planned> {
        let Self {
            conversation, made, ..
        } = self;
        let most = conversation.settings.max_same_calls.max(1);
        let source = conversation.source_of(&message);
        drop_echoes(&mut message);
        let mut plan = Vec::new();
        for part in &mut message.parts {
            if let Part::Call(call) = part {
                call.name
                    .truncate(call.name.floor_char_boundary(LONGEST_NAME));
                let verdict = made.judge(&call.id, call, most);
                plan.push(Planned::new(plan.len(), verdict, source));
                if let Some(id) = conversation.history.claim_id(&call.id) {
                    call.id = id;
                }
            }
        }
        conversation.history.reply(message);
        self.tool_rounds += 1;
        self.rounds_with_repetition += usize::from(plan.iter().any(Planned::is_repetition));
        plan
    }

    /// The record of a turn whose last message is the answer, or that has none.
    pub(super) fn end(&mut self, end: TurnEnd) -> Turn {
        let answer = self
            .conversation
            .history
            .answer()
            .filter(|answer| !answer.trim().is_empty());
        let is_missing = answer.is_none();
        let answer = answer.unwrap_or_else(|| {
            let answer = match end {
                TurnEnd::Refusal => "The model declined to answer.".to_owned(),
                TurnEnd::Length => {
                    "The model used up its tokens before it said anything: raise model.maxTokens."
                        .to_owned()
                }
                _ if self.tool_rounds > 0 => format!(
                    "There is no answer: {}, and when it was asked for one, it gave none.",
                    so_far(end)
                ),
                _ => "The model gave no answer, also when it was asked again.".to_owned(),
            };
            self.tell(Event::Text(&answer));
            answer
        });
        let error = is_missing.then(|| answer.clone());
        self.record(answer, end, error, None)
    }

    /// The record of a turn whose model failed after it used tools; what they did must not be lost.
    pub(super) fn fail(
        &mut self,
        limit: Option<TurnEnd>,
        error: ModelError,
    ) -> Result<Turn, ModelError> {
        if self.tool_rounds == 0 {
            return Err(error);
        }
        let end = limit.unwrap_or(TurnEnd::Failed);
        let why = so_far(end);
        let answer = format!(
            "There is no answer: {why}, and when it was asked for one, this happened: {error}."
        );
        self.tell(Event::Text(&answer));
        let (error, kind) = (error.to_string(), error.kind());
        Ok(self.record(answer, end, Some(error), Some(kind)))
    }

    fn record(
        &mut self,
        answer: String,
        end: TurnEnd,
        error: Option<String>,
        error_kind: Option<&'static str>,
    ) -> Turn {
        Turn {
            answer,
            end,
            error,
            error_kind,
            rounds: std::mem::take(&mut self.rounds),
            notices: Vec::new(),
            usage: self.usage,
            took_ms: millis(self.started.elapsed()),
        }
    }
}

fn so_far(end: TurnEnd) -> &'static str {
    match end {
        TurnEnd::RoundLimit => "the model used tools as often as it may",
        TurnEnd::Repetition => "the model made the same call again and again",
        TurnEnd::Deadline => "the time of this turn was used up",
        _ => "the model used tools",
    }
}

fn drop_echoes(message: &mut AssistantMessage) {
    let mut index = 0;
    while index < message.parts.len() {
        let (before, behind) = message.parts.split_at(index);
        let is_echo = matches!(&behind[0], Part::Call(call) if !call.id.is_empty() && before.contains(&behind[0]));
        if is_echo {
            message.parts.remove(index);
        } else {
            index += 1;
        }
    }
}

fn has_words(message: &AssistantMessage) -> bool {
    let mut parts = message.parts.iter();
    parts.any(|part| matches!(part, Part::Text { text } if !text.trim().is_empty()))
}

pub(super) fn millis(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}
