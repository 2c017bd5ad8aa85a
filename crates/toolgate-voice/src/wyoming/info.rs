//! The description that a service sends of itself. Every field is written, because other
//! implementations require it; when reading, missing fields are empty.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ServiceInfo {
    pub(crate) asr: Vec<ServiceProgram>,
    pub(crate) tts: Vec<ServiceProgram>,
    pub(crate) handle: Vec<ServiceProgram>,
    pub(crate) intent: Vec<ServiceProgram>,
    pub(crate) wake: Vec<ServiceProgram>,
    pub(crate) mic: Vec<ServiceProgram>,
    pub(crate) snd: Vec<ServiceProgram>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) satellite: Option<SatelliteInfo>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ServiceArtifact {
    pub(crate) name: String,
    pub(crate) attribution: ArtifactAttribution,
    pub(crate) installed: bool,
    pub(crate) description: Option<String>,
    #[serde(deserialize_with = "version")]
    pub(crate) version: Option<String>,
}

// Some services write a version as a number.
fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(version) => Some(version),
        Value::Number(version) => Some(version.to_string()),
        _ => None,
    })
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ArtifactAttribution {
    pub(crate) name: String,
    pub(crate) url: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ServiceProgram {
    #[serde(flatten)]
    pub(crate) artifact: ServiceArtifact,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) models: Option<Vec<WyomingModel>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) voices: Option<Vec<WyomingModel>>,
    /// Fields that only some kinds of programs send, such as `supports_home_control`.
    #[serde(flatten)]
    pub(crate) more: Map<String, Value>,
}

impl ServiceProgram {
    pub(crate) fn models(&self) -> impl Iterator<Item = &WyomingModel> {
        self.models.iter().chain(&self.voices).flatten()
    }
}

/// A model, a wake word or a voice.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct WyomingModel {
    #[serde(flatten)]
    pub(crate) artifact: ServiceArtifact,
    pub(crate) languages: Vec<String>,
    #[serde(flatten)]
    pub(crate) more: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SatelliteInfo {
    #[serde(flatten)]
    pub(crate) artifact: ServiceArtifact,
    pub(crate) area: Option<String>,
    #[serde(flatten)]
    pub(crate) more: Map<String, Value>,
}
