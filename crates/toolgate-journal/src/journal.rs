//! The journal of one process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use tokio::sync::oneshot;
use toolgate_core::Redactor;
use tracing::warn;

use crate::forward::{Counts, Forwarder};
use crate::health::Health;
use crate::opening::Opening;
use crate::queue::{Ack, Job, Queue};
use crate::spool::SharedSpool;
use crate::store::Unusable;
use crate::writer::Writer;
use crate::{
    JournalError, JournalHealth, JournalObserver, JournalSettings, Patience, Reader, Require, Sync,
    writer,
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
    /// Sends what is recorded elsewhere.
    forwarder: Option<Forwarder>,
    forwarded: Arc<Counts>,
}

impl Journal {
    /// Opens the file, or makes it with its folder. `command` says what this process is, for people.
    ///
    /// A damaged file is set aside with a warning and a new one begun. Calls that were left open by processes that are gone
    /// are marked as interrupted. Whether a file that can not be opened now is an error is said by
    /// [`JournalSettings::patience`].
    pub fn open(
        file: &Path,
        settings: &JournalSettings,
        redactor: Redactor,
        command: &str,
    ) -> Result<Self, JournalError> {
        // A path that stays the same wherever the process goes.
        let file = std::path::absolute(file).map_err(|error| Unusable::Io(error).of(file))?;
        let forwarded = Arc::<Counts>::default();
        let shared = Shared {
            file: file.clone(),
            sync: settings.sync,
            require: settings.require,
            redactor: redactor.clone(),
            queue: Arc::default(),
            health: Arc::new(Health::new(settings.require)),
            spool: Arc::default(),
            forwarder: None,
            forwarded,
        };
        let opening = Opening {
            file,
            settings: settings.clone(),
            command: redactor.line(command, LONGEST_COMMAND),
            redactor,
            queue: Arc::clone(&shared.queue),
            health: Arc::clone(&shared.health),
            spool: Arc::clone(&shared.spool),
        };
        let opened = opening.open();
        // Once the file is there: what was recorded before isn't sent.
        let shared = shared.forwarding(settings);
        let shared = Arc::new(shared);
        Self { shared }.begin(opened, opening)
    }

    fn begin(
        self,
        opened: Result<Writer, JournalError>,
        opening: Opening,
    ) -> Result<Self, JournalError> {
        match (opened, opening.settings.patience) {
            (Ok(writer), _) => self.work(move || writer::run(writer)),
            (Err(error), Patience::None) => Err(error),
            (Err(error), Patience::Endless) => {
                self.shared.health.fails(&error);
                self.work(move || opening.wait())
            }
        }
    }

    fn work(self, work: impl FnOnce() + Send + 'static) -> Result<Self, JournalError> {
        let thread = thread::Builder::new().name("journal".to_owned());
        match thread.spawn(work) {
            Ok(_) => Ok(self),
            Err(error) => Err(Unusable::Io(error).of(&self.shared.file)),
        }
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

    /// How many calls this process has deleted before their time because the journal was full.
    pub fn evicted(&self) -> u64 {
        self.shared.health.evicted()
    }

    /// True if they are not, or too late. Costs nothing to ask.
    pub fn is_failing(&self) -> bool {
        self.shared.health.is_failing()
    }

    /// Waits until everything that happened so far is in the database, if it can be.
    pub async fn flush(&self) {
        self.ask(Job::Flush).await;
    }

    /// Writes what is left and ends the run. Calls that end later are not recorded; those still open count as interrupted.
    pub async fn close(&self) {
        self.ask(Job::Close).await;
        if let Some(forwarder) = &self.shared.forwarder {
            forwarder.close().await;
        }
    }

    /// How many records could not be forwarded: the destination was away for too long.
    pub fn unforwarded(&self) -> u64 {
        self.shared.forwarded.dropped()
    }

    async fn ask(&self, job: fn(Ack) -> Job) {
        let (done, is_done) = oneshot::channel();
        if self.shared.queue.put(job(Ack::Task(done))).is_ok() {
            drop(is_done.await);
        }
    }
}

impl Shared {
    /// A destination that makes no sense costs a warning, never a call.
    fn forwarding(mut self, settings: &JournalSettings) -> Self {
        if let Some(to) = &settings.forward {
            match Forwarder::start(&self.file, to, &self.forwarded) {
                Ok(forwarder) => self.forwarder = Some(forwarder),
                Err(error) => {
                    warn!(%error, %to, "records of the journal are not forwarded");
                }
            }
        }
        self
    }
}

impl Drop for Shared {
    /// Nobody is left who could record a call: the run is over.
    fn drop(&mut self) {
        let (done, _) = oneshot::channel();
        drop(self.queue.put(Job::Close(Ack::Task(done))));
    }
}
