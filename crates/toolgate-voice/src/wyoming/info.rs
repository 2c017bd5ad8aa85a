//! What a service tells of itself. Written in full, because readers insist on it; read with whatever is missing left empty.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::sound;
use crate::audio::Format;

/// The answer to `describe`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Info {
    pub(crate) asr: Vec<AsrProgram>,
    pub(crate) tts: Vec<TtsProgram>,
    pub(crate) handle: Vec<HandleProgram>,
    /// What finds the intent of a request.
    pub(crate) intent: Vec<IntentProgram>,
    pub(crate) wake: Vec<WakeProgram>,
    pub(crate) mic: Vec<MicProgram>,
    pub(crate) snd: Vec<SndProgram>,
    /// The satellite, if the service is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) satellite: Option<Satellite>,
}

/// What programs, models and voices have in common.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Artifact {
    /// Its name, by which it is asked for.
    pub(crate) name: String,
    pub(crate) attribution: Attribution,
    /// Whether it can be used at once.
    pub(crate) installed: bool,
    pub(crate) description: Option<String>,
    #[serde(deserialize_with = "version")]
    pub(crate) version: Option<String>,
}

/// Some write a version as a number.
fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(version) => Some(version),
        Value::Number(version) => Some(version.to_string()),
        _ => None,
    })
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Attribution {
    pub(crate) name: String,
    /// Where it comes from.
    pub(crate) url: String,
}

/// A model of a program for transcription, handling or intents.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Model {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    pub(crate) languages: Vec<String>,
}

/// A program that makes text of speech.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AsrProgram {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    /// Its models.
    pub(crate) models: Vec<Model>,
    /// Whether it sends words before it has heard all.
    pub(crate) supports_transcript_streaming: bool,
    /// Whether somebody else must find the end of speech; so it is with those that do not say.
    #[serde(default = "yes")]
    pub(crate) requires_external_vad: bool,
}

fn yes() -> bool {
    true
}

/// A program that makes speech of text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TtsProgram {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    pub(crate) voices: Vec<TtsVoice>,
    /// Whether it takes text in pieces.
    pub(crate) supports_synthesize_streaming: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TtsVoice {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    pub(crate) languages: Vec<String>,
    /// Its speakers, if there are several.
    pub(crate) speakers: Option<Vec<Speaker>>,
}

/// One speaker of a voice that has several.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Speaker {
    pub(crate) name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct HandleProgram {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    /// Its models.
    pub(crate) models: Vec<Model>,
    /// Whether it sends words before it has all of the answer.
    pub(crate) supports_handled_streaming: bool,
    /// Whether it may switch things in the house.
    pub(crate) supports_home_control: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct IntentProgram {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    /// Its models.
    pub(crate) models: Vec<Model>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct WakeProgram {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    /// Its wake words.
    pub(crate) models: Vec<WakeModel>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct WakeModel {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    pub(crate) languages: Vec<String>,
    pub(crate) phrase: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MicProgram {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    #[serde(with = "sound::optional")]
    pub(crate) mic_format: Option<Format>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SndProgram {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    #[serde(with = "sound::optional")]
    pub(crate) snd_format: Option<Format>,
}

/// A satellite: a microphone and a loudspeaker in a room.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Satellite {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    pub(crate) area: Option<String>,
    /// Whether it finds the end of speech itself.
    pub(crate) has_vad: Option<bool>,
    pub(crate) active_wake_words: Option<Vec<String>>,
    /// How many wake words it can listen for at once.
    pub(crate) max_active_wake_words: Option<u32>,
    /// Whether a pipeline can be started from outside.
    pub(crate) supports_trigger: Option<bool>,
}
