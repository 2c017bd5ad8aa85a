//! Sends what is recorded elsewhere as well, so that whoever has this machine can't take it back.
//!
//! The chain is the queue: a thread reads the entries that follow the last one it sent, and keeps that number in a file. So
//! nothing is sent that isn't recorded, secrets are out of it already, no call waits for a destination, and what couldn't be
//! sent is sent later, by another process if need be. Of several processes, one sends for all: the one that holds the lock.

mod destination;
mod otlp;
mod settings;
mod syslog;

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
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

use crate::chain::{self, Entry, Kind, SELECT};
use crate::columns::column;
use crate::detail::{CallDetail, RunInfo};
use crate::export::{self, Link};
use crate::runs::DeadRuns;
use crate::{key, reader, runs};
use destination::Destination;
pub use settings::Forward;

/// How often new entries are looked for.
const LOOK: Duration = Duration::from_millis(200);
/// How long a destination that fails is left alone: twice as long each time, up to this.
const LONGEST_REST: Duration = Duration::from_secs(60);
const FIRST_REST: Duration = Duration::from_secs(1);
/// The end of the program waits for the last records this long.
const LAST: Duration = Duration::from_secs(1);
const BATCH: i64 = 100;
/// Entries that wait for a destination; older ones are dropped and counted.
const MOST_WAITING: i64 = 100_000;
/// How often it is said that records were dropped.
const QUIET: Duration = Duration::from_secs(60);

pub(crate) struct Record {
    /// When the call began, in microseconds since 1970.
    pub(crate) started_at: i64,
    pub(crate) is_failure: bool,
    pub(crate) tool: String,
    pub(crate) id: String,
    pub(crate) trace_id: Option<String>,
    /// Everything, as a line of an export has it, without its line break.
    pub(crate) json: String,
}

#[derive(Default)]
pub(crate) struct Counts {
    dropped: AtomicU64,
}

impl Counts {
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

pub(crate) struct Forwarder {
    end: Arc<(Mutex<bool>, Condvar)>,
    is_done: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Forwarder {
    /// Begins after the newest entry there is, unless records were sent to the same destination before.
    pub(crate) fn start(database: &Path, to: &Forward, counts: &Arc<Counts>) -> io::Result<Self> {
        let end = Arc::<(Mutex<bool>, Condvar)>::default();
        let (done, is_done) = oneshot::channel();
        let mut worker = Worker {
            database: database.to_owned(),
            position: position_file(database, to)?,
            name: to.to_string(),
            destination: Destination::new(to).map_err(io::Error::other)?,
            end: Arc::clone(&end),
            counts: Arc::clone(counts),
            is_failing: false,
            rest: FIRST_REST,
            untold: 0,
            told: None,
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
            end,
            is_done: Mutex::new(Some(is_done)),
        })
    }

    /// Sends what is left, but not for long.
    pub(crate) async fn close(&self) {
        if let Some(is_done) = self.end() {
            tokio::time::timeout(2 * LAST, is_done).await.ok();
        }
    }

    fn end(&self) -> Option<oneshot::Receiver<()>> {
        let (is_over, called) = &*self.end;
        *is_over.lock() = true;
        called.notify_all();
        let mut is_done = self.is_done.lock();
        is_done.take()
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.end();
    }
}

fn position_file(database: &Path, to: &Forward) -> io::Result<File> {
    let id = key::hex(&digest(&SHA256, to.to_string().as_bytes()).as_ref()[..4]);
    let path = runs::folder(database)?.join(format!("forward-{id}"));
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

fn connect(database: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.busy_timeout(Duration::from_secs(2))?;
    Ok(connection)
}

fn newest(database: &Path) -> Option<i64> {
    let last = connect(database).and_then(|connection| chain::last(&connection));
    last.ok().flatten().map(|last| last.n)
}

struct Worker {
    database: PathBuf,
    /// Holds the number of the last entry that was sent. Whoever has its lock sends.
    position: File,
    /// The destination, for people.
    name: String,
    destination: Destination,
    end: Arc<(Mutex<bool>, Condvar)>,
    counts: Arc<Counts>,
    is_failing: bool,
    rest: Duration,
    /// Dropped records that nobody was told of, and when somebody was.
    untold: u64,
    told: Option<Instant>,
}

#[derive(Debug, thiserror::Error)]
enum ForwardError {
    #[error("{0}")]
    Destination(String),
    #[error("the journal can't be read: {0}")]
    Journal(#[from] rusqlite::Error),
    #[error("how far it came can't be kept: {0}")]
    Position(#[from] io::Error),
}

impl Worker {
    fn run(&mut self, mut first: Option<i64>) {
        let mut last_try = None;
        loop {
            let is_over = self.wait(if self.is_failing { self.rest } else { LOOK });
            if is_over && last_try.is_none() {
                last_try = Some(Instant::now() + LAST);
            }
            if self.position.try_lock().is_ok() {
                // A file that wasn't there when this began has nothing older.
                first = first.or_else(|| newest(&self.database).map(|_| 0));
                match self.send_all(first, last_try) {
                    Ok(()) => self.is_well(),
                    Err(error) => self.fails(&error),
                }
            }
            if is_over {
                return;
            }
        }
    }

    /// True once it is over.
    fn wait(&self, patience: Duration) -> bool {
        let (is_over, called) = &*self.end;
        let mut guard = is_over.lock();
        called.wait_while_for(&mut guard, |is_over| !*is_over, patience);
        *guard
    }

    fn send_all(&mut self, first: Option<i64>, until: Option<Instant>) -> Result<(), ForwardError> {
        let Some(first) = first else {
            return Ok(());
        };
        let connection = connect(&self.database)?;
        let mut position = match self.position()? {
            Some(position) => position,
            None => {
                // At once: what isn't sent now is for whoever sends next.
                self.keep(first)?;
                first
            }
        };
        while until.is_none_or(|until| Instant::now() < until) {
            let Some(last) = chain::last(&connection)? else {
                break;
            };
            // The journal is another one than before.
            position = position.min(last.n);
            position = self.skip(&connection, position, last.n)?;
            let (records, end) = records(&connection, position)?;
            if end == position {
                break;
            }
            if !records.is_empty() {
                let sent = self.destination.send(&records);
                sent.map_err(ForwardError::Destination)?;
            }
            position = end;
            self.keep(position)?;
        }
        self.tell_dropped();
        Ok(())
    }

    /// What waits for too long is dropped, as is what has been trimmed meanwhile.
    fn skip(
        &mut self,
        connection: &Connection,
        position: i64,
        last: i64,
    ) -> Result<i64, ForwardError> {
        let sql = "SELECT coalesce(min(n), 1) FROM chain";
        let oldest: i64 = connection.query_row(sql, [], |row| row.get(0))?;
        let next = position.max(oldest - 1).max(last - MOST_WAITING);
        // Where nothing was ever sent, nothing is missed.
        if next > position && position > 0 {
            self.drops((next - position).unsigned_abs());
        }
        Ok(next)
    }

    fn drops(&mut self, records: u64) {
        self.counts.dropped.fetch_add(records, Ordering::Relaxed);
        self.untold += records;
        self.tell_dropped();
    }

    fn tell_dropped(&mut self) {
        let was_told = self.told.is_some_and(|told| told.elapsed() < QUIET);
        if self.untold > 0 && !was_told {
            self.told = Some(Instant::now());
            let dropped = std::mem::take(&mut self.untold);
            warn!(
                dropped,
                to = %self.name,
                "records of the journal were not forwarded: the destination was away for too long"
            );
        }
    }

    fn position(&mut self) -> io::Result<Option<i64>> {
        let mut bytes = [0; 20];
        let read = (&self.position).take(20).read(&mut bytes);
        // Read from its beginning each time, whatever was read before.
        io::Seek::rewind(&mut &self.position)?;
        let text = std::str::from_utf8(&bytes[..read?]).unwrap_or_default();
        Ok(text.trim().parse().ok())
    }

    fn keep(&self, position: i64) -> io::Result<()> {
        self.position
            .write_all_at(format!("{position:019}\n").as_bytes(), 0)
    }

    fn is_well(&mut self) {
        if std::mem::take(&mut self.is_failing) {
            self.rest = FIRST_REST;
            info!(to = %self.name, "records of the journal are forwarded again");
        }
    }

    fn fails(&mut self, error: &ForwardError) {
        if std::mem::replace(&mut self.is_failing, true) {
            self.rest = (self.rest * 2).min(LONGEST_REST);
        } else {
            warn!(%error, to = %self.name, "records of the journal can't be forwarded now; they are kept and sent later");
        }
    }
}

/// The records of the next entries, and the number of the last of these.
fn records(connection: &Connection, position: i64) -> rusqlite::Result<(Vec<Record>, i64)> {
    let sql = format!("{SELECT} WHERE n > ? ORDER BY n LIMIT ?");
    let mut statement = connection.prepare_cached(&sql)?;
    let entries = statement.query_map(params![position, BATCH], Entry::read)?;
    let entries = entries.collect::<rusqlite::Result<Vec<Entry>>>()?;
    let mut records = Vec::new();
    for entry in &entries {
        if entry.kind == Some(Kind::Call)
            && let Some(record) = record(connection, entry)?
        {
            records.push(record);
        }
    }
    let end = entries.last().map_or(position, |last| last.n);
    Ok((records, end))
}

/// Nothing if the call has ended since, or is deleted: its later entry speaks for it.
fn record(connection: &Connection, entry: &Entry) -> rusqlite::Result<Option<Record>> {
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
    let mut record = Record {
        started_at: started_at.as_microsecond(),
        is_failure: summary.success == Some(false),
        tool: summary.tool.clone(),
        id: summary.id.clone(),
        trace_id: call.trace_id.clone(),
        json: String::new(),
    };
    let link = Link::new(entry.n, &entry.digest, &entry.hash);
    record.json = export::line(call, Some(link));
    Ok(Some(record))
}
