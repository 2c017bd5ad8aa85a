//! One turn in progress: its limits, and what happens after each reply.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolgate_core::CallId;

use super::calls::{CallPlan, RepetitionGuard};
use super::tool_offer::choose_offer;
use super::{Conversation, RoundRecord, TurnEnd, TurnRecord};
use crate::rescue::rescue;
use crate::{
    AssistantMessage, Catalog, MessagePart, ModelError, ModelEvent, ModelListener, ModelReply,
    OfferedTools, StopReason, TokenUsage,
};

const MAX_PAUSES: usize = 10;

// No tool has a longer name. Bounds the names that a model invents.
const MAX_NAME_LEN: usize = 500;

// As good as no limit, and too short to overflow `Instant`.
const MAX_TIMEOUT: Duration = Duration::from_secs(30 * 86_400);

/// One turn in progress. Dropping it at any moment leaves a complete history.
pub(super) struct RunningTurn<'a> {
    pub(super) conversation: &'a mut Conversation,
    pub(super) listener: &'a mut dyn ModelListener,
    pub(super) text: &'a str,
    pub(super) catalog: Arc<Catalog>,
    pub(super) offer: OfferedTools,
    pub(super) rounds: Vec<RoundRecord>,
    pub(super) deadline: Instant,
    // No tool starts after this, so that there is time for an answer.
    pub(super) tools_until: Instant,
    started: Instant,
    pub(super) usage: TokenUsage,
    guard: RepetitionGuard,
    // The other calls of the turn join this call's trace.
    pub(super) first: Option<CallId>,
    tool_rounds: usize,
    rounds_with_repetition: usize,
    pauses: usize,
    was_truncated: bool,
    was_empty: bool,
    pub(super) note: Option<&'static str>,
}

pub(super) enum NextStep {
    Run(Vec<CallPlan>),
    AskAgain,
    End(TurnEnd),
}

impl Drop for RunningTurn<'_> {
    fn drop(&mut self) {
        if !self.conversation.settings.keep_thinking {
            self.conversation.history.drop_thinking();
        }
        self.conversation.history.finish_turn();
    }
}

impl<'a> RunningTurn<'a> {
    pub(super) async fn start(
        conversation: &'a mut Conversation,
        text: &'a str,
        listener: &'a mut dyn ModelListener,
    ) -> Self {
        let started = Instant::now();
        let limit = conversation.settings.timeout.min(MAX_TIMEOUT);
        conversation.router.prepare(started + limit).await;
        // The turn isn't in history yet, so nothing is left of it if it is dropped here.
        conversation.wait_for_tools(text, listener).await;
        conversation.cut_results();
        conversation.history.start_turn(text.to_owned());
        let catalog = conversation.router.catalog(&conversation.toolbox.current());
        let offer = choose_offer(conversation, &catalog, text, listener);
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
            usage: TokenUsage::default(),
            guard: RepetitionGuard::default(),
            first: None,
            tool_rounds: 0,
            rounds_with_repetition: 0,
            pauses: 0,
            was_truncated: false,
            was_empty: false,
            note: None,
        }
    }

    pub(super) fn emit(&mut self, event: ModelEvent<'_>) {
        self.conversation.turn_words.observe(&event);
        self.listener.event(event);
    }

    // Why no more tools may be used; `None` while they may. The first round may always use tools.
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

    pub(super) fn handle_reply(&mut self, reply: ModelReply, limit: Option<TurnEnd>) -> NextStep {
        let ModelReply {
            mut message, stop, ..
        } = reply;
        if self.forbids_tools(limit) || stop == StopReason::Refusal {
            // Calls that it makes anyway don't run.
            message
                .parts
                .retain(|part| !matches!(part, MessagePart::Call(_)));
            self.drop_written_calls(&mut message);
        }
        if message.calls().next().is_some() {
            return NextStep::Run(self.plan_calls(message));
        }
        // Text that leads up to a call that was cut off isn't an answer yet.
        let announces_truncated_call = stop == StopReason::TruncatedCall && !self.was_truncated;
        let has_text = has_words(&message);
        let has_words = has_text && !announces_truncated_call;
        if has_words || stop == StopReason::Pause && !message.parts.is_empty() {
            self.conversation.history.add_reply(message);
        } else if has_text {
            self.emit(ModelEvent::Void);
        }
        match stop {
            StopReason::Refusal => NextStep::End(TurnEnd::Refusal),
            StopReason::Pause if self.pauses < MAX_PAUSES => {
                self.pauses += 1;
                NextStep::AskAgain
            }
            StopReason::Length | StopReason::TruncatedCall if has_words => {
                NextStep::End(TurnEnd::Length)
            }
            _ if has_words => NextStep::End(limit.unwrap_or(TurnEnd::Answered)),
            StopReason::Length | StopReason::TruncatedCall if !self.was_truncated => {
                self.was_truncated = true;
                self.ask_again(
                    "(Your last reply reached the limit of its length before it said anything or finished a call, and is \
                     lost. Be brief: answer in few words, or make one call with short arguments.)",
                )
            }
            StopReason::Length | StopReason::TruncatedCall => NextStep::End(TurnEnd::Length),
            _ if !self.was_empty => {
                self.was_empty = true;
                self.ask_again("(Your last reply was empty. Answer in words.)")
            }
            _ => NextStep::End(limit.unwrap_or(TurnEnd::Empty)),
        }
    }

    // Calls written as text don't run either, and aren't meant for the user.
    fn drop_written_calls(&mut self, message: &mut AssistantMessage) {
        if !self.conversation.settings.rescue {
            return;
        }
        let mut has_dropped = false;
        for part in &mut message.parts {
            if let MessagePart::Text { text } = part
                && let Some(rescued) = rescue(text, &self.offer)
            {
                *text = rescued.text;
                has_dropped = true;
            }
        }
        if has_dropped {
            message.parts.retain(
                |part| !matches!(part, MessagePart::Text { text } if text.trim().is_empty()),
            );
            self.emit(ModelEvent::Void);
            for part in &message.parts {
                if let MessagePart::Text { text } = part {
                    self.emit(ModelEvent::Text(text));
                }
            }
        }
    }

    fn ask_again(&mut self, note: &'static str) -> NextStep {
        self.note = Some(note);
        NextStep::AskAgain
    }

    fn plan_calls(&mut self, mut message: AssistantMessage) -> Vec<CallPlan> {
        let Self {
            conversation,
            guard,
            ..
        } = self;
        let most = conversation.settings.max_same_calls.max(1);
        let source = conversation.source_of(&message);
        drop_duplicate_calls(&mut message);
        let mut plan = Vec::new();
        for part in &mut message.parts {
            if let MessagePart::Call(call) = part {
                call.name
                    .truncate(call.name.floor_char_boundary(MAX_NAME_LEN));
                let decision = guard.decide(&call.id, call, most);
                plan.push(CallPlan::new(plan.len(), decision, source));
                if let Some(id) = conversation.history.claim_id(&call.id) {
                    call.id = id;
                }
            }
        }
        conversation.history.add_reply(message);
        self.tool_rounds += 1;
        self.rounds_with_repetition += usize::from(plan.iter().any(CallPlan::is_repetition));
        plan
    }

    pub(super) fn end(&mut self, end: TurnEnd) -> TurnRecord {
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
                    "There is no answer: {}, and gave none when asked for one.",
                    failure_cause(end)
                ),
                _ => "The model gave no answer, even when asked again.".to_owned(),
            };
            self.emit(ModelEvent::Text(&answer));
            answer
        });
        let error = is_missing.then(|| answer.clone());
        self.record(answer, end, error, None)
    }

    // The calls that ran must be reported, so once there are any, a failure becomes part of the
    // record.
    pub(super) fn fail(
        &mut self,
        limit: Option<TurnEnd>,
        error: ModelError,
    ) -> Result<TurnRecord, ModelError> {
        if self.tool_rounds == 0 {
            return Err(error);
        }
        let end = limit.unwrap_or(TurnEnd::Failed);
        let why = failure_cause(end);
        let answer = format!("There is no answer: {why}, and asking for one failed: {error}.");
        self.emit(ModelEvent::Text(&answer));
        let (error, kind) = (error.to_string(), error.kind());
        Ok(self.record(answer, end, Some(error), Some(kind)))
    }

    fn record(
        &mut self,
        answer: String,
        end: TurnEnd,
        error: Option<String>,
        error_kind: Option<&'static str>,
    ) -> TurnRecord {
        TurnRecord {
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

fn failure_cause(end: TurnEnd) -> &'static str {
    match end {
        TurnEnd::RoundLimit => "the model used all its rounds of tool calls",
        TurnEnd::Repetition => "the model made the same call again and again",
        TurnEnd::Deadline => "the time for this turn was used up",
        _ => "the model used tools",
    }
}

// Drops a call that the same message has already made, id included.
fn drop_duplicate_calls(message: &mut AssistantMessage) {
    let mut index = 0;
    while index < message.parts.len() {
        let (before, behind) = message.parts.split_at(index);
        let is_duplicate = matches!(&behind[0], MessagePart::Call(call) if !call.id.is_empty() && before.contains(&behind[0]));
        if is_duplicate {
            message.parts.remove(index);
        } else {
            index += 1;
        }
    }
}

fn has_words(message: &AssistantMessage) -> bool {
    let mut parts = message.parts.iter();
    parts.any(|part| matches!(part, MessagePart::Text { text } if !text.trim().is_empty()))
}

pub(super) fn millis(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}
