//! What a voice gateway heard and said.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::time;

/// One spoken request and its answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VoiceTurn {
    /// 32 hexadecimal digits, sorted by time.
    pub id: String,
    /// When its name was heard, or speech began where it needs no name.
    #[serde(serialize_with = "time::serialize")]
    pub started_at: Timestamp,
    /// Where it was heard, such as `microphone`, `wav`, `satellite` or `handle`.
    pub source: String,
    /// The room, if that is known.
    pub room: Option<String>,
    /// The wake word, if there was one.
    pub wake_word: Option<String>,
    /// What was understood.
    pub heard: String,
    /// What was said, or would have been.
    pub answer: String,
    /// How it ended.
    pub outcome: TurnOutcome,
    /// Why there is no proper answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Who answered, such as `ollama qwen3:4b` or `intents en`.
    pub model: String,
    /// When each stage was reached.
    pub stages: TurnStages,
    /// The ids of its calls.
    pub calls: Vec<String>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnOutcome {
    /// The answer was given.
    Answered,
    /// Somebody spoke, or pressed a key, before the answer was over.
    Interrupted,
    /// There is no proper answer; something was said all the same.
    Failed,
}

/// When each stage was reached, in milliseconds after the turn began.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnStages {
    /// Speech was found to be over.
    pub speech_ended_ms: Option<f64>,
    /// Its words were known.
    pub transcribed_ms: Option<f64>,
    /// The model said or called something.
    pub first_token_ms: Option<f64>,
    /// The first sound of the answer left.
    pub first_audio_ms: Option<f64>,
    /// The last sound was played, or the answer broke off.
    pub ended_ms: Option<f64>,
}
