//! From a path to a thread that writes: at once, or as soon as the file can be opened.

use std::collections::HashSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolgate_core::Redactor;
use tracing::{debug, warn};

use crate::backlog::Backlog;
use crate::health::Health;
use crate::identity::Identity;
use crate::key::Key;
use crate::queue::Queue;
use crate::runs::{self, Run};
use crate::spool::{self, SharedSpool};
use crate::store::Unusable;
use crate::tidier::Tidier;
use crate::upkeep::Upkeep;
use crate::writer::{self, Writer};
use crate::{JournalError, JournalSettings, Sync, chain, store, takeover, wal};

/// How often a file that can not be opened is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// A journal whose file is not open yet.
pub(crate) struct Opening {
    pub(crate) file: PathBuf,
    pub(crate) settings: JournalSettings,
    pub(crate) redactor: Redactor,
    pub(crate) command: String,
    pub(crate) queue: Arc<Queue>,
    pub(crate) health: Arc<Health>,
    pub(crate) spool: Arc<SharedSpool>,
}

impl Opening {
    pub(crate) fn open(&self) -> Result<Writer, JournalError> {
        let (file, sync) = (&self.file, self.settings.sync);
        let sqlite = |error| Unusable::Sqlite(error).of(file);
        tell_of_unusable_log(file);
        let key = self.key()?;
        let mut connection = store::open(file, sync, store::Look::Quick)?;
        chain::attend(&mut connection, file).map_err(sqlite)?;
        takeover::take_over(&mut connection, file).map_err(sqlite)?;
        let run = Run::begin(file, &self.command);
        let run = run.map_err(|error| Unusable::Io(error).of(file))?;
        let run_seq = run.enter(&connection).map_err(sqlite)?;
        let (spool, spooled) = spool::files(&run.path());
        // Where every row waits for the disk, or nobody for any, there is no use for it.
        *self.spool.lock() = Some(spool).filter(|_| sync == Sync::Normal);
        Ok(Writer {
            file: file.clone(),
            sync,
            redactor: self.redactor.clone(),
            key,
            run,
            run_seq,
            connection,
            queue: Arc::clone(&self.queue),
            health: Arc::clone(&self.health),
            spool: Arc::clone(&self.spool),
            spooled,
            upkeep: Upkeep::new(&self.settings, Arc::clone(&self.health)),
            tidier: Tidier::default(),
            identity: Identity::of(file),
            backlog: Backlog::default(),
            failed: None,
            open: HashSet::new(),
            log: 0,
            patience: Duration::ZERO, // What is too old is looked for at once.
            is_unseen: false,
            looked: None,
        })
    }

    fn key(&self) -> Result<Option<Key>, JournalError> {
        let load = || {
            if self.settings.key {
                if let Some(folder) = self.file.parent() {
                    DirBuilder::new()
                        .recursive(true)
                        .mode(0o700)
                        .create(folder)?;
                }
                Key::create(&self.file)?;
            }
            Key::load(&self.file)
        };
        load().map_err(|error| Unusable::Io(error).of(&store::suffixed(&self.file, ".key")))
    }

    /// The thread that writes, of a file that could not be opened. Rows wait here until it can be.
    pub(crate) fn wait(self) {
        let mut backlog = Backlog::default();
        let mut tried = Instant::now();
        loop {
            self.queue.wait(RETRY, RETRY);
            let left_over = backlog.take_from(&self.queue);
            self.health.loses(left_over.lost);
            // Whoever waits goes on.
            backlog.acks.clear();
            if tried.elapsed() >= RETRY || backlog.closing.is_some() {
                match self.open() {
                    Ok(writer) => return writer::run(Writer { backlog, ..writer }),
                    Err(error) => self.health.fails(&error),
                }
                tried = Instant::now();
            }
            if let Some(done) = backlog.closing.take() {
                let rows = backlog.rows.len();
                self.health.loses(rows as u64);
                warn!(rows, "the last calls could not be recorded");
                return done.tell();
            }
        }
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
