//! The file format of a saved conversation.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::window::{MAX_BYTES, MAX_MESSAGES};
use crate::{AnswerSource, Message};

const VERSION: u32 = 1;

/// A conversation as it is saved to a file. See [`Conversation::save`](crate::Conversation::save).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SavedConversation {
    version: u32,
    pub provider: AnswerSource,
    pub model: String,
    pub messages: Vec<Message>,
}

/// Why a file can't be read as a saved conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SavedConversationError {
    #[error(
        "the file is too large for a conversation: {size} bytes or messages, and at most {most} are read"
    )]
    TooLarge { size: usize, most: usize },
    #[error(
        "the conversation was saved in format {version}, but this program reads format {VERSION}; use a newer version"
    )]
    Version { version: u64 },
    #[error("the file is not a saved conversation: {reason}")]
    Malformed { reason: String },
}

impl SavedConversation {
    /// Larger files are refused. JSON may take several times the size of its messages, because of
    /// escapes and field names.
    pub const MAX_FILE_BYTES: usize = 4 * MAX_BYTES;

    pub(super) fn new(provider: AnswerSource, model: &str, messages: Vec<Message>) -> Self {
        Self {
            version: VERSION,
            provider,
            model: model.to_owned(),
            messages,
        }
    }

    pub fn parse(json: &[u8]) -> Result<Self, SavedConversationError> {
        #[derive(Deserialize)]
        struct VersionHeader {
            version: u64,
        }
        expect_at_most(json.len(), Self::MAX_FILE_BYTES)?;
        let VersionHeader { version } = serde_json::from_slice(json).map_err(malformed)?;
        if version != u64::from(VERSION) {
            return Err(SavedConversationError::Version { version });
        }
        let saved = serde_json::from_slice(json).or_else(|error| {
            let renamed = rename_sentence_parts(json).ok_or(error)?;
            serde_json::from_value(renamed)
        });
        let saved: Self = saved.map_err(malformed)?;
        expect_at_most(saved.messages.len(), MAX_MESSAGES)?;
        Ok(saved)
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

// Sentences used to be stored as opaque blocks of a provider named `intents`.
fn rename_sentence_parts(json: &[u8]) -> Option<Value> {
    let mut saved: Value = serde_json::from_slice(json).ok()?;
    let messages = saved["messages"].as_array_mut()?.iter_mut();
    let parts = messages.filter_map(|message| message.get_mut("parts")?.as_array_mut());
    for part in parts.flatten() {
        if part["type"] == "opaque" && part["provider"] == "intents" {
            *part = json!({ "type": "sentence", "memory": part["value"].take() });
        }
    }
    Some(saved)
}

fn expect_at_most(size: usize, most: usize) -> Result<(), SavedConversationError> {
    match size <= most {
        true => Ok(()),
        false => Err(SavedConversationError::TooLarge { size, most }),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "a function for map_err")]
fn malformed(error: serde_json::Error) -> SavedConversationError {
    let mut reason = toolgate_core::text::escape(&error.to_string());
    reason.truncate(reason.floor_char_boundary(500));
    SavedConversationError::Malformed { reason }
}
