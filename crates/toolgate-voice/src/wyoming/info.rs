//! What a service tells of itself. Written in full, because readers insist on it; read with whatever is missing left empty.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::audio::Format;

/// The answer to `describe`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Info {
    pub(crate) asr: Vec<AsrProgram>,
    pub(crate) tts: Vec<TtsProgram>,
    pub(crate) handle: Vec<HandleProgram>,
    pub(crate) intent: Vec<IntentProgram>,
    pub(crate) wake: Vec<WakeProgram>,
    pub(crate) mic: Vec<MicProgram>,
    pub(crate) snd: Vec<SndProgram>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) satellite: Option<Satellite>,
}

/// What programs, models and voices have in common.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Artifact {
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
    pub(crate) url: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Model {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    pub(crate) languages: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AsrProgram {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    pub(crate) models: Vec<Model>,
    pub(crate) supports_transcript_streaming: bool,
    /// Whether somebody else must find the end of speech; so it is with those that do not say.
    #[serde(default = "yes")]
    pub(crate) requires_external_vad: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TtsProgram {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    pub(crate) voices: Vec<TtsVoice>,
    pub(crate) supports_synthesize_streaming: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TtsVoice {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    pub(crate) languages: Vec<String>,
    pub(crate) speakers: Option<Vec<Speaker>>,
}

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
    pub(crate) models: Vec<Model>,
    pub(crate) supports_handled_streaming: bool,
    /// Whether it may switch things in the house.
    pub(crate) supports_home_control: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct IntentProgram {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    pub(crate) models: Vec<Model>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct WakeProgram {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
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
    pub(crate) mic_format: Option<Format>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SndProgram {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    pub(crate) snd_format: Option<Format>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Satellite {
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    pub(crate) area: Option<String>,
    pub(crate) has_vad: Option<bool>,
    pub(crate) active_wake_words: Option<Vec<String>>,
    pub(crate) max_active_wake_words: Option<u32>,
    pub(crate) supports_trigger: Option<bool>,
}
