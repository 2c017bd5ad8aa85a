//! [`Journal`], the handle that records and reads the calls of this process.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::thread;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use toolgate_core::{CallId, Redactor, RemoteTask};
use tracing::warn;

use crate::forward::{ForwardCounts, Forwarder};
use crate::health::HealthMonitor;
use crate::opener::JournalOpener;
use crate::queue::{RowQueue, WriteAck, WriterJob};
use crate::spool::SharedSpool;
use crate::store::StoreError;
use crate::writer::JournalWriter;
use crate::{
    JournalError, JournalHealth, JournalObserver, JournalReader, JournalSettings, OpenRetry,
    RecordRequirement, SyncMode, writer,
};

const MAX_COMMAND_BYTES: usize = 200;

/// Records the calls of this process. Cheap to clone; clones share one journal.
///
/// Call [`close`](Self::close) before the program ends, or calls that aren't written yet are lost.
#[derive(Clone)]
pub struct Journal {
    pub(crate) shared: Arc<JournalInner>,
}

pub(crate) struct JournalInner {
    file: PathBuf,
    pub(crate) sync: SyncMode,
    pub(crate) require: RecordRequirement,
    pub(crate) redactor: Redactor,
    pub(crate) queue: Arc<RowQueue>,
    pub(crate) health: Arc<HealthMonitor>,
    pub(crate) spool: Arc<SharedSpool>,
    // The number of this process in the database; 0 while that can't be opened.
    pub(crate) run: Arc<AtomicI64>,
    // The tasks of servers that running calls wait for.
    pub(crate) remote_tasks: Mutex<HashMap<CallId, RemoteTask>>,
    forwarder: Option<Forwarder>,
    forwarded: Arc<ForwardCounts>,
}

impl Journal {
    /// Opens the file, or creates it with its folder. `command` says what this
    /// process is, for people.
    ///
    /// A damaged file is set aside with a warning, and a new one is started. Calls that dead
    /// processes left open are marked as interrupted. [`JournalSettings::open_retry`] says whether
    /// a file that can't be opened now is an error.
    pub fn open(
        file: &Path,
        settings: &JournalSettings,
        redactor: Redactor,
        command: &str,
    ) -> Result<Self, JournalError> {
        // Absolute, so that changing the working directory later doesn't matter.
        let file =
            std::path::absolute(file).map_err(|error| StoreError::Io(error).at_path(file))?;
        let forwarded = Arc::<ForwardCounts>::default();
        let shared = JournalInner {
            file: file.clone(),
            sync: settings.sync,
            require: settings.require,
            redactor: redactor.clone(),
            queue: Arc::default(),
            health: Arc::new(HealthMonitor::new(settings.require)),
            spool: Arc::default(),
            run: Arc::default(),
            remote_tasks: Mutex::default(),
            forwarder: None,
            forwarded,
        };
        let opener = JournalOpener {
            file,
            settings: settings.clone(),
            command: redactor.line(command, MAX_COMMAND_BYTES),
            redactor,
            queue: Arc::clone(&shared.queue),
            health: Arc::clone(&shared.health),
            spool: Arc::clone(&shared.spool),
            run: Arc::clone(&shared.run),
        };
        let opened = opener.open();
        // After opening, because rows taken over from dead processes must not be sent as new ones.
        let shared = shared.start_forwarding(settings);
        let shared = Arc::new(shared);
        Self { shared }.start_writer(opened, opener)
    }

    fn start_writer(
        self,
        opened: Result<JournalWriter, JournalError>,
        opener: JournalOpener,
    ) -> Result<Self, JournalError> {
        match (opened, opener.settings.open_retry) {
            (Ok(writer), _) => self.spawn_thread(move || writer::run(writer)),
            (Err(error), OpenRetry::Never) => Err(error),
            (Err(error), OpenRetry::Endless) => {
                self.shared.health.record_failure(&error);
                self.spawn_thread(move || opener.run_until_open())
            }
        }
    }

    fn spawn_thread(self, work: impl FnOnce() + Send + 'static) -> Result<Self, JournalError> {
        let thread = thread::Builder::new().name("journal".to_owned());
        match thread.spawn(work) {
            Ok(_) => Ok(self),
            Err(error) => Err(StoreError::Io(error).at_path(&self.shared.file)),
        }
    }

    pub fn observer(&self) -> JournalObserver {
        JournalObserver::new(self.clone())
    }

    /// Reads calls of this and of other processes. Flushes this process' rows before each query.
    pub fn reader(&self) -> JournalReader {
        JournalReader::new(self.shared.file.clone(), Some(&self.shared.queue))
    }

    pub fn health(&self) -> JournalHealth {
        self.shared.health.report()
    }

    /// How many calls this process has deleted early because the journal was full.
    pub fn evicted(&self) -> u64 {
        self.shared.health.evicted()
    }

    /// True if calls are not recorded, or only after a long delay. Takes no lock.
    pub fn is_failing(&self) -> bool {
        self.shared.health.is_failing()
    }

    /// Waits until everything recorded so far is in the database, if it can be.
    pub async fn flush(&self) {
        self.send_and_wait(WriterJob::Flush).await;
    }

    /// Writes the remaining rows and ends the run. Later calls are not recorded, and
    /// open calls become interrupted.
    pub async fn close(&self) {
        self.send_and_wait(WriterJob::Close).await;
        if let Some(forwarder) = &self.shared.forwarder {
            forwarder.close().await;
        }
    }

    /// How many records were dropped because the forwarding destination was away for too long.
    pub fn dropped_forwards(&self) -> u64 {
        self.shared.forwarded.dropped()
    }

    async fn send_and_wait(&self, job: fn(WriteAck) -> WriterJob) {
        let (done, is_done) = oneshot::channel();
        if self.shared.queue.put(job(WriteAck::Task(done))).is_ok() {
            drop(is_done.await);
        }
    }
}

impl JournalInner {
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    // A bad destination costs a warning, never a call.
    fn start_forwarding(mut self, settings: &JournalSettings) -> Self {
        if let Some(to) = &settings.forward {
            match Forwarder::start(&self.file, to, &self.forwarded) {
                Ok(forwarder) => self.forwarder = Some(forwarder),
                Err(error) => {
                    warn!(%error, %to, "records are not forwarded");
                }
            }
        }
        self
    }
}

impl Drop for JournalInner {
    // No observer is left that could record a call, so the run ends.
    fn drop(&mut self) {
        let (done, _) = oneshot::channel();
        drop(self.queue.put(WriterJob::Close(WriteAck::Task(done))));
    }
}
