//! A conversation in a file.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::window::{MOST_BYTES, MOST_MESSAGES};
use crate::{AnswerSource, Message};

/// The form that is written today.
const VERSION: u32 = 1;

/// A conversation as it is kept in a file, in JSON.
///
/// ```
/// use toolgate_models::Saved;
///
/// let file = br#"{"version": 1, "provider": "ollama", "model": "qwen3", "messages": [{"role": "user", "text": "hello"}]}"#;
/// let saved = Saved::read(file)?;
/// assert_eq!((saved.model.as_str(), saved.messages.len()), ("qwen3", 1));
/// assert_eq!(Saved::read(saved.to_json().as_bytes())?, saved);
/// # Ok::<_, toolgate_models::SavedError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Saved {
    version: u32,
    /// Who answered last.
    pub provider: AnswerSource,
    /// Which model.
    pub model: String,
    /// All that was said, for [`Conversation::resumed`](crate::Conversation::resumed).
    pub messages: Vec<Message>,
}

/// A file that holds no conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// Nothing of ours is that large.
    #[error(
        "the file is too large for a conversation: {size} bytes or messages, and at most {most} are read"
    )]
    TooLarge {
        /// How large.
        size: usize,
        /// The limit.
        most: usize,
    },
    /// Written by a later version of this program.
    #[error(
        "the conversation was saved in the form {version}, and this program knows the form {VERSION}: a newer one reads it"
    )]
    Version {
        /// The form.
        version: u64,
    },
    /// Something else.
    #[error("the file holds no saved conversation: {reason}")]
    Malformed {
        /// What is wrong where.
        reason: String,
    },
}

impl Saved {
    /// No larger file is read. What a message takes in JSON may be several times what it holds: escapes, names of fields.
    pub const LARGEST_FILE: usize = 4 * MOST_BYTES;

    pub(super) fn new(provider: AnswerSource, model: &str, messages: Vec<Message>) -> Self {
        Self {
            version: VERSION,
            provider,
            model: model.to_owned(),
            messages,
        }
    }

    /// Reads a file's content.
    pub fn read(json: &[u8]) -> Result<Self, SavedError> {
        #[derive(Deserialize)]
        struct Form {
            version: u64,
        }
        expect_at_most(json.len(), Self::LARGEST_FILE)?;
        let Form { version } = serde_json::from_slice(json).map_err(malformed)?;
        if version != u64::from(VERSION) {
            return Err(SavedError::Version { version });
        }
        let saved = serde_json::from_slice(json).or_else(|error| {
            let renamed = rename_sentence_parts(json).ok_or(error)?;
            serde_json::from_value(renamed)
        });
        let saved: Self = saved.map_err(malformed)?;
        expect_at_most(saved.messages.len(), MOST_MESSAGES)?;
        Ok(saved)
    }

    /// The file's content.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// A file of the time when sentences were kept as what a provider wants back.
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

fn expect_at_most(size: usize, most: usize) -> Result<(), SavedError> {
    match size <= most {
        true => Ok(()),
        false => Err(SavedError::TooLarge { size, most }),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "a function for map_err")]
fn malformed(error: serde_json::Error) -> SavedError {
    let mut reason = toolgate_core::escape(&error.to_string());
    reason.truncate(reason.floor_char_boundary(500));
    SavedError::Malformed { reason }
}
