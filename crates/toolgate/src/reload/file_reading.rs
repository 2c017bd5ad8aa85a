//! Reads the file again in the background.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::task::{JoinError, JoinHandle};

use crate::config::{Config, ConfigErrors, ConfigLocation, ConfigReadOptions};
use crate::folder_file;
use crate::wiring;

/// `None` if the file needs an agreement and has none.
type ReadFile = Result<Option<Config>, ConfigErrors>;
/// An error if the task has panicked.
pub(super) type ReadResult = Result<ReadFile, JoinError>;
pub(super) type ReadTask = JoinHandle<ReadFile>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretCommands {
    Run,
    /// Reuses what they printed, while the file is unchanged.
    Remember,
}

pub(super) struct FileReading {
    pub(super) path: PathBuf,
    pub(super) location: ConfigLocation,
    /// True for a file in the working folder, where anyone may have put it.
    pub(super) needs_agreement: bool,
    pub(super) before: Arc<Config>,
    pub(super) commands: SecretCommands,
}

impl FileReading {
    pub(super) fn run(self) -> ReadFile {
        let mut reading = ConfigReadOptions::new(&wiring::environment, self.before.secret_scope);
        if self.commands == SecretCommands::Remember {
            reading.before = Some(&self.before);
        }
        if self.needs_agreement {
            return folder_file::read(&self.path, reading);
        }
        let mut new = Config::read(&self.path, reading)?;
        new.location = self.location;
        Ok(Some(new))
    }
}

fn value_at<'a>(config: &'a Config, key: &str) -> &'a Value {
    match key.split_once('.') {
        Some((section, key)) => &config.section(section)[key],
        None => config.section(key),
    }
}

pub(super) fn is_changed(one: &Config, other: &Config, key: &str) -> bool {
    one.value_with_secrets(value_at(one, key)) != other.value_with_secrets(value_at(other, key))
}
