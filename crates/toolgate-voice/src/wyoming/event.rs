//! The events of the protocol, typed.

mod wire;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Frame, Info, sound};
use crate::audio::Format;

/// What a client wants to be told again, such as `conversation_id`.
pub(crate) type Context = Map<String, Value>;

/// An event. Fields that are `None` are absent or null on the wire, as the reference implementation writes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "kebab-case")]
#[non_exhaustive]
pub(crate) enum Event {
    AudioStart {
        #[serde(flatten, with = "sound")]
        format: Format,
        /// When, in the sender's milliseconds.
        #[serde(default, deserialize_with = "wire::timestamp")]
        timestamp: Option<i64>,
    },
    AudioChunk {
        #[serde(flatten, with = "sound")]
        format: Format,
        /// When, in the sender's milliseconds.
        #[serde(default, deserialize_with = "wire::timestamp")]
        timestamp: Option<i64>,
        #[serde(skip)]
        bytes: Bytes,
    },
    AudioStop {
        /// When, in the sender's milliseconds.
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
        /// From the turns before.
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
        /// For the turns after.
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
    },
    TranscriptStart {
        #[serde(skip_serializing_if = "Option::is_none")]
        language: Option<String>,
        /// For the turns after.
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
    },
    TranscriptChunk {
        text: String,
    },
    /// No more pieces of a transcript.
    TranscriptStop,
    Synthesize {
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        voice: Option<VoiceChoice>,
        /// `text` or `ssml`.
        #[serde(skip_serializing_if = "Option::is_none")]
        text_format: Option<String>,
    },
    /// Pieces of text to be said follow.
    SynthesizeStart {
        #[serde(skip_serializing_if = "Option::is_none")]
        voice: Option<VoiceChoice>,
        /// `text` or `ssml`.
        #[serde(skip_serializing_if = "Option::is_none")]
        text_format: Option<String>,
    },
    /// A piece of text to be said.
    SynthesizeChunk {
        text: String,
    },
    /// No more pieces of text.
    SynthesizeStop,
    SynthesizeStopped,
    /// Asks for wake words in the sound that follows.
    Detect {
        /// Which ones; all if absent.
        names: Option<Vec<String>>,
    },
    Detection {
        name: Option<String>,
        /// When, in the sender's milliseconds.
        #[serde(default, deserialize_with = "wire::timestamp")]
        timestamp: Option<i64>,
        speaker: Option<String>,
    },
    VoiceStarted {
        /// When, in the sender's milliseconds.
        #[serde(default, deserialize_with = "wire::timestamp")]
        timestamp: Option<i64>,
    },
    /// Nobody speaks any more.
    VoiceStopped {
        /// When, in the sender's milliseconds.
        #[serde(default, deserialize_with = "wire::timestamp")]
        timestamp: Option<i64>,
    },
    /// Asks for the intent of a text.
    Recognize {
        text: String,
    },
    Handled {
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// For the turns after.
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
    },
    HandledStart {
        /// For the turns after.
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
    },
    HandledChunk {
        text: String,
    },
    /// No more pieces of the answer.
    HandledStop,
    /// The request was not carried out.
    NotHandled {
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// For the turns after.
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
    },
    Played,
    /// The server is ready for the satellite.
    RunSatellite,
    /// Asks for a run of the pipeline.
    RunPipeline {
        /// Where it begins.
        start_stage: Stage,
        /// Where it ends.
        end_stage: Stage,
        /// Whether it begins anew when it has ended.
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

/// A voice that is asked for, by name or by language.
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
