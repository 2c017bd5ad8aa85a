//! Recovers from a damaged file: sets it aside under another name and salvages what
//! can still be read.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags, params_from_iter};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::chain::{self, HashChain};
use crate::columns::{self, column};
use crate::store::{private_file, suffixed};
use crate::turn_store::COLUMNS as TURNS;
use crate::{runs, time};

// How long the salvage may delay a start. Rows that aren't copied stay in the file set aside.
const SALVAGE_TIMEOUT: Duration = Duration::from_secs(2);
const RUNS: &str = "seq, id, command, pid, version, started_at, ended_at, unmarked";

/// Renames a damaged file with its side files and returns its new name. Returns `None` if the file
/// is gone or another process was faster.
pub(crate) fn set_aside(
    file: &Path,
    reason: &dyn std::fmt::Display,
    is_still_damaged: impl FnOnce() -> bool,
) -> io::Result<Option<PathBuf>> {
    let _lock = lock(file)?;
    if !is_still_damaged() {
        return Ok(None);
    }
    let moment = Timestamp::now().strftime("%Y%m%dT%H%M%S%.3fZ").to_string();
    let broken = suffixed(file, &format!(".broken-{moment}"));
    warn!(file = %file.display(), kept_as = %broken.display(), %reason, "the journal is damaged; it was set aside, and a new one was started");
    // The log first: SQLite would take a log that is left behind for the log of the new file.
    for suffix in ["-wal", "-shm", ""] {
        match fs::rename(suffixed(file, suffix), suffixed(&broken, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(Some(broken))
}

/// Lets one process at a time set a file aside. The lock is held until the
/// returned file is dropped.
fn lock(file: &Path) -> io::Result<File> {
    let path = runs::create_folder(file)?.join("lock");
    let lock = private_file().append(true).create(true).open(path)?;
    lock.lock()?;
    Ok(lock)
}

pub(crate) fn salvage(broken: &Path, database: &Path, into: &mut Connection) {
    let before = Instant::now();
    match copy_rows(broken, database, into, before + SALVAGE_TIMEOUT) {
        Ok(0) => warn!("nothing in the damaged journal can be read"),
        Ok(calls) => info!(calls, "calls of the damaged journal were kept"),
        Err(error) => warn!(%error, "nothing of the damaged journal could be kept"),
    }
}

fn copy_rows(
    broken: &Path,
    database: &Path,
    into: &mut Connection,
    until: Instant,
) -> rusqlite::Result<u64> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let from = Connection::open_with_flags(broken, flags)?;
    let transaction = into.transaction()?;
    let mut calls = 0;
    let (names, known) = (columns::names(), columns::salvage_list(&from));
    for (table, columns, known, is_sane) in [
        ("runs", RUNS, RUNS, (|_| true) as fn(&[Value]) -> bool),
        ("turns", TURNS, TURNS, is_sane_turn),
        ("calls", &names, &known, is_sane_call),
    ] {
        let marks = vec!["?"; columns.split(',').count()].join(", ");
        let insert = format!("INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})");
        let mut insert = transaction.prepare(&insert)?;
        calls = 0;
        // From both ends up to the damage, newest first.
        for order in ["DESC", "ASC"] {
            let select = format!("SELECT {known} FROM {table} ORDER BY seq {order}");
            let rows = for_each_row(&from, &select, until, |row| {
                if !is_sane(row) {
                    return Ok(true);
                }
                let new = insert.execute(params_from_iter(row))?;
                calls += new as u64;
                // A row that is already there was reached from the other end.
                Ok(new > 0)
            });
            if rows.is_ok() {
                break;
            }
        }
    }
    let key = chain::load_key(database)?;
    // The damaged file's own chain proves nothing about these rows.
    HashChain::resume(&transaction, key.as_ref())?.append_uncovered()?;
    transaction.commit()?;
    Ok(calls)
}

/// Passes rows to `handle` until it returns false or the time is over. Fails at a row
/// that can't be read.
fn for_each_row(
    from: &Connection,
    select: &str,
    until: Instant,
    mut handle: impl FnMut(&[Value]) -> rusqlite::Result<bool>,
) -> rusqlite::Result<()> {
    let mut statement = from.prepare(select)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let values = (0..columns).map(|column| row.get_ref(column).map(lossy_value));
        let values = values.collect::<rusqlite::Result<Vec<Value>>>()?;
        if !handle(&values)? || Instant::now() > until {
            break;
        }
    }
    Ok(())
}

// A damaged page may hold text that isn't UTF-8.
fn lossy_value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        other => Value::try_from(other).unwrap_or(Value::Null),
    }
}

// A wrong time from a damaged page could put all later calls in the wrong order.
fn is_sane_call(row: &[Value]) -> bool {
    let finished = &row[column!(finished)];
    is_id(&row[column!(id)])
        && is_time(&row[column!(started_at)])
        && (*finished == Value::Null || is_time(finished))
}

fn is_sane_turn(row: &[Value]) -> bool {
    matches!(row, [seq, id, ..] if is_time(seq) && is_id(id))
}

fn is_time(value: &Value) -> bool {
    const DAY: i64 = 86_400 * 1_000_000;
    let latest = time::now() + DAY;
    matches!(value, Value::Integer(time) if (0..=latest).contains(time))
}

fn is_id(value: &Value) -> bool {
    matches!(value, Value::Text(id) if id.len() == 32)
}
