//! The events of the protocol, typed.

mod wire;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Frame, Info};
use crate::audio::Format;

/// What a client wants to be told again, such as `conversation_id`.
pub(crate) type Context = Map<String, Value>;

/// An event. Fields that are `None` are absent or null on the wire, as the reference implementation writes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "kebab-case")]
#[non_exhaustive]
pub(crate) enum Event {
    AudioStart {
        #[serde(flatten)]
        format: Format,
        /// When, in the sender's milliseconds.
        #[serde(default, deserialize_with = "wire::timestamp")]
        timestamp: Option<i64>,
    },
    AudioChunk {
        #[serde(flatten)]
        format: Format,
        #[serde(default, deserialize_with = "wire::timestamp")]
        timestamp: Option<i64>,
        #[serde(skip)]
        bytes: Bytes,
    },
    AudioStop {
        #[serde(default, deserialize_with = "wire::timestamp")]
        timestamp: Option<i64>,
    },
    Describe,
    Info(Box<Info>),
    /// Asks for the text of the sound that follows.
    Transcribe {
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        language: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
        /// How soon silence ends speech: `default`, `relaxed` or `aggressive`.
        #[serde(skip_serializing_if = "Option::is_none")]
        vad_sensitivity: Option<String>,
    },
    /// The text of what was heard; to a handle service, a request.
    Transcript {
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        language: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
    },
    TranscriptStart {
        #[serde(skip_serializing_if = "Option::is_none")]
        language: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
    },
    TranscriptChunk {
        text: String,
    },
    TranscriptStop,
    Synthesize {
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        voice: Option<VoiceChoice>,
        /// `text` or `ssml`.
        #[serde(skip_serializing_if = "Option::is_none")]
        text_format: Option<String>,
    },
    SynthesizeStart {
        #[serde(skip_serializing_if = "Option::is_none")]
        voice: Option<VoiceChoice>,
        /// `text` or `ssml`.
        #[serde(skip_serializing_if = "Option::is_none")]
        text_format: Option<String>,
    },
    SynthesizeChunk {
        text: String,
    },
    SynthesizeStop,
    SynthesizeStopped,
    /// Asks for wake words in the sound that follows.
    Detect {
        /// Which ones; all if absent.
        names: Option<Vec<String>>,
    },
    Detection {
        name: Option<String>,
        #[serde(default, deserialize_with = "wire::timestamp")]
        timestamp: Option<i64>,
        speaker: Option<String>,
    },
    VoiceStarted {
        #[serde(default, deserialize_with = "wire::timestamp")]
        timestamp: Option<i64>,
    },
    VoiceStopped {
        #[serde(default, deserialize_with = "wire::timestamp")]
        timestamp: Option<i64>,
    },
    Recognize {
        text: String,
    },
    Handled {
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
    },
    HandledStart {
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
    },
    HandledChunk {
        text: String,
    },
    HandledStop,
    NotHandled {
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
    },
    Played,
    RunSatellite,
    RunPipeline {
        start_stage: Stage,
        end_stage: Stage,
        #[serde(default)]
        restart_on_end: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        wake_word_name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        wake_word_names: Option<Vec<String>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        announce_text: Option<String>,
    },
    Ping {
        text: Option<String>,
    },
    Pong {
        text: Option<String>,
    },
    Error {
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// An event this program does not know.
    #[serde(skip)]
    Other(Frame),
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct VoiceChoice {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) speaker: Option<String>,
}

/// A stage of a pipeline, in the order they are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    Wake,
    Asr,
    Intent,
    Handle,
    Tts,
}
