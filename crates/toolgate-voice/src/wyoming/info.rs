//! What a service tells of itself. Written in full, because readers insist on it; read with whatever is missing left empty.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::sound;
use crate::audio::Format;

/// The answer to `describe`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    /// What makes text of speech.
    pub asr: Vec<AsrProgram>,
    /// What makes speech of text.
    pub tts: Vec<TtsProgram>,
    /// What answers a request.
    pub handle: Vec<HandleProgram>,
    /// What finds the intent of a request.
    pub intent: Vec<IntentProgram>,
    /// What hears wake words.
    pub wake: Vec<WakeProgram>,
    /// Microphones.
    pub mic: Vec<MicProgram>,
    /// Loudspeakers.
    pub snd: Vec<SndProgram>,
    /// The satellite, if the service is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub satellite: Option<Satellite>,
}

/// What programs, models and voices have in common.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Artifact {
    /// Its name, by which it is asked for.
    pub name: String,
    /// Who made it.
    pub attribution: Attribution,
    /// Whether it can be used at once.
    pub installed: bool,
    /// What a person reads.
    pub description: Option<String>,
    /// Its version.
    #[serde(deserialize_with = "version")]
    pub version: Option<String>,
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
pub struct Attribution {
    /// Their name.
    pub name: String,
    /// Where it comes from.
    pub url: String,
}

/// A model of a program for transcription, handling or intents.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Model {
    /// Name and origin.
    #[serde(flatten)]
    pub artifact: Artifact,
    /// The languages it knows.
    pub languages: Vec<String>,
}

/// A program that makes text of speech.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AsrProgram {
    /// Name and origin.
    #[serde(flatten)]
    pub artifact: Artifact,
    /// Its models.
    pub models: Vec<Model>,
    /// Whether it sends words before it has heard all.
    pub supports_transcript_streaming: bool,
    /// Whether somebody else must find the end of speech; so it is with those that do not say.
    #[serde(default = "yes")]
    pub requires_external_vad: bool,
}

fn yes() -> bool {
    true
}

/// A program that makes speech of text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TtsProgram {
    /// Name and origin.
    #[serde(flatten)]
    pub artifact: Artifact,
    /// Its voices.
    pub voices: Vec<TtsVoice>,
    /// Whether it takes text in pieces.
    pub supports_synthesize_streaming: bool,
}

/// A voice.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TtsVoice {
    /// Name and origin.
    #[serde(flatten)]
    pub artifact: Artifact,
    /// The languages it speaks.
    pub languages: Vec<String>,
    /// Its speakers, if there are several.
    pub speakers: Option<Vec<Speaker>>,
}

/// One speaker of a voice that has several.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Speaker {
    /// Its name.
    pub name: String,
}

/// A program that answers requests.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HandleProgram {
    /// Name and origin.
    #[serde(flatten)]
    pub artifact: Artifact,
    /// Its models.
    pub models: Vec<Model>,
    /// Whether it sends words before it has all of the answer.
    pub supports_handled_streaming: bool,
    /// Whether it may switch things in the house.
    pub supports_home_control: bool,
}

/// A program that finds intents.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IntentProgram {
    /// Name and origin.
    #[serde(flatten)]
    pub artifact: Artifact,
    /// Its models.
    pub models: Vec<Model>,
}

/// A program that hears wake words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WakeProgram {
    /// Name and origin.
    #[serde(flatten)]
    pub artifact: Artifact,
    /// Its wake words.
    pub models: Vec<WakeModel>,
}

/// A wake word.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WakeModel {
    /// Name and origin.
    #[serde(flatten)]
    pub artifact: Artifact,
    /// The languages it is for.
    pub languages: Vec<String>,
    /// What is said.
    pub phrase: Option<String>,
}

/// A microphone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MicProgram {
    /// Name and origin.
    #[serde(flatten)]
    pub artifact: Artifact,
    /// What it sends.
    #[serde(with = "sound::optional")]
    pub mic_format: Option<Format>,
}

/// A loudspeaker.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SndProgram {
    /// Name and origin.
    #[serde(flatten)]
    pub artifact: Artifact,
    /// What it takes.
    #[serde(with = "sound::optional")]
    pub snd_format: Option<Format>,
}

/// A satellite: a microphone and a loudspeaker in a room.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Satellite {
    /// Name and origin.
    #[serde(flatten)]
    pub artifact: Artifact,
    /// The room it is in.
    pub area: Option<String>,
    /// Whether it finds the end of speech itself.
    pub has_vad: Option<bool>,
    /// The wake words it listens for.
    pub active_wake_words: Option<Vec<String>>,
    /// How many wake words it can listen for at once.
    pub max_active_wake_words: Option<u32>,
    /// Whether a pipeline can be started from outside.
    pub supports_trigger: Option<bool>,
}
