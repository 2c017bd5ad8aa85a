//! The typed events of the protocol.

mod wire;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ServiceInfo, WyomingFrame};
use crate::audio::AudioFormat;

/// Data that the answer returns to the client unchanged, such as `conversation_id`.
pub(crate) type HandleContext = Map<String, Value>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "kebab-case")]
#[non_exhaustive]
pub(crate) enum WyomingEvent {
    AudioStart {
        #[serde(flatten)]
        format: AudioFormat,
        /// In milliseconds of the sender's clock.
        #[serde(default, deserialize_with = "wire::timestamp")]
        timestamp: Option<i64>,
    },
    AudioChunk {
        #[serde(flatten)]
        format: AudioFormat,
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
    Info(Box<ServiceInfo>),
    Transcribe {
        name: Option<String>,
        language: Option<String>,
        context: Option<HandleContext>,
        /// How quickly silence ends speech: `default`, `relaxed` or `aggressive`.
        vad_sensitivity: Option<String>,
    },
    Transcript {
        text: String,
        language: Option<String>,
        context: Option<HandleContext>,
    },
    TranscriptStart {
        language: Option<String>,
        context: Option<HandleContext>,
    },
    TranscriptChunk {
        text: String,
    },
    TranscriptStop,
    Synthesize {
        text: String,
        voice: Option<VoiceChoice>,
        /// Either `text` or `ssml`.
        text_format: Option<String>,
    },
    SynthesizeStart {
        voice: Option<VoiceChoice>,
        /// Either `text` or `ssml`.
        text_format: Option<String>,
    },
    SynthesizeChunk {
        text: String,
    },
    SynthesizeStop,
    SynthesizeStopped,
    Detect {
        /// All known words if absent.
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
        text: Option<String>,
        context: Option<HandleContext>,
    },
    HandledStart {
        context: Option<HandleContext>,
    },
    HandledChunk {
        text: String,
    },
    HandledStop,
    NotHandled {
        text: Option<String>,
        context: Option<HandleContext>,
    },
    Played,
    RunSatellite,
    RunPipeline {
        start_stage: PipelineStage,
        end_stage: PipelineStage,
        #[serde(default)]
        restart_on_end: bool,
        wake_word_name: Option<String>,
        wake_word_names: Option<Vec<String>>,
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
        code: Option<String>,
    },
    #[serde(skip)]
    Other(WyomingFrame),
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PipelineStage {
    Wake,
    Asr,
    Intent,
    Handle,
    Tts,
}
