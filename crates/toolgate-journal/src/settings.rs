//! The settings under `journal` in the configuration.

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use toolgate_core::text::deserialize_bytes;

use crate::ForwardTarget;

// Less than this wouldn't hold a day of calls.
const MIN_SIZE: u64 = 1 << 20;
// A century. A longer time is a mistake.
const MAX_DAYS: u32 = 36_500;

/// Where calls are recorded and for how long.
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
    /// How safely recorded calls are stored.
    pub sync: SyncMode,
    /// Which calls are refused while they can't be recorded; the others still run.
    pub require: RecordRequirement,
    /// Whether the hash chain uses a secret key, kept in a file beside the journal. Without the
    /// key, nobody can forge a chain that verifies.
    pub key: bool,
    /// Where records go besides the journal. Default: nowhere.
    pub forward: Option<ForwardTarget>,
    /// What to do if the file can't be opened. Set by the program, not by its configuration.
    #[serde(skip)]
    pub open_retry: OpenRetry,
}

/// What [`Journal::open`](crate::Journal::open) does if the journal can't be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenRetry {
    #[default]
    Never,
    /// Retries until it can be opened, for a long-running program. Until then calls wait in memory,
    /// as they do when writing fails later, and [`health`](crate::Journal::health) says why.
    Endless,
}

/// How safely recorded calls are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SyncMode {
    /// The last calls are lost if the program is killed.
    Relaxed,
    /// Calls survive a kill; the last ones may be lost in a power failure.
    #[default]
    Normal,
    /// Calls survive a power failure; every call waits for the disk.
    Full,
}

/// Which calls are refused while they can't be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RecordRequirement {
    /// No calls.
    Nothing,
    /// Calls of tools that declare themselves destructive, such as one that opens a lock.
    #[default]
    Destructive,
}

/// Says what happens to calls that can't be recorded, as part of a sentence.
impl fmt::Display for RecordRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "they still run",
            Self::Destructive => "calls of destructive tools are refused, the others still run",
        })
    }
}

impl Default for JournalSettings {
    fn default() -> Self {
        Self {
            file: None,
            keep_days: 30,
            max_size: 1 << 30,
            sync: SyncMode::default(),
            require: RecordRequirement::default(),
            key: false,
            forward: None,
            open_retry: OpenRetry::default(),
        }
    }
}

fn file<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    let path = PathBuf::deserialize(deserializer)?;
    Ok(Some(path).filter(|path| !path.as_os_str().is_empty()))
}

fn days<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        days @ 1..=MAX_DAYS => Ok(days),
        _ => Err(de::Error::custom(format!("must be from 1 to {MAX_DAYS}"))),
    }
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match deserialize_bytes(deserializer)? as u64 {
        bytes if bytes >= MIN_SIZE => Ok(bytes),
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
        assert_eq!(all.require, RecordRequirement::Nothing);
        assert_eq!(all.file, Some(PathBuf::from("/x/y.db")));
        assert_eq!(
            (all.keep_days, all.max_size, all.sync),
            (7, 2 << 20, SyncMode::Relaxed)
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
