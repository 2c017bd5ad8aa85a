//! Shared by all tests here: a folder with a journal, scripted tools, a
//! readable log, other processes.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate_core::{
    Annotations, DefinitionBuilder, Redactor, ToolDefinition, ToolExecutor, ToolManager,
};
use toolgate_journal::{
    CallDetail, CallSummary, Journal, JournalFilter, JournalReader, JournalSettings,
};
use tracing::subscriber::DefaultGuard;

use crate::scripted::{self, Answer, ScriptedTool};

pub(crate) use crate::scripted::scripted;

/// A definition that takes any arguments.
pub(crate) fn any_arguments(name: &str) -> DefinitionBuilder {
    ToolDefinition::builder(name, "For tests", json!({ "type": "object" }))
}

/// A tool that answers with its arguments.
pub(crate) fn echo() -> ScriptedTool {
    scripted::echo(any_arguments("echo"))
}

/// A tool that answers with its arguments and declares itself destructive.
pub(crate) fn destructive() -> ScriptedTool {
    scripted::echo(with_destructive_hint("unlock", Some(true)))
}

/// A definition with this destructive hint, or none.
pub(crate) fn with_destructive_hint(name: &str, destructive: Option<bool>) -> DefinitionBuilder {
    let mut annotations = Annotations::default();
    annotations.destructive = destructive;
    any_arguments(name).annotations(annotations)
}

/// A tool that always gives the same answer.
pub(crate) fn always_answers(name: &str, answer: Answer) -> ScriptedTool {
    scripted::answering(any_arguments(name), answer)
}

pub(crate) fn never_answers() -> ScriptedTool {
    scripted::hung(any_arguments("hang"))
}

pub(crate) fn executor_of(
    journal: &Journal,
    tools: impl IntoIterator<Item = ScriptedTool>,
) -> ToolExecutor {
    let manager = ToolManager::new();
    for tool in tools {
        manager.add(tool);
    }
    ToolExecutor::builder(Arc::new(manager))
        .observer(journal.observer())
        .build()
}

/// Converts a file to the first format.
pub(crate) const FIRST_FORM: &str = "DROP TABLE turns; DROP TABLE chain; DROP TABLE tasks; ALTER TABLE calls DROP COLUMN chained;
    ALTER TABLE calls DROP COLUMN destructive; ALTER TABLE calls DROP COLUMN caller;
    ALTER TABLE calls DROP COLUMN queue_time; ALTER TABLE calls DROP COLUMN approval; PRAGMA user_version = 1; PRAGMA wal_checkpoint(TRUNCATE);";

/// A temporary folder with a journal in it.
pub(crate) struct TestJournal {
    folder: TempDir,
    /// Readers of all journals that were opened here.
    readers: Mutex<Vec<JournalReader>>,
}

impl TestJournal {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            readers: Mutex::default(),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("state/journal.db")
    }

    pub(crate) fn journal(&self) -> Journal {
        self.journal_with(&JournalSettings::default())
    }

    pub(crate) fn journal_with(&self, settings: &JournalSettings) -> Journal {
        let opened = Journal::open(&self.file(), settings, Redactor::default(), "test");
        let journal = opened.unwrap();
        self.readers.lock().push(journal.reader());
        journal
    }

    /// Reads like another process, but only once everything recorded here is in the database.
    pub(crate) fn reader(&self) -> JournalReader {
        for reader in &*self.readers.lock() {
            reader.position().unwrap();
        }
        self.other_reader()
    }

    /// Reads like another process would.
    pub(crate) fn other_reader(&self) -> JournalReader {
        JournalReader::open(&self.file()).unwrap()
    }

    pub(crate) fn calls(&self) -> Vec<CallSummary> {
        self.reader().calls(&no_filter()).unwrap()
    }

    /// The only call in the journal.
    pub(crate) fn only_call(&self) -> CallDetail {
        let calls = self.calls();
        assert_eq!(calls.len(), 1, "{calls:?}");
        self.reader().call(&calls[0].id).unwrap().unwrap()
    }

    /// Opens the file like any other program.
    pub(crate) fn sqlite(&self) -> Connection {
        Connection::open(self.file()).unwrap()
    }

    /// The files of all runs: locks and spools.
    pub(crate) fn run_files(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.folder.path().join("state/journal.db.runs")).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    }

    /// The lock file of the only run.
    pub(crate) fn lock(&self) -> PathBuf {
        let mut files = self.run_files();
        files.retain(|file| file.extension().is_none());
        assert_eq!(files.len(), 1, "{files:?}");
        files.remove(0)
    }

    /// What is in the spools of all runs.
    pub(crate) fn spooled(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for file in self.run_files() {
            if file.extension().is_some() {
                bytes.extend(std::fs::read(file).unwrap());
            }
        }
        bytes
    }

    /// Files beside the journal whose names contain this.
    pub(crate) fn files_with_suffix(&self, part: &str) -> Vec<PathBuf> {
        let start = format!("journal.db{part}");
        let entries = std::fs::read_dir(self.folder.path().join("state")).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                name.starts_with(&start) && !name.ends_with("-wal") && !name.ends_with("-shm")
            })
            .collect()
    }
}

/// Waits until the condition holds. Panics instead of hanging.
pub(crate) async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}

pub(crate) fn no_filter() -> JournalFilter {
    let mut filter = JournalFilter::default();
    filter.limit = 1000;
    filter
}

pub(crate) fn filtered(change: impl FnOnce(&mut JournalFilter)) -> JournalFilter {
    let mut filter = no_filter();
    change(&mut filter);
    filter
}

pub(crate) fn json_of(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

/// Collects what this thread logs while the guard lives.
#[derive(Clone, Default)]
pub(crate) struct JournalLog(Arc<Mutex<Vec<u8>>>);

impl io::Write for JournalLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl JournalLog {
    pub(crate) fn listen() -> (Self, DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// Collects the log of all threads. Only for a separate process.
    pub(crate) fn for_all_threads() -> Self {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
        log
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

/// Runs a test of this binary in another process, which finds the journal in `JOURNAL_FILE`.
pub(crate) fn spawn_test(test: &str, file: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            test,
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("JOURNAL_FILE", file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The journal of a process that was started by [`spawn_test`].
pub(crate) fn journal_from_env() -> Journal {
    let file = PathBuf::from(std::env::var_os("JOURNAL_FILE").unwrap());
    Journal::open(
        &file,
        &JournalSettings::default(),
        Redactor::default(),
        "child",
    )
    .unwrap()
}
