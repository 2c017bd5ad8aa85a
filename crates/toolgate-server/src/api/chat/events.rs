//! The events of a chat turn, and the listener that sends them.

use axum::response::sse;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use toolgate_core::{Redactor, ToolOutcome};
use toolgate_models::{
    CallArguments, ModelCall, ModelError, ModelEvent, ModelListener, TurnRecord,
};
use utoipa::ToSchema;

use super::super::sse::event;

// Longer results are cut; `/api/calls/{id}` has the rest.
const MAX_PREVIEW_BYTES: usize = 500;

/// An event of a turn. Its SSE name is the variant in lower case.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ChatEvent {
    /// `conversation`: which conversation it is, and which model answers.
    Conversation {
        /// Send this id to continue the conversation.
        id: String,
        /// The provider of the model.
        #[schema(example = "ollama")]
        provider: String,
        /// The name of the model.
        #[schema(example = "qwen3:0.6b")]
        model: String,
        /// Why this model was chosen.
        why: String,
    },
    /// `text`: part of the answer.
    Text {
        /// The next piece of the answer.
        text: String,
    },
    /// `thinking`: part of the model's reasoning.
    Thinking {
        /// The next piece of the reasoning.
        text: String,
    },
    /// `void`: discard the text of this round.
    Void {},
    /// `call`: a tool call starts.
    Call {
        /// The model's id for the call.
        id: String,
        /// The call's id in the journal.
        call_id: String,
        /// The name of the tool.
        #[schema(example = "echo")]
        tool: String,
        /// As the model wrote them; a string if they were not a JSON object.
        arguments: Value,
    },
    /// `result`: a tool call has ended.
    Result {
        /// The model's id for the call.
        id: String,
        /// The call's id in the journal.
        call_id: String,
        /// Whether the tool succeeded.
        success: bool,
        /// The duration of the call.
        duration_ms: f64,
        /// Why the call failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        error: Option<String>,
        /// The beginning of the result, as JSON.
        preview: String,
    },
    /// `notice`: something a person should know.
    Notice {
        /// The notice, as a sentence.
        text: String,
    },
    /// `done`: the turn is over.
    Done {
        /// The complete final answer.
        answer: String,
        /// `answered`, `round_limit`, `repetition`, `deadline`, `length`,
        /// `refusal`, `empty` or `failed`.
        #[schema(example = "answered")]
        end: Value,
        /// How many requests the model was sent.
        rounds: usize,
        /// Tokens read by the model.
        input_tokens: u64,
        /// Tokens written by the model.
        output_tokens: u64,
        /// The time from the message to the end of the turn.
        duration_ms: f64,
    },
    /// `error`: the turn failed without an answer.
    Error {
        /// What went wrong, and what to do.
        detail: String,
    },
}

impl ChatEvent {
    pub(super) fn from_turn(end: Result<TurnRecord, ModelError>) -> Self {
        match end {
            Ok(turn) => Self::Done {
                answer: turn.answer,
                end: serde_json::to_value(turn.end).unwrap_or_default(),
                rounds: turn.rounds.len(),
                input_tokens: turn.usage.input,
                output_tokens: turn.usage.output,
                duration_ms: turn.took_ms,
            },
            Err(error) => Self::Error {
                detail: error.to_string(),
            },
        }
    }

    pub(super) fn stopping() -> Self {
        Self::Error {
            detail: "the gateway is stopping; send the message again once it is back".to_owned(),
        }
    }

    pub(super) fn is_last(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Error { .. })
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Conversation { .. } => "conversation",
            Self::Text { .. } => "text",
            Self::Thinking { .. } => "thinking",
            Self::Void {} => "void",
            Self::Call { .. } => "call",
            Self::Result { .. } => "result",
            Self::Notice { .. } => "notice",
            Self::Done { .. } => "done",
            Self::Error { .. } => "error",
        }
    }
}

pub(super) fn sse_event(chat_event: &ChatEvent) -> sse::Event {
    event(chat_event.name(), chat_event)
}

// Never waits for the reader, because that would delay the model. If the reader is too slow, the
// turn ends instead.
pub(super) struct ChatEventSender {
    sender: mpsc::Sender<ChatEvent>,
    redactor: Redactor,
    // Cancelled when the queue of events overflows.
    pub(super) too_slow: CancellationToken,
    pub(super) running: watch::Sender<usize>,
}

impl ChatEventSender {
    pub(super) fn new(sender: mpsc::Sender<ChatEvent>, redactor: Redactor) -> Self {
        Self {
            sender,
            redactor,
            too_slow: CancellationToken::new(),
            running: watch::Sender::new(0),
        }
    }

    pub(super) fn send(&self, event: ChatEvent) {
        if self.sender.try_send(event).is_err() {
            self.too_slow.cancel();
        }
    }

    fn call(&self, call: &ModelCall, id: toolgate_core::CallId) -> ChatEvent {
        ChatEvent::Call {
            id: call.id.clone(),
            call_id: id.to_string(),
            tool: call.name.clone(),
            arguments: match &call.arguments {
                CallArguments::Object(object) => {
                    self.redactor.value(&Value::Object(object.clone()))
                }
                CallArguments::Unusable(text) => self.redactor.text(text).into(),
            },
        }
    }

    fn result(&self, call: &ModelCall, outcome: &ToolOutcome) -> ChatEvent {
        let error = outcome.error();
        ChatEvent::Result {
            id: call.id.clone(),
            call_id: outcome.call_id.to_string(),
            success: outcome.is_success(),
            duration_ms: outcome.execution_time_ms(),
            error: error.map(|error| self.redactor.text(&error).into_owned()),
            preview: match &outcome.result {
                Ok(output) => self.redactor.json(&output.to_result(), MAX_PREVIEW_BYTES),
                Err(_) => String::new(),
            },
        }
    }
}

impl ModelListener for ChatEventSender {
    fn event(&mut self, event: ModelEvent<'_>) {
        let event = match event {
            ModelEvent::Text(text) => ChatEvent::Text {
                text: text.to_owned(),
            },
            ModelEvent::Thinking(text) => ChatEvent::Thinking {
                text: text.to_owned(),
            },
            ModelEvent::Void | ModelEvent::WasThinking => ChatEvent::Void {},
            ModelEvent::Calling { call, id, .. } => {
                self.running.send_modify(|running| *running += 1);
                self.call(call, id)
            }
            ModelEvent::Called { call, outcome, .. } => {
                self.running
                    .send_modify(|running| *running = running.saturating_sub(1));
                self.result(call, outcome)
            }
            ModelEvent::Notice(text) => ChatEvent::Notice {
                text: self.redactor.text(text).into_owned(),
            },
            ModelEvent::Retrying { error, after } => ChatEvent::Notice {
                text: format!("{error}; trying again in {:.1} s", after.as_secs_f64()),
            },
            _ => return,
        };
        self.send(event);
    }
}
