//! [`AnswerSource`]: a provider's model, or built-in sentences, which need no model.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Provider;

/// Whether an answer comes from a model or from built-in sentences (`intents`).
///
/// In the configuration, on the command line and in saved conversations,
/// sentences are called `intents`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnswerSource {
    Model(Provider),
    Sentences,
}

impl AnswerSource {
    const SENTENCES: &str = "intents";

    /// All names, as they are written in the configuration.
    pub const NAMES: [&str; 5] = ["anthropic", "ollama", "openai", "gemini", Self::SENTENCES];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model(provider) => provider.as_str(),
            Self::Sentences => Self::SENTENCES,
        }
    }

    /// `None` for sentences, which need no model.
    pub fn provider(self) -> Option<Provider> {
        match self {
            Self::Model(provider) => Some(provider),
            Self::Sentences => None,
        }
    }
}

impl From<Provider> for AnswerSource {
    fn from(provider: Provider) -> Self {
        Self::Model(provider)
    }
}

impl PartialEq<Provider> for AnswerSource {
    fn eq(&self, other: &Provider) -> bool {
        self.provider() == Some(*other)
    }
}

impl fmt::Display for AnswerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for AnswerSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            Self::SENTENCES => Ok(Self::Sentences),
            _ => text.parse().map(Self::Model),
        }
    }
}

impl Serialize for AnswerSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for AnswerSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let unknown = |_| de::Error::unknown_variant(&text, &Self::NAMES);
        text.parse().map_err(unknown)
    }
}

impl JsonSchema for AnswerSource {
    fn schema_name() -> Cow<'static, str> {
        "AnswerSource".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Provider::json_schema(generator);
        let sentences = json_schema!({
            "type": "string",
            "const": Self::SENTENCES,
            "description": "Sentences matched against templates; needs no model.",
        });
        if let Some(all) = schema.get_mut("oneOf").and_then(|all| all.as_array_mut()) {
            all.push(sentences.into());
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_a_name() {
        for name in AnswerSource::NAMES {
            let source: AnswerSource = name.parse().unwrap();
            assert_eq!(source.as_str(), name);
            assert_eq!(serde_json::json!(source), name);
        }
        for provider in Provider::ALL {
            assert!(AnswerSource::NAMES.contains(&provider.as_str()));
        }
        assert_eq!(AnswerSource::NAMES.len(), Provider::ALL.len() + 1);
    }
}
