//! The record of all calls, as the commands use it: a journal that can not be had costs a warning, never a call
//! (but for those that must not happen unrecorded).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use tempfile::TempDir;
use toolgate_core::ToolExecutorBuilder;
pub(crate) use toolgate_journal::Patience;
use toolgate_journal::{Journal, NoJournal, Reader};
use tracing::warn;

use crate::config::{Config, state_folder};
use crate::wiring::{self, Tools};

/// How long the end of a command waits for its last rows; a disk that hangs must not hold it up.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Clone, Default)]
pub(crate) struct Record {
    command: String,
    journal: Option<Journal>,
    /// What there is instead, if it should be there.
    none: Option<NoJournal>,
    /// Where it is, if it goes with the run.
    _folder: Option<Arc<TempDir>>,
}

impl Record {
    /// `command` says for people what this run is. With endless patience, which is for commands
    /// that go on, a journal that can't be opened yet is tried again.
    pub(crate) fn open(config: &Config, tools: &Tools, command: &str, patience: Patience) -> Self {
        let opened = opened(config, tools, command, patience);
        Self::of(opened, config, tools, command)
    }

    /// The same for calls that are not real: in a folder of its own, which goes with it.
    pub(crate) fn passing(config: &Config, tools: &Tools, command: &str) -> Self {
        let folder = match tempfile::Builder::new().prefix("toolgate-").tempdir() {
            Ok(folder) => Arc::new(folder),
            Err(error) => {
                let problem = anyhow!("no temporary folder can be made ({error}); set TMPDIR");
                return Self::of(Err(problem), config, tools, command);
            }
        };
        let file = folder.path().join("journal.db");
        let redactor = tools.redactor.clone();
        let opened = Journal::open(&file, &config.journal, redactor, command);
        let record = Self::of(opened.map_err(Into::into), config, tools, command);
        Self {
            _folder: Some(folder),
            ..record
        }
    }

    fn of(opened: anyhow::Result<Journal>, config: &Config, tools: &Tools, command: &str) -> Self {
        let mut record = Self {
            command: command.to_owned(),
            ..Self::default()
        };
        match opened {
            Ok(journal) => {
                tools.recent.reads(journal.reader());
                record.journal = Some(journal);
            }
            Err(error) => {
                let settings = &config.journal;
                // The cause stands in its own words already.
                warn!("calls are not recorded: {error}; {}", settings.require);
                record.none = Some(NoJournal::new(settings, error.to_string()));
            }
        }
        record
    }

    pub(crate) fn keep(&self, door: ToolExecutorBuilder) -> ToolExecutorBuilder {
        match (&self.journal, &self.none) {
            (Some(journal), _) => door.observer(journal.observer()),
            (None, Some(none)) => door.observer(none.clone()),
            (None, None) => door,
        }
    }

    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    pub(crate) fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    pub(crate) fn problem(&self) -> Option<&str> {
        self.none.as_ref().map(NoJournal::problem)
    }

    /// Writes what is left. Nothing is recorded after that.
    pub(crate) async fn close(&self) {
        if let Some(journal) = &self.journal
            && tokio::time::timeout(PATIENCE, journal.close())
                .await
                .is_err()
        {
            warn!("the last calls may not be recorded: the disk takes long");
        }
    }
}

fn opened(
    config: &Config,
    tools: &Tools,
    command: &str,
    patience: Patience,
) -> anyhow::Result<Journal> {
    if let Some(unset) = config.unset_for_journal() {
        bail!(unset.clone());
    }
    let mut settings = config.journal.clone();
    settings.patience = patience;
    let redactor = tools.redactor.clone();
    Ok(Journal::open(&file(config)?, &settings, redactor, command)?)
}

pub(crate) fn file(config: &Config) -> anyhow::Result<PathBuf> {
    match &config.journal.file {
        Some(file) => Ok(file.clone()),
        None => usual(),
    }
}

fn usual() -> anyhow::Result<PathBuf> {
    let folder = state_folder(&wiring::environment);
    let folder = folder.context("there is no place for the journal: set HOME, or journal.file")?;
    Ok(folder.join("journal.db"))
}

pub(crate) fn reader(config: &Config) -> anyhow::Result<Reader> {
    if let Some(unset) = config.unset_for_journal() {
        bail!(unset.clone());
    }
    Ok(Reader::open(&file(config)?)?)
}

/// For `doctor`: opens it as a command would, so that what is wrong with it is found.
pub(crate) fn probe(config: &Config, tools: &Tools) -> anyhow::Result<(PathBuf, Journal)> {
    let journal = opened(config, tools, "toolgate doctor", Patience::None)?;
    Ok((file(config)?, journal))
}
