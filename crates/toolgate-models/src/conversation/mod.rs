//! The loop that lets a model use tools.

use std::sync::Arc;

use serde::Serialize;

use crate::{Listener, Message, ModelClient, ModelError, ModelSettings, Stop, Toolbox, Usage};

/// One person and one model, with tools between them. Dropping the future of [`turn`](Self::turn) stops the turn, not the
/// conversation: what was said and done stays in its history.
pub struct Conversation {
    client: Arc<dyn ModelClient>,
    toolbox: Toolbox,
    settings: ModelSettings,
    history: Vec<Message>,
}

/// What came of a turn.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Turn {
    /// The model's last words.
    pub answer: String,
    /// How the turn ended.
    pub end: TurnEnd,
    /// What the model was asked, round by round.
    pub rounds: Vec<Round>,
    /// All tokens.
    pub usage: Usage,
    /// From the person's words to the end, in milliseconds.
    pub took_ms: f64,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnEnd {
    /// The model answered.
    Answered,
    /// It wanted more rounds of tools than it may have, and was asked to answer with what it has.
    RoundLimit,
    /// It asked for the same call again and again, and was asked to answer with what it has.
    Repetition,
    /// There was no time for more tools.
    Deadline,
    /// It ran out of tokens in mid-answer.
    Length,
    /// It will not answer this.
    Refusal,
}

/// One question to the model, and the tools it used.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Round {
    /// Why the model stopped.
    pub stop: Stop,
    /// Tokens.
    pub usage: Usage,
    /// From the question to the first words or call, in milliseconds.
    pub first_token_ms: Option<f64>,
    /// From the question to the end of the answer, in milliseconds.
    pub model_ms: f64,
    /// The tools it called, as envelopes with the executor's ids, in the order it asked for them.
    pub calls: Vec<serde_json::Value>,
}

impl Conversation {
    /// An empty one.
    pub fn new(client: Arc<dyn ModelClient>, toolbox: Toolbox, settings: ModelSettings) -> Self {
        Self {
            client,
            toolbox,
            settings,
            history: Vec::new(),
        }
    }

    /// Goes on from an earlier history.
    #[must_use]
    pub fn resumed(mut self, history: Vec<Message>) -> Self {
        self.history = history;
        self
    }

    /// All that was said.
    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// Goes on with another model.
    pub fn set_client(&mut self, client: Arc<dyn ModelClient>) {
        self.client = client;
    }

    /// The person says something; the model answers, with as many tools in between as it needs and may have.
    pub async fn turn(
        &mut self,
        text: &str,
        listener: &mut dyn Listener,
    ) -> Result<Turn, ModelError> {
        let _ = (text, listener, &self.toolbox, &self.settings, &self.client);
        Err(ModelError::Model {
            reason: String::new(),
        })
    }
}
