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
    /// Sound begins.
    AudioStart {
        /// Its format.
        #[serde(flatten, with = "sound")]
        format: Format,
        /// When, in the sender's milliseconds.
        #[serde(default, deserialize_with = "wire::timestamp")]
        timestamp: Option<i64>,
    },
    /// A piece of sound.
    AudioChunk {
        /// Its format.
        #[serde(flatten, with = "sound")]
        format: Format,
        /// When, in the sender's milliseconds.
        #[serde(default, deserialize_with = "wire::timestamp")]
        timestamp: Option<i64>,
        /// Whole frames of sound.
        #[serde(skip)]
        bytes: Bytes,
    },
    /// Sound ends.
    AudioStop {
        /// When, in the sender's milliseconds.
        #[serde(default, deserialize_with = "wire::timestamp")]
        timestamp: Option<i64>,
    },
    /// Asks what the service is.
    Describe,
    /// What the service is.
    Info(Box<Info>),
    /// Asks for the text of the sound that follows.
    Transcribe {
        /// The model.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The language.
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
        /// The text.
        text: String,
        /// Its language.
        #[serde(skip_serializing_if = "Option::is_none")]
        language: Option<String>,
        /// For the turns after.
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
    },
    /// Pieces of a transcript follow.
    TranscriptStart {
        /// Their language.
        #[serde(skip_serializing_if = "Option::is_none")]
        language: Option<String>,
        /// For the turns after.
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
    },
    /// A piece of a transcript.
    TranscriptChunk {
        /// The piece.
        text: String,
    },
    /// No more pieces of a transcript.
    TranscriptStop,
    /// Asks for speech.
    Synthesize {
        /// What is to be said.
        text: String,
        /// By whom.
        #[serde(skip_serializing_if = "Option::is_none")]
        voice: Option<VoiceChoice>,
        /// `text` or `ssml`.
        #[serde(skip_serializing_if = "Option::is_none")]
        text_format: Option<String>,
    },
    /// Pieces of text to be said follow.
    SynthesizeStart {
        /// By whom.
        #[serde(skip_serializing_if = "Option::is_none")]
        voice: Option<VoiceChoice>,
        /// `text` or `ssml`.
        #[serde(skip_serializing_if = "Option::is_none")]
        text_format: Option<String>,
    },
    /// A piece of text to be said.
    SynthesizeChunk {
        /// The piece.
        text: String,
    },
    /// No more pieces of text.
    SynthesizeStop,
    /// All of it has been said.
    SynthesizeStopped,
    /// Asks for wake words in the sound that follows.
    Detect {
        /// Which ones; all if absent.
        names: Option<Vec<String>>,
    },
    /// A wake word was heard.
    Detection {
        /// Which one.
        name: Option<String>,
        /// When, in the sender's milliseconds.
        #[serde(default, deserialize_with = "wire::timestamp")]
        timestamp: Option<i64>,
        /// Who said it.
        speaker: Option<String>,
    },
    /// The sound was over before a wake word was heard.
    NotDetected,
    /// Somebody speaks.
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
        /// The text.
        text: String,
    },
    /// An intent.
    Intent {
        /// Its name.
        name: String,
        /// What it is about.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        entities: Vec<Entity>,
        /// What to answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// There is no intent in it.
    NotRecognized {
        /// What to answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// Several intents follow.
    IntentsStart,
    /// No more intents.
    IntentsStop,
    /// The request was carried out.
    Handled {
        /// What to answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// For the turns after.
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
    },
    /// Pieces of the answer follow.
    HandledStart {
        /// For the turns after.
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
    },
    /// A piece of the answer.
    HandledChunk {
        /// The piece.
        text: String,
    },
    /// No more pieces of the answer.
    HandledStop,
    /// The request was not carried out.
    NotHandled {
        /// What to answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// For the turns after.
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
    },
    /// All sound has been heard.
    Played,
    /// The server is ready for the satellite.
    RunSatellite,
    /// The server is not ready for the satellite.
    PauseSatellite,
    /// The satellite found its server.
    SatelliteConnected,
    /// The satellite lost its server.
    SatelliteDisconnected,
    /// The satellite sends sound from now on.
    StreamingStarted,
    /// The satellite sends no more sound.
    StreamingStopped,
    /// Asks for a run of the pipeline.
    RunPipeline {
        /// Where it begins.
        start_stage: Stage,
        /// Where it ends.
        end_stage: Stage,
        /// Whether it begins anew when it has ended.
        #[serde(default)]
        restart_on_end: bool,
        /// The wake word that was heard.
        #[serde(skip_serializing_if = "Option::is_none")]
        wake_word_name: Option<String>,
        /// The wake words to listen for.
        #[serde(skip_serializing_if = "Option::is_none")]
        wake_word_names: Option<Vec<String>>,
        /// What is to be said.
        #[serde(skip_serializing_if = "Option::is_none")]
        announce_text: Option<String>,
    },
    /// A timer runs.
    TimerStarted {
        /// Which one.
        id: String,
        /// How long.
        total_seconds: u64,
        /// What it is called.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The hours somebody said.
        #[serde(skip_serializing_if = "Option::is_none")]
        start_hours: Option<u64>,
        /// The minutes somebody said.
        #[serde(skip_serializing_if = "Option::is_none")]
        start_minutes: Option<u64>,
        /// The seconds somebody said.
        #[serde(skip_serializing_if = "Option::is_none")]
        start_seconds: Option<u64>,
        /// What to do at its end.
        #[serde(skip_serializing_if = "Option::is_none")]
        command: Option<TimerCommand>,
    },
    /// A timer was paused, resumed or changed.
    TimerUpdated {
        /// Which one.
        id: String,
        /// Whether it runs.
        is_active: bool,
        /// How long it still takes.
        total_seconds: u64,
    },
    /// A timer is no more.
    TimerCancelled {
        /// Which one.
        id: String,
    },
    /// A timer is over.
    TimerFinished {
        /// Which one.
        id: String,
    },
    /// Asks for a sign of life.
    Ping {
        /// To be repeated.
        text: Option<String>,
    },
    /// A sign of life.
    Pong {
        /// From the ping.
        text: Option<String>,
    },
    /// Something failed.
    Error {
        /// What a person reads.
        text: String,
        /// What a program reads.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// Something between this peer and its user.
    UserEvent {
        /// What it is.
        name: String,
        /// Whatever belongs to it.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Map<String, Value>>,
    },
    /// An event this program does not know.
    #[serde(skip)]
    Other(Frame),
}

/// A voice that is asked for, by name or by language.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct VoiceChoice {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// Its language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) language: Option<String>,
    /// One of its speakers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) speaker: Option<String>,
}

/// Something an intent is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entity {
    /// What it is.
    pub(crate) name: String,
    /// Its value.
    #[serde(default)]
    pub(crate) value: Value,
}

/// A stage of a pipeline, in the order they are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    /// A wake word is heard.
    Wake,
    /// Speech becomes text.
    Asr,
    /// Text becomes an intent.
    Intent,
    /// The request is carried out.
    Handle,
    /// The answer is spoken.
    Tts,
}

/// What is said to the house when a timer is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TimerCommand {
    /// The request.
    pub(crate) text: String,
    /// Its language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) language: Option<String>,
}
