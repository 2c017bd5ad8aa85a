//! One more reading of the file, beside everything else that goes on.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::task::{JoinError, JoinHandle};

use crate::config::{Config, ConfigErrors, Place, Reading};
use crate::folder_file;
use crate::wiring;

/// The file, or nothing if it needs an agreement and has none.
type ReadFile = Result<Option<Config>, ConfigErrors>;
/// An error if the reading crashed.
pub(super) type ReadResult = Result<ReadFile, JoinError>;
pub(super) type ReadTask = JoinHandle<ReadFile>;

/// What happens to the commands that secrets come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Commands {
    Run,
    /// What they printed stays in use, as long as the file says the same.
    Remember,
}

pub(super) struct FileReading {
    pub(super) path: PathBuf,
    pub(super) place: Place,
    /// It lies in the working folder, where anybody may have put it.
    pub(super) needs_agreement: bool,
    pub(super) before: Arc<Config>,
    pub(super) commands: Commands,
}

impl FileReading {
    pub(super) fn run(self) -> ReadFile {
        let mut reading = Reading::new(&wiring::environment, self.before.uses);
        if self.commands == Commands::Remember {
            reading.before = Some(&self.before);
        }
        if self.needs_agreement {
            return folder_file::read(&self.path, reading);
        }
        let mut new = Config::read(&self.path, reading)?;
        new.place = self.place;
        Ok(Some(new))
    }
}

fn value_at<'a>(config: &'a Config, key: &str) -> &'a Value {
    match key.split_once('.') {
        Some((section, key)) => &config.section(section)[key],
        None => config.section(key),
    }
}

/// Whether a section or a key says something else, or a secret in it is another.
pub(super) fn is_changed(one: &Config, other: &Config, key: &str) -> bool {
    one.resolved_part(value_at(one, key)) != other.resolved_part(value_at(other, key))
}
