//! What every test here needs: a folder with a journal, tools made of closures, a log that can be read, other processes.

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
use toolgate_journal::{CallDetail, CallSummary, Filter, Journal, JournalSettings, Reader};
use tracing::subscriber::DefaultGuard;

use crate::scripted::{self, Answer, Scripted};

pub(crate) use crate::scripted::scripted;

/// A definition that takes any arguments.
pub(crate) fn any(name: &str) -> DefinitionBuilder {
    ToolDefinition::builder(name, "For tests", json!({ "type": "object" }))
}

/// Answers with its arguments.
pub(crate) fn echo() -> Scripted {
    scripted::echo(any("echo"))
}

/// Answers with its arguments, and says that this can not be undone.
pub(crate) fn destructive() -> Scripted {
    scripted::echo(saying("unlock", Some(true)))
}

/// A definition that says whether it is destructive, or does not.
pub(crate) fn saying(name: &str, destructive: Option<bool>) -> DefinitionBuilder {
    let mut annotations = Annotations::default();
    annotations.destructive = destructive;
    any(name).annotations(annotations)
}

/// Always answers the same.
pub(crate) fn answering(name: &str, answer: Answer) -> Scripted {
    scripted::answering(any(name), answer)
}

/// Never answers.
pub(crate) fn hanging() -> Scripted {
    scripted::hung(any("hang"))
}

pub(crate) fn executor_of(
    journal: &Journal,
    tools: impl IntoIterator<Item = Scripted>,
) -> ToolExecutor {
    let manager = ToolManager::new();
    for tool in tools {
        manager.add(tool);
    }
    ToolExecutor::builder(Arc::new(manager))
        .observer(journal.observer())
        .build()
}

/// Makes a file one of the first form.
pub(crate) const FIRST_FORM: &str = "DROP TABLE turns; DROP TABLE chain; ALTER TABLE calls DROP COLUMN chained;
    ALTER TABLE calls DROP COLUMN destructive; ALTER TABLE calls DROP COLUMN caller;
    ALTER TABLE calls DROP COLUMN queue_time; ALTER TABLE calls DROP COLUMN approval; PRAGMA user_version = 1; PRAGMA wal_checkpoint(TRUNCATE);";

/// A folder of its own with a journal in it.
pub(crate) struct House {
    folder: TempDir,
    /// Of the journals that were opened here.
    readers: Mutex<Vec<Reader>>,
}

impl House {
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

    /// As another process would read, but not before everything that was recorded here is in the database.
    pub(crate) fn reader(&self) -> Reader {
        for reader in &*self.readers.lock() {
            reader.position().unwrap();
        }
        self.other_reader()
    }

    /// As another process would read.
    pub(crate) fn other_reader(&self) -> Reader {
        Reader::open(&self.file()).unwrap()
    }

    pub(crate) fn calls(&self) -> Vec<CallSummary> {
        self.reader().calls(&all()).unwrap()
    }

    /// The only call there is.
    pub(crate) fn only(&self) -> CallDetail {
        let calls = self.calls();
        assert_eq!(calls.len(), 1, "{calls:?}");
        self.reader().call(&calls[0].id).unwrap().unwrap()
    }

    /// As any other program would open it.
    pub(crate) fn sqlite(&self) -> Connection {
        Connection::open(self.file()).unwrap()
    }

    /// The files of all runs: locks and spools.
    pub(crate) fn of_runs(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.folder.path().join("state/journal.db.runs")).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    }

    /// The lock of the only run there is.
    pub(crate) fn lock(&self) -> PathBuf {
        let mut files = self.of_runs();
        files.retain(|file| file.extension().is_none());
        assert_eq!(files.len(), 1, "{files:?}");
        files.remove(0)
    }

    /// What is in the spools of all runs.
    pub(crate) fn spooled(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for file in self.of_runs() {
            if file.extension().is_some() {
                bytes.extend(std::fs::read(file).unwrap());
            }
        }
        bytes
    }

    /// Files beside the journal whose name goes on like this.
    pub(crate) fn beside(&self, part: &str) -> Vec<PathBuf> {
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

/// Until it is so; a hang is a failure.
pub(crate) async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}

pub(crate) fn all() -> Filter {
    let mut filter = Filter::default();
    filter.limit = 1000;
    filter
}

pub(crate) fn filtered(change: impl FnOnce(&mut Filter)) -> Filter {
    let mut filter = all();
    change(&mut filter);
    filter
}

pub(crate) fn json_of(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

/// What is logged in this thread while the guard lives.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    pub(crate) fn listen() -> (Self, DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// For a process of its own.
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

/// Starts a test of this binary as a process of its own. It finds the journal in `JOURNAL_FILE`.
pub(crate) fn process(test: &str, file: &Path) -> Child {
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

/// The journal of a process that was started by [`process`].
pub(crate) fn given_journal() -> Journal {
    let file = PathBuf::from(std::env::var_os("JOURNAL_FILE").unwrap());
    Journal::open(
        &file,
        &JournalSettings::default(),
        Redactor::default(),
        "child",
    )
    .unwrap()
}
