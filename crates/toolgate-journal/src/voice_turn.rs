//! [`VoiceTurn`]: one request that a voice gateway heard, and its answer.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::time;

/// One spoken request and its answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VoiceTurn {
    /// 32 hexadecimal digits, sorted by time.
    pub id: String,
    /// When the wake word was heard, or speech began if none is needed.
    #[serde(serialize_with = "time::serialize")]
    pub started_at: Timestamp,
    /// Where it was heard, such as `microphone`, `wav`, `satellite` or `handle`.
    pub source: String,
    pub room: Option<String>,
    pub wake_word: Option<String>,
    pub heard: String,
    /// The spoken answer, or what would have been spoken.
    pub answer: String,
    pub outcome: TurnOutcome,
    /// Why a real answer is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The model that answered, such as `ollama qwen3:4b` or `intents en`.
    pub model: String,
    pub stages: TurnStages,
    pub calls: Vec<String>,
}

/// How a voice turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnOutcome {
    Answered,
    /// Somebody spoke, or pressed a key, before the answer was over.
    Interrupted,
    /// Something was said, but not a real answer.
    Failed,
}

/// When each stage was reached, in milliseconds after the turn began.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnStages {
    pub speech_ended_ms: Option<f64>,
    /// The transcription was complete.
    pub transcribed_ms: Option<f64>,
    pub first_token_ms: Option<f64>,
    pub first_audio_ms: Option<f64>,
    /// The last sound was played, or the answer broke off.
    pub ended_ms: Option<f64>,
}
