//! What a service tells of itself. Written in full, because readers insist on it; read with whatever is missing left empty.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::sound;
use crate::audio::Format;

/// The answer to `describe`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Info {
    /// What makes text of speech.
    pub(crate) asr: Vec<AsrProgram>,
    /// What makes speech of text.
    pub(crate) tts: Vec<TtsProgram>,
    /// What answers a request.
    pub(crate) handle: Vec<HandleProgram>,
    /// What finds the intent of a request.
    pub(crate) intent: Vec<IntentProgram>,
    /// What hears wake words.
    pub(crate) wake: Vec<WakeProgram>,
    /// Microphones.
    pub(crate) mic: Vec<MicProgram>,
    /// Loudspeakers.
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
    /// Who made it.
    pub(crate) attribution: Attribution,
    /// Whether it can be used at once.
    pub(crate) installed: bool,
    /// What a person reads.
    pub(crate) description: Option<String>,
    /// Its version.
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

/// Who made something.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Attribution {
    /// Their name.
    pub(crate) name: String,
    /// Where it comes from.
    pub(crate) url: String,
}

/// A model of a program for transcription, handling or intents.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Model {
    /// Name and origin.
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    /// The languages it knows.
    pub(crate) languages: Vec<String>,
}

/// A program that makes text of speech.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AsrProgram {
    /// Name and origin.
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
    /// Name and origin.
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    /// Its voices.
    pub(crate) voices: Vec<TtsVoice>,
    /// Whether it takes text in pieces.
    pub(crate) supports_synthesize_streaming: bool,
}

/// A voice.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TtsVoice {
    /// Name and origin.
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    /// The languages it speaks.
    pub(crate) languages: Vec<String>,
    /// Its speakers, if there are several.
    pub(crate) speakers: Option<Vec<Speaker>>,
}

/// One speaker of a voice that has several.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Speaker {
    /// Its name.
    pub(crate) name: String,
}

/// A program that answers requests.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct HandleProgram {
    /// Name and origin.
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    /// Its models.
    pub(crate) models: Vec<Model>,
    /// Whether it sends words before it has all of the answer.
    pub(crate) supports_handled_streaming: bool,
    /// Whether it may switch things in the house.
    pub(crate) supports_home_control: bool,
}

/// A program that finds intents.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct IntentProgram {
    /// Name and origin.
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    /// Its models.
    pub(crate) models: Vec<Model>,
}

/// A program that hears wake words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct WakeProgram {
    /// Name and origin.
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    /// Its wake words.
    pub(crate) models: Vec<WakeModel>,
}

/// A wake word.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct WakeModel {
    /// Name and origin.
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    /// The languages it is for.
    pub(crate) languages: Vec<String>,
    /// What is said.
    pub(crate) phrase: Option<String>,
}

/// A microphone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MicProgram {
    /// Name and origin.
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    /// What it sends.
    #[serde(with = "sound::optional")]
    pub(crate) mic_format: Option<Format>,
}

/// A loudspeaker.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SndProgram {
    /// Name and origin.
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    /// What it takes.
    #[serde(with = "sound::optional")]
    pub(crate) snd_format: Option<Format>,
}

/// A satellite: a microphone and a loudspeaker in a room.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Satellite {
    /// Name and origin.
    #[serde(flatten)]
    pub(crate) artifact: Artifact,
    /// The room it is in.
    pub(crate) area: Option<String>,
    /// Whether it finds the end of speech itself.
    pub(crate) has_vad: Option<bool>,
    /// The wake words it listens for.
    pub(crate) active_wake_words: Option<Vec<String>>,
    /// How many wake words it can listen for at once.
    pub(crate) max_active_wake_words: Option<u32>,
    /// Whether a pipeline can be started from outside.
    pub(crate) supports_trigger: Option<bool>,
}
