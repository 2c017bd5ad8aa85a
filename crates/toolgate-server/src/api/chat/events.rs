//! What is told of a turn.

use axum::response::sse;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use toolgate_core::{Redactor, ToolOutcome};
use toolgate_models::{CallArguments, Event, Listener, ModelCall, ModelError, Turn};
use utoipa::ToSchema;

use super::super::sse::event;

/// A result is told up to here; the call's own page has the rest.
const PREVIEW: usize = 500;

/// Something that happens in a turn. The name of the event says which it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ChatEvent {
    /// `conversation`: which it is, and who answers.
    Conversation {
        /// To go on with it.
        id: String,
        /// Whose model.
        #[schema(example = "ollama")]
        provider: String,
        /// Its name.
        #[schema(example = "qwen3:0.6b")]
        model: String,
        /// Why this one.
        why: String,
    },
    /// `text`: words for the person.
    Text {
        /// More of them.
        text: String,
    },
    /// `thinking`: words of the model for itself.
    Thinking {
        /// More of them.
        text: String,
    },
    /// `void`: the words of this round that came so far do not count.
    Void {},
    /// `call`: a tool starts.
    Call {
        /// The model's id of the call.
        id: String,
        /// The id that the journal has it by.
        call_id: String,
        /// The tool.
        #[schema(example = "echo")]
        tool: String,
        /// As the model wrote them; a text if they were no JSON object.
        arguments: Value,
    },
    /// `result`: a tool is done.
    Result {
        /// The model's id of the call.
        id: String,
        /// The id that the journal has it by.
        call_id: String,
        /// Whether it did what was asked.
        success: bool,
        /// How long it took.
        duration_ms: f64,
        /// Why it did not.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        error: Option<String>,
        /// The beginning of what it answered, as JSON.
        preview: String,
    },
    /// `notice`: something a person should know.
    Notice {
        /// A sentence.
        text: String,
    },
    /// `done`: the turn is over.
    Done {
        /// The last words, whole.
        answer: String,
        /// `answered`, `round_limit`, `repetition`, `deadline`, `length`, `refusal`, `empty` or `failed`.
        #[schema(example = "answered")]
        end: Value,
        /// How often the model was asked.
        rounds: usize,
        /// Tokens it read.
        input_tokens: u64,
        /// Tokens it wrote.
        output_tokens: u64,
        /// From the person's words to the end.
        duration_ms: f64,
    },
    /// `error`: there is no answer.
    Error {
        /// Why.
        detail: String,
    },
}

impl ChatEvent {
    pub(super) fn of_end(end: Result<Turn, ModelError>) -> Self {
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

    /// There is none because the gateway stops.
    pub(super) fn stopping() -> Self {
        Self::Error {
            detail: "the gateway is stopping; say it again once it is back".to_owned(),
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

pub(super) fn events_of(told: &ChatEvent) -> sse::Event {
    event(told.name(), told)
}

/// Hands on what happens in a turn. It never waits: a reader that is too slow ends the turn.
pub(super) struct Teller {
    sender: mpsc::Sender<ChatEvent>,
    redactor: Redactor,
    too_slow: CancellationToken,
    running: watch::Sender<usize>,
}

impl Teller {
    pub(super) fn new(sender: mpsc::Sender<ChatEvent>, redactor: Redactor) -> Self {
        Self {
            sender,
            redactor,
            too_slow: CancellationToken::new(),
            running: watch::Sender::new(0),
        }
    }

    pub(super) fn running(&self) -> watch::Receiver<usize> {
        self.running.subscribe()
    }

    /// Cancelled when more events wait than may.
    pub(super) fn too_slow(&self) -> CancellationToken {
        self.too_slow.clone()
    }

    pub(super) fn tell(&self, event: ChatEvent) {
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
                Ok(output) => self.redactor.json(&output.to_result(), PREVIEW),
                Err(_) => String::new(),
            },
        }
    }
}

impl Listener for Teller {
    fn event(&mut self, event: Event<'_>) {
        let event = match event {
            Event::Text(text) => ChatEvent::Text {
                text: text.to_owned(),
            },
            Event::Thinking(text) => ChatEvent::Thinking {
                text: text.to_owned(),
            },
            Event::Void | Event::WasThinking => ChatEvent::Void {},
            Event::Calling { call, id, .. } => {
                self.running.send_modify(|running| *running += 1);
                self.call(call, id)
            }
            Event::Called { call, outcome, .. } => {
                self.running
                    .send_modify(|running| *running = running.saturating_sub(1));
                self.result(call, outcome)
            }
            Event::Notice(text) => ChatEvent::Notice {
                text: self.redactor.text(text).into_owned(),
            },
            Event::Retrying { error, after } => ChatEvent::Notice {
                text: format!("{error}; it is tried again in {:.1} s", after.as_secs_f64()),
            },
            _ => return,
        };
        self.tell(event);
    }
}
