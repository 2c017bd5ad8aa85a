//! The journal as commands use it. If it can't be opened, calls still run, with a warning, except
//! those that have to be recorded.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use tempfile::TempDir;
use toolgate_core::ToolExecutorBuilder;
pub(crate) use toolgate_journal::OpenRetry;
use toolgate_journal::{Journal, JournalReader, UnavailableJournal};
use tracing::warn;

use crate::config::{Config, state_folder};
use crate::wiring::{self, ConfiguredTools};

// How long a command waits at its end for the last rows. A disk that hangs must not hold it up.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Clone, Default)]
pub(crate) struct CommandJournal {
    command: String,
    journal: Option<Journal>,
    /// Used instead if the journal couldn't be opened; denies calls that have to be recorded.
    replacement: Option<UnavailableJournal>,
    _folder: Option<Arc<TempDir>>,
}

impl CommandJournal {
    pub(crate) fn open(
        config: &Config,
        tools: &ConfiguredTools,
        command: &str,
        retry: OpenRetry,
    ) -> Self {
        let opened = open_journal(config, tools, command, retry);
        Self::from_opened(opened, config, tools, command)
    }

    pub(crate) fn temporary(config: &Config, tools: &ConfiguredTools, command: &str) -> Self {
        let folder = match tempfile::Builder::new().prefix("toolgate-").tempdir() {
            Ok(folder) => Arc::new(folder),
            Err(error) => {
                let problem = anyhow!("cannot create a temporary folder ({error}); set TMPDIR");
                return Self::from_opened(Err(problem), config, tools, command);
            }
        };
        let file = folder.path().join("journal.db");
        let redactor = tools.redactor.clone();
        let opened = Journal::open(&file, &config.journal, redactor, command);
        let journal = Self::from_opened(opened.map_err(Into::into), config, tools, command);
        Self {
            _folder: Some(folder),
            ..journal
        }
    }

    fn from_opened(
        opened: anyhow::Result<Journal>,
        config: &Config,
        tools: &ConfiguredTools,
        command: &str,
    ) -> Self {
        let mut journal = Self {
            command: command.to_owned(),
            ..Self::default()
        };
        match opened {
            Ok(opened) => {
                tools.services.recent.set_reader(opened.reader());
                journal.journal = Some(opened);
            }
            Err(error) => {
                let settings = &config.journal;
                // The message includes its cause already.
                warn!("calls are not recorded: {error}; {}", settings.require);
                journal.replacement = Some(UnavailableJournal::new(settings, error.to_string()));
            }
        }
        journal
    }

    pub(crate) fn attach(&self, builder: ToolExecutorBuilder) -> ToolExecutorBuilder {
        match (&self.journal, &self.replacement) {
            (Some(journal), _) => builder.observer(journal.observer()),
            (None, Some(none)) => builder.observer(none.clone()),
            (None, None) => builder,
        }
    }

    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    pub(crate) fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    pub(crate) fn problem(&self) -> Option<&str> {
        self.replacement.as_ref().map(UnavailableJournal::problem)
    }

    pub(crate) async fn close(&self) {
        if let Some(journal) = &self.journal
            && tokio::time::timeout(CLOSE_TIMEOUT, journal.close())
                .await
                .is_err()
        {
            warn!("the last calls may not be recorded: the disk is slow");
        }
    }
}

fn open_journal(
    config: &Config,
    tools: &ConfiguredTools,
    command: &str,
    retry: OpenRetry,
) -> anyhow::Result<Journal> {
    if let Some(unset) = config.unset_in_sections(&["journal"]) {
        bail!(unset.clone());
    }
    let mut settings = config.journal.clone();
    settings.open_retry = retry;
    let redactor = tools.redactor.clone();
    Ok(Journal::open(&file(config)?, &settings, redactor, command)?)
}

pub(crate) fn file(config: &Config) -> anyhow::Result<PathBuf> {
    match &config.journal.file {
        Some(file) => Ok(file.clone()),
        None => default_file(),
    }
}

fn default_file() -> anyhow::Result<PathBuf> {
    let folder = state_folder(&wiring::environment);
    let folder =
        folder.context("cannot find a place for the journal: set HOME, or journal.file")?;
    Ok(folder.join("journal.db"))
}

pub(crate) fn reader(config: &Config) -> anyhow::Result<JournalReader> {
    if let Some(unset) = config.unset_in_sections(&["journal"]) {
        bail!(unset.clone());
    }
    Ok(JournalReader::open(&file(config)?)?)
}

pub(crate) fn probe(
    config: &Config,
    tools: &ConfiguredTools,
) -> anyhow::Result<(PathBuf, Journal)> {
    let journal = open_journal(config, tools, "toolgate doctor", OpenRetry::Never)?;
    Ok((file(config)?, journal))
}
