//! The journal of one process.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use toolgate_core::Redactor;
use tracing::{debug, warn};

use crate::backlog::Backlog;
use crate::health::Health;
use crate::identity::Identity;
use crate::queue::{Ack, Job, Queue};
use crate::runs::{self, Run};
use crate::spool::{self, SharedSpool};
use crate::tidier::Tidier;
use crate::upkeep::Upkeep;
use crate::writer::{self, Writer};
use crate::{
    JournalError, JournalHealth, JournalObserver, JournalSettings, Reader, Require, Sync, store,
    takeover, wal,
};

/// Longer commands are cut.
const LONGEST_COMMAND: usize = 200;

/// Records the calls of this process. Cheap to clone; clones are the same journal.
///
/// [`close`](Self::close) it before the program ends, or calls that were not yet written are lost.
#[derive(Clone)]
pub struct Journal {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    file: PathBuf,
    pub(crate) sync: Sync,
    pub(crate) require: Require,
    pub(crate) redactor: Redactor,
    pub(crate) queue: Arc<Queue>,
    pub(crate) health: Arc<Health>,
    pub(crate) spool: Arc<SharedSpool>,
}

impl Journal {
    /// Opens the file, or makes it with its folder. `command` says what this process is, for people.
    ///
    /// A damaged file is set aside with a warning and a new one begun. Calls that were left open by processes that are gone
    /// are marked as interrupted.
    pub fn open(
        file: &Path,
        settings: &JournalSettings,
        redactor: Redactor,
        command: &str,
    ) -> Result<Self, JournalError> {
        let sqlite = |error| JournalError::Sqlite {
            file: file.to_owned(),
            error,
        };
        let io = |error| JournalError::Io {
            file: file.to_owned(),
            error,
        };
        // A path that stays the same wherever the process goes.
        let file = &std::path::absolute(file).map_err(io)?;
        tell_of_unusable_log(file);
        let mut connection = store::open(file, settings.sync, store::Look::Quick)?;
        takeover::take_over(&mut connection, file).map_err(sqlite)?;
        let run = Run::begin(file, &redactor.line(command, LONGEST_COMMAND)).map_err(io)?;
        let run_seq = run.enter(&connection).map_err(sqlite)?;
        let (spool, spooled) = spool::files(&run.path());
        // Where every row waits for the disk, or nobody for any, there is no use for it.
        let spool = Some(spool).filter(|_| settings.sync == Sync::Normal);
        let shared = Shared {
            file: file.clone(),
            sync: settings.sync,
            require: settings.require,
            redactor: redactor.clone(),
            queue: Arc::default(),
            health: Arc::default(),
            spool: Arc::new(Mutex::new(spool)),
        };
        let writer = Writer {
            file: file.clone(),
            sync: settings.sync,
            redactor,
            run,
            run_seq,
            connection,
            queue: Arc::clone(&shared.queue),
            health: Arc::clone(&shared.health),
            spool: Arc::clone(&shared.spool),
            spooled,
            upkeep: Upkeep::new(settings),
            tidier: Tidier::default(),
            identity: Identity::of(file),
            backlog: Backlog::default(),
            failed: None,
            open: HashSet::new(),
            log: 0,
            patience: Duration::ZERO, // What is too old is looked for at once.
            is_unseen: false,
            looked: None,
        };
        thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer::run(writer))
            .map_err(io)?;
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Give it to the executor: it records every call that passes.
    pub fn observer(&self) -> JournalObserver {
        JournalObserver::of(self.clone())
    }

    /// Reads what was recorded, also by other processes. What this one recorded is in the database before each answer.
    pub fn reader(&self) -> Reader {
        Reader::of(self.shared.file.clone(), Some(&self.shared.queue))
    }

    /// Whether calls are recorded.
    pub fn health(&self) -> JournalHealth {
        self.shared.health.report()
    }

    /// Waits until everything that happened so far is in the database, if it can be.
    pub async fn flush(&self) {
        self.ask(Job::Flush).await;
    }

    /// Writes what is left and ends the run. Calls that end later are not recorded; those still open count as interrupted.
    pub async fn close(&self) {
        self.ask(Job::Close).await;
    }

    async fn ask(&self, job: fn(Ack) -> Job) {
        let (done, is_done) = oneshot::channel();
        if self.shared.queue.put(job(Ack::Task(done))).is_ok() {
            drop(is_done.await);
        }
    }
}

impl Drop for Shared {
    /// Nobody is left who could record a call: the run is over.
    fn drop(&mut self) {
        let (done, _) = oneshot::channel();
        drop(self.queue.put(Job::Close(Ack::Task(done))));
    }
}

/// SQLite leaves out the end of its log if it is not whole, and says nothing. While others write, it never is.
fn tell_of_unusable_log(file: &Path) {
    if runs::is_anyone_alive(file) {
        return;
    }
    match wal::unusable_pages(&store::suffixed(file, "-wal")) {
        Ok(0) => {}
        Ok(pages) => {
            warn!(file = %file.display(), pages, "the end of the journal was not completely written or is damaged, and is left out");
        }
        Err(error) => debug!(%error, "the log of the journal can not be looked at"),
    }
}
