//! The record of all calls, as the commands use it: a journal that can not be had costs a warning, never a call.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use toolgate_core::ToolExecutorBuilder;
use toolgate_journal::{Journal, Reader};
use tracing::warn;

use crate::config::{Config, state_folder};
use crate::wiring::{self, Tools};

/// How long the end of a command waits for its last rows; a disk that hangs must not hold it up.
const PATIENCE: Duration = Duration::from_secs(3);

/// The journal of this run, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Record {
    journal: Option<Journal>,
    /// Why there is none.
    problem: Option<String>,
}

impl Record {
    /// Opens the journal and tells the tools of it. `command` says for people what this run is.
    pub(crate) fn open(config: &Config, tools: &Tools, command: &str) -> Self {
        match opened(config, tools, command) {
            Ok(journal) => {
                tools.recent.reads(journal.reader());
                Self {
                    journal: Some(journal),
                    problem: None,
                }
            }
            Err(error) => {
                // The cause stands in its own words already.
                warn!("calls are not recorded: {error}");
                Self {
                    journal: None,
                    problem: Some(error.to_string()),
                }
            }
        }
    }

    /// The executor's calls are recorded.
    pub(crate) fn keep(&self, door: ToolExecutorBuilder) -> ToolExecutorBuilder {
        match &self.journal {
            Some(journal) => door.observer(journal.observer()),
            None => door,
        }
    }

    pub(crate) fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// Why calls are not recorded.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
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

fn opened(config: &Config, tools: &Tools, command: &str) -> anyhow::Result<Journal> {
    if let Some(unset) = config.unset_for_journal() {
        bail!(unset.clone());
    }
    if let Some(error) = config.misplaces_journal() {
        warn!("{error}; calls are recorded at the usual place");
    }
    Ok(Journal::open(
        &file(config)?,
        &config.journal,
        tools.redactor.clone(),
        command,
    )?)
}

/// Where calls are recorded.
pub(crate) fn file(config: &Config) -> anyhow::Result<PathBuf> {
    match &config.journal.file {
        Some(file) if config.misplaces_journal().is_none() => Ok(file.clone()),
        _ => usual(),
    }
}

fn usual() -> anyhow::Result<PathBuf> {
    let folder = state_folder(&wiring::environment);
    let folder = folder.context("there is no place for the journal: set HOME, or journal.file")?;
    Ok(folder.join("journal.db"))
}

/// For a command that only looks.
pub(crate) fn reader(config: &Config) -> anyhow::Result<Reader> {
    if let Some(unset) = config.unset_for_journal() {
        bail!(unset.clone());
    }
    Ok(Reader::open(&file(config)?)?)
}

/// For `doctor`: opens it as a command would, so that what is wrong with it is found.
pub(crate) fn probe(config: &Config, tools: &Tools) -> anyhow::Result<(PathBuf, Journal)> {
    let journal = opened(config, tools, "toolgate doctor")?;
    Ok((file(config)?, journal))
}
