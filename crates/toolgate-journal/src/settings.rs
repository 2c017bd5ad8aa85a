//! The configuration's `journal`.

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use toolgate_core::deserialize_bytes;

use crate::Forward;

/// Less than this holds no day of calls.
const SMALLEST: u64 = 1 << 20;
/// A century: more would be a mistake.
const LONGEST: u32 = 36_500;

/// Where calls are recorded and for how long. The defaults are the documented ones of the configuration's `journal`.
///
/// ```
/// use toolgate_journal::{JournalSettings, Sync};
///
/// let settings: JournalSettings = serde_json::from_str(r#"{ "maxSize": "64MiB", "sync": "full" }"#).unwrap();
/// assert_eq!((settings.keep_days, settings.max_size, settings.sync), (30, 64 << 20, Sync::Full));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(description = "The record of all calls")]
#[non_exhaustive]
pub struct JournalSettings {
    /// The file; empty: `toolgate/journal.db` in the user's state folder.
    #[serde(deserialize_with = "file")]
    #[schemars(with = "String")]
    pub file: Option<PathBuf>,
    /// Calls and voice turns older than this many days are deleted.
    #[serde(deserialize_with = "days")]
    #[schemars(range(min = 1, max = 36500))]
    pub keep_days: u32,
    /// The oldest calls and voice turns are deleted when the file takes more than this.
    #[serde(deserialize_with = "size")]
    #[schemars(with = "String", regex(pattern = r"^[0-9.]+\s*(B|KiB|MiB|GiB)$"))]
    pub max_size: u64,
    /// What a recorded call survives.
    pub sync: Sync,
    /// Which calls are refused while they can not be recorded; the others run all the same.
    pub require: Require,
    /// Whether the chain of hashes is made with a secret key, in a file beside the journal: without it nobody can make one that
    /// verifies.
    pub key: bool,
    /// Where records go besides the journal; nowhere unless said.
    pub forward: Option<Forward>,
    /// What is done where the file can not be opened now. The program says it, not its configuration.
    #[serde(skip)]
    pub patience: Patience,
}

/// What is done where a journal can not be opened now.
///
/// ```
/// assert_eq!(toolgate_journal::Patience::default(), toolgate_journal::Patience::None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Patience {
    /// It is an error.
    #[default]
    None,
    /// It is tried again until it can, for a program that runs for long. Until then calls wait in memory, as they do when it fails
    /// later, and [`health`](crate::Journal::health) says why.
    Endless,
}

/// What a recorded call survives.
///
/// ```
/// assert_eq!(toolgate_journal::Sync::default(), toolgate_journal::Sync::Normal);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Sync {
    /// Nobody waits for it: the last calls are lost if the program is killed.
    Relaxed,
    /// The program may be killed at any moment. The last calls may be lost if the power fails.
    #[default]
    Normal,
    /// The power may fail at any moment. Every call waits for the disk.
    Full,
}

/// Which calls are refused while they can not be recorded.
///
/// ```
/// assert_eq!(toolgate_journal::Require::default(), toolgate_journal::Require::Destructive);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Require {
    /// None.
    Nothing,
    /// Those of tools that say of themselves that they are destructive, such as one that opens a lock.
    #[default]
    Destructive,
}

/// What becomes of calls that can not be recorded, as a part of a sentence.
impl fmt::Display for Require {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "they run all the same",
            Self::Destructive => {
                "those of tools that say that they are destructive are refused, the others run all the same"
            }
        })
    }
}

impl Default for JournalSettings {
    fn default() -> Self {
        Self {
            file: None,
            keep_days: 30,
            max_size: 1 << 30,
            sync: Sync::default(),
            require: Require::default(),
            key: false,
            forward: None,
            patience: Patience::default(),
        }
    }
}

fn file<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    let path = PathBuf::deserialize(deserializer)?;
    Ok(Some(path).filter(|path| !path.as_os_str().is_empty()))
}

fn days<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        days @ 1..=LONGEST => Ok(days),
        _ => Err(de::Error::custom(format!("must be from 1 to {LONGEST}"))),
    }
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match deserialize_bytes(deserializer)? as u64 {
        bytes if bytes >= SMALLEST => Ok(bytes),
        _ => Err(de::Error::custom("must be at least 1MiB")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_strictly() {
        let read = |json: &str| serde_json::from_str::<JournalSettings>(json);
        assert_eq!(read("{}").unwrap(), JournalSettings::default());
        let all = r#"{ "file": "/x/y.db", "keepDays": 7, "maxSize": "2MiB", "sync": "relaxed", "require": "nothing" }"#;
        let all = read(all).unwrap();
        assert_eq!(all.require, Require::Nothing);
        assert_eq!(all.file, Some(PathBuf::from("/x/y.db")));
        assert_eq!(
            (all.keep_days, all.max_size, all.sync),
            (7, 2 << 20, Sync::Relaxed)
        );
        assert_eq!(read(r#"{ "file": "" }"#).unwrap().file, None);
        for (json, problem) in [
            (r#"{ "keepdays": 7 }"#, "unknown field `keepdays`"),
            (r#"{ "keepDays": 0 }"#, "must be from 1 to 36500"),
            (r#"{ "keepDays": 1000000 }"#, "must be from 1 to 36500"),
            (r#"{ "maxSize": "1KiB" }"#, "must be at least 1MiB"),
            (r#"{ "maxSize": "lots" }"#, "'lots' is not a size"),
            (r#"{ "maxSize": 5 }"#, "write \"5B\""),
            (r#"{ "sync": "never" }"#, "unknown variant `never`"),
            (r#"{ "require": true }"#, "expected"),
        ] {
            let error = read(json).unwrap_err().to_string();
            assert!(error.contains(problem), "{json}: {error}");
        }
    }
}
