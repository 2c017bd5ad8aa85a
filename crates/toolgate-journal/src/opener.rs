//! Opens the database for the writer: once, or with retries until it can be opened.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use toolgate_core::Redactor;
use tracing::{debug, warn};

use crate::backlog::RowBacklog;
use crate::checkpointer::Checkpointer;
use crate::file_identity::FileIdentity;
use crate::health::HealthMonitor;
use crate::key::ChainKey;
use crate::queue::RowQueue;
use crate::runs::{self, CurrentRun};
use crate::spool::{self, SharedSpool};
use crate::store::StoreError;
use crate::upkeep::Upkeep;
use crate::writer::{self, JournalWriter};
use crate::{JournalError, JournalSettings, SyncMode, chain, store, takeover, wal};

const RETRY: Duration = Duration::from_millis(500);

pub(crate) struct JournalOpener {
    pub(crate) file: PathBuf,
    pub(crate) settings: JournalSettings,
    pub(crate) redactor: Redactor,
    pub(crate) command: String,
    pub(crate) queue: Arc<RowQueue>,
    pub(crate) health: Arc<HealthMonitor>,
    pub(crate) spool: Arc<SharedSpool>,
    pub(crate) run: Arc<AtomicI64>,
}

impl JournalOpener {
    pub(crate) fn open(&self) -> Result<JournalWriter, JournalError> {
        let (file, sync) = (&self.file, self.settings.sync);
        let sqlite = |error| StoreError::Sqlite(error).at_path(file);
        warn_about_unusable_log(file);
        let key = self.load_key()?;
        let mut connection = store::open(file, sync, store::CheckDepth::Quick)?;
        // Before anything is appended, which would hide that the end is missing.
        chain::check_head(&mut connection, file).map_err(sqlite)?;
        takeover::take_over(&mut connection, file).map_err(sqlite)?;
        let run = CurrentRun::begin(file, &self.command);
        let run = run.map_err(|error| StoreError::Io(error).at_path(file))?;
        let run_seq = run.insert(&connection).map_err(sqlite)?;
        self.run.store(run_seq, Ordering::Relaxed);
        let (spool, spooled) = spool::create_pair(&run.path());
        // With `Full` every row waits for the disk, and with `Relaxed` no call waits: neither needs
        // a spool.
        *self.spool.lock() = Some(spool).filter(|_| sync == SyncMode::Normal);
        Ok(JournalWriter {
            file: file.clone(),
            sync,
            redactor: self.redactor.clone(),
            key,
            run,
            run_seq,
            shared_run: Arc::clone(&self.run),
            connection,
            queue: Arc::clone(&self.queue),
            health: Arc::clone(&self.health),
            spool: Arc::clone(&self.spool),
            spooled,
            upkeep: Upkeep::new(&self.settings, Arc::clone(&self.health)),
            checkpointer: Checkpointer::default(),
            identity: FileIdentity::read(file),
            backlog: RowBacklog::default(),
            last_failure: None,
            open_calls: HashSet::new(),
            log_pages: 0,
            idle_timeout: Duration::ZERO, // So that the upkeep starts at once.
            lost_lock_reported: false,
            checked_at: None,
        })
    }

    fn load_key(&self) -> Result<Option<ChainKey>, JournalError> {
        let load = || {
            if self.settings.key {
                if let Some(folder) = self.file.parent() {
                    store::create_private_folder(folder)?;
                }
                ChainKey::create(&self.file)?;
            }
            ChainKey::load(&self.file)
        };
        load().map_err(|error| StoreError::Io(error).at_path(&store::suffixed(&self.file, ".key")))
    }

    /// Retries on the writer's thread until the file can be opened, then becomes the writer.
    /// Meanwhile rows wait in memory.
    pub(crate) fn run_until_open(self) {
        let mut backlog = RowBacklog::default();
        let mut last_try = Instant::now();
        loop {
            self.queue.wait(RETRY, RETRY);
            let overflow = backlog.take_from(&self.queue);
            self.health.add_lost(overflow.lost);
            // Waiting calls go on unrecorded for now.
            backlog.acks.clear();
            if last_try.elapsed() >= RETRY || backlog.closing.is_some() {
                match self.open() {
                    Ok(writer) => return writer::run(JournalWriter { backlog, ..writer }),
                    Err(error) => self.health.record_failure(&error),
                }
                last_try = Instant::now();
            }
            if let Some(done) = backlog.closing.take() {
                let rows = backlog.rows.len();
                self.health.add_lost(rows as u64);
                warn!(rows, "the last calls couldn't be recorded");
                return done.notify();
            }
        }
    }
}

// SQLite silently drops the end of its log if that is incomplete. While another process writes, the
// end is always incomplete, so that isn't a reason to warn.
fn warn_about_unusable_log(file: &Path) {
    if runs::has_live_run(file) {
        return;
    }
    match wal::unusable_pages(&store::suffixed(file, "-wal")) {
        Ok(0) => {}
        Ok(pages) => {
            warn!(file = %file.display(), pages, "the end of the journal's write-ahead log is incomplete or damaged and was dropped");
        }
        Err(error) => debug!(%error, "the journal's write-ahead log can't be checked"),
    }
}
