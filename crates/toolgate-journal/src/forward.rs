//! Forwards each record to another destination, where an attacker on this machine can't delete it.
//!
//! The hash chain serves as the queue. A thread reads the entries after the last one it sent, and
//! saves that entry's number in a file. So nothing is sent that isn't recorded, secrets are already
//! redacted, and no call waits for a destination. Records that couldn't be sent are sent later, by
//! another process if necessary. Of several processes, the one that holds the lock sends for all.

mod destination;
mod otlp;
mod settings;
mod syslog;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use ring::digest::{SHA256, digest};
use rusqlite::{Connection, OpenFlags, params};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::chain::{self, ChainEntry, EntryKind, SELECT};
use crate::columns::column;
use crate::detail::{CallDetail, RunInfo};
use crate::export::{self, ChainLink};
use crate::runs::DeadRuns;
use crate::store::private_file;
use crate::{key, reader, runs};
use destination::ForwardDestination;
pub use settings::ForwardTarget;

const POLL_INTERVAL: Duration = Duration::from_millis(200);
// The time between retries doubles from the first to the second value.
const MAX_BACKOFF: Duration = Duration::from_secs(60);
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
// How long the program waits at its end for the last records to be sent.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
const BATCH: i64 = 100;
// If more entries wait for a destination, the oldest are dropped and counted.
const MAX_QUEUED_ENTRIES: i64 = 100_000;
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

pub(crate) struct ForwardRecord {
    pub(crate) started_at: i64,
    pub(crate) is_failure: bool,
    pub(crate) tool: String,
    pub(crate) id: String,
    pub(crate) trace_id: Option<String>,
    /// The whole record, as in a line of an export, without a line break.
    pub(crate) json: String,
}

#[derive(Default)]
pub(crate) struct ForwardCounts {
    dropped: AtomicU64,
}

impl ForwardCounts {
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

pub(crate) struct Forwarder {
    stop: Arc<(Mutex<bool>, Condvar)>,
    is_done: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Forwarder {
    /// Starts a thread that sends new records. It continues where the last process stopped that
    /// sent to the same destination, or else after the newest entry.
    pub(crate) fn start(
        database: &Path,
        to: &ForwardTarget,
        counts: &Arc<ForwardCounts>,
    ) -> io::Result<Self> {
        let stop = Arc::<(Mutex<bool>, Condvar)>::default();
        let (done, is_done) = oneshot::channel();
        let mut worker = ForwardWorker {
            database: database.to_owned(),
            position: position_file(database, to)?,
            name: to.to_string(),
            destination: ForwardDestination::new(to).map_err(io::Error::other)?,
            stop: Arc::clone(&stop),
            counts: Arc::clone(counts),
            is_failing: false,
            backoff: FIRST_BACKOFF,
            unreported: 0,
            reported_at: None,
        };
        let first = newest(database);
        let run = move || {
            worker.run(first);
            done.send(()).ok();
        };
        thread::Builder::new()
            .name("journal forward".to_owned())
            .spawn(run)?;
        Ok(Self {
            stop,
            is_done: Mutex::new(Some(is_done)),
        })
    }

    pub(crate) async fn close(&self) {
        if let Some(is_done) = self.request_stop() {
            tokio::time::timeout(2 * SHUTDOWN_TIMEOUT, is_done)
                .await
                .ok();
        }
    }

    fn request_stop(&self) -> Option<oneshot::Receiver<()>> {
        let (is_stopping, wakeup) = &*self.stop;
        *is_stopping.lock() = true;
        wakeup.notify_all();
        let mut is_done = self.is_done.lock();
        is_done.take()
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.request_stop();
    }
}

fn position_file(database: &Path, to: &ForwardTarget) -> io::Result<File> {
    let id = key::hex(&digest(&SHA256, to.to_string().as_bytes()).as_ref()[..4]);
    let path = runs::create_folder(database)?.join(format!("forward-{id}"));
    private_file()
        .read(true)
        .write(true)
        .create(true)
        .open(path)
}

fn connect(database: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

fn newest(database: &Path) -> Option<i64> {
    let last = connect(database).and_then(|connection| chain::last(&connection));
    last.ok().flatten().map(|last| last.n)
}

struct ForwardWorker {
    database: PathBuf,
    // Holds the number of the last entry that was sent. The process that has its lock sends.
    position: File,
    name: String,
    destination: ForwardDestination,
    stop: Arc<(Mutex<bool>, Condvar)>,
    counts: Arc<ForwardCounts>,
    is_failing: bool,
    backoff: Duration,
    unreported: u64,
    reported_at: Option<Instant>,
}

#[derive(Debug, thiserror::Error)]
enum ForwardError {
    #[error("{0}")]
    Destination(String),
    #[error("the journal can't be read: {0}")]
    Journal(#[from] rusqlite::Error),
    #[error("the position can't be saved: {0}")]
    Position(#[from] io::Error),
}

impl ForwardWorker {
    fn run(&mut self, mut first: Option<i64>) {
        let mut deadline = None;
        loop {
            let is_stopping = self.wait(match self.is_failing {
                true => self.backoff,
                false => POLL_INTERVAL,
            });
            if is_stopping && deadline.is_none() {
                deadline = Some(Instant::now() + SHUTDOWN_TIMEOUT);
            }
            if self.position.try_lock().is_ok() {
                // A file that didn't exist at the start has no older entries to skip.
                first = first.or_else(|| newest(&self.database).map(|_| 0));
                match self.send_all(first, deadline) {
                    Ok(()) => self.record_success(),
                    Err(error) => self.record_failure(&error),
                }
            }
            if is_stopping {
                return;
            }
        }
    }

    fn wait(&self, timeout: Duration) -> bool {
        let (is_stopping, wakeup) = &*self.stop;
        let mut guard = is_stopping.lock();
        wakeup.wait_while_for(&mut guard, |is_stopping| !*is_stopping, timeout);
        *guard
    }

    fn send_all(&mut self, first: Option<i64>, until: Option<Instant>) -> Result<(), ForwardError> {
        let Some(first) = first else {
            return Ok(());
        };
        // Opened each time, because the file may have been replaced.
        let connection = connect(&self.database)?;
        let mut position = match self.position()? {
            Some(position) => position,
            None => {
                // Saved at once, so that another process can send what isn't sent now.
                self.save_position(first)?;
                first
            }
        };
        while until.is_none_or(|until| Instant::now() < until) {
            let Some(last) = chain::last(&connection)? else {
                break;
            };
            // If the journal was replaced by a shorter one, its newest entries are still ahead.
            position = position.min(last.n);
            position = self.skip_expired(&connection, position, last.n)?;
            let (records, end) = records(&connection, position)?;
            if end == position {
                break;
            }
            if !records.is_empty() {
                let sent = self.destination.send(&records);
                sent.map_err(ForwardError::Destination)?;
            }
            position = end;
            self.save_position(position)?;
        }
        self.report_dropped();
        Ok(())
    }

    /// Skips entries that have been trimmed, and the oldest ones if too many wait.
    /// Returns the new position.
    fn skip_expired(
        &mut self,
        connection: &Connection,
        position: i64,
        last: i64,
    ) -> Result<i64, ForwardError> {
        let sql = "SELECT coalesce(min(n), 1) FROM chain";
        let oldest: i64 = connection.query_row(sql, [], |row| row.get(0))?;
        let next = position.max(oldest - 1).max(last - MAX_QUEUED_ENTRIES);
        // Nothing counts as dropped if nothing was ever sent.
        if next > position && position > 0 {
            self.count_dropped((next - position).unsigned_abs());
        }
        Ok(next)
    }

    fn count_dropped(&mut self, records: u64) {
        self.counts.dropped.fetch_add(records, Ordering::Relaxed);
        self.unreported += records;
        self.report_dropped();
    }

    fn report_dropped(&mut self) {
        let is_recent = |reported: Instant| reported.elapsed() < WARNING_INTERVAL;
        let was_reported = self.reported_at.is_some_and(is_recent);
        if self.unreported > 0 && !was_reported {
            self.reported_at = Some(Instant::now());
            let dropped = std::mem::take(&mut self.unreported);
            warn!(
                dropped,
                to = %self.name,
                "records were not forwarded: the destination was unreachable for too long"
            );
        }
    }

    fn position(&mut self) -> io::Result<Option<i64>> {
        let mut bytes = [0; 20];
        let read = (&self.position).take(20).read(&mut bytes);
        // Always read from the beginning.
        io::Seek::rewind(&mut &self.position)?;
        let text = std::str::from_utf8(&bytes[..read?]).unwrap_or_default();
        Ok(text.trim().parse().ok())
    }

    fn save_position(&self, position: i64) -> io::Result<()> {
        self.position
            // Fixed width, so that no digits of a longer number remain.
            .write_all_at(format!("{position:019}\n").as_bytes(), 0)
    }

    fn record_success(&mut self) {
        if std::mem::take(&mut self.is_failing) {
            self.backoff = FIRST_BACKOFF;
            info!(to = %self.name, "records are forwarded again");
        }
    }

    fn record_failure(&mut self, error: &ForwardError) {
        if std::mem::replace(&mut self.is_failing, true) {
            self.backoff = (self.backoff * 2).min(MAX_BACKOFF);
        } else {
            warn!(%error, to = %self.name, "records can't be forwarded now; they are kept and sent later");
        }
    }
}

fn records(connection: &Connection, position: i64) -> rusqlite::Result<(Vec<ForwardRecord>, i64)> {
    let sql = format!("{SELECT} WHERE n > ? ORDER BY n LIMIT ?");
    let mut statement = connection.prepare_cached(&sql)?;
    let entries = statement.query_map(params![position, BATCH], ChainEntry::read)?;
    let entries = entries.collect::<rusqlite::Result<Vec<ChainEntry>>>()?;
    let mut records = Vec::new();
    for entry in &entries {
        if entry.kind == Some(EntryKind::Call)
            && let Some(record) = record(connection, entry)?
        {
            records.push(record);
        }
    }
    let end = entries.last().map_or(position, |last| last.n);
    Ok((records, end))
}

/// Returns `None` if the call was deleted, or if it changed since. A changed call has a later
/// entry, which is sent instead.
fn record(connection: &Connection, entry: &ChainEntry) -> rusqlite::Result<Option<ForwardRecord>> {
    let condition = "calls.seq = ? AND chained = ?";
    let sql = reader::detail_query(connection, condition, "calls.seq", false);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![entry.row, entry.n])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let mut call = CallDetail::read(row, &DeadRuns::default())?;
    call.run = RunInfo::read(connection, row.get(column!(run))?)?;
    let (started_at, summary) = (call.summary.started_at, &call.summary);
    let mut record = ForwardRecord {
        started_at: started_at.as_microsecond(),
        is_failure: summary.success == Some(false),
        tool: summary.tool.clone(),
        id: summary.id.clone(),
        trace_id: call.trace_id.clone(),
        json: String::new(),
    };
    let link = ChainLink::new(entry.n, &entry.digest, &entry.hash);
    record.json = export::export_line(call, Some(link));
    Ok(Some(record))
}
