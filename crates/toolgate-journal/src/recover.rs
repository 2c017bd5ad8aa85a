//! What becomes of a damaged file: it is set aside under another name, a new one is begun, and what can still be read is
//! taken over.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags, params_from_iter};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::chain::{self, Chain};
use crate::columns::{self, column};
use crate::store::suffixed;
use crate::{runs, time, turns};

/// How long a start may take for this. The rest is still in the file that was set aside.
const LONGEST: Duration = Duration::from_secs(2);
const RUNS: &str = "seq, id, command, pid, version, started_at, ended_at, unmarked";

/// Renames a damaged file and what belongs to it, and says its new name; nothing if it is gone or another process was faster.
pub(crate) fn set_aside(
    file: &Path,
    reason: &dyn std::fmt::Display,
    is_still_damaged: impl FnOnce() -> bool,
) -> io::Result<Option<PathBuf>> {
    let _one_at_a_time = lock(file)?;
    if !is_still_damaged() {
        return Ok(None);
    }
    let moment = Timestamp::now().strftime("%Y%m%dT%H%M%S%.3fZ").to_string();
    let broken = suffixed(file, &format!(".broken-{moment}"));
    warn!(file = %file.display(), kept_as = %broken.display(), %reason, "the journal is damaged; it is set aside, and a new one is begun");
    // The log first: left behind, it would be taken for that of the new file.
    for suffix in ["-wal", "-shm", ""] {
        match fs::rename(suffixed(file, suffix), suffixed(&broken, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(Some(broken))
}

/// Held for a moment only; it goes with the file that is returned.
fn lock(file: &Path) -> io::Result<File> {
    let lock = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(runs::folder(file)?.join("lock"))?;
    lock.lock()?;
    Ok(lock)
}

/// Takes over what can be read of a damaged file.
pub(crate) fn salvage(broken: &Path, database: &Path, into: &mut Connection) {
    let before = Instant::now();
    match copy(broken, database, into, before + LONGEST) {
        Ok(0) => warn!("nothing of the damaged journal can be read"),
        Ok(calls) => info!(calls, "calls of the damaged journal are kept"),
        Err(error) => warn!(%error, "nothing of the damaged journal can be kept"),
    }
}

fn copy(
    broken: &Path,
    database: &Path,
    into: &mut Connection,
    until: Instant,
) -> rusqlite::Result<u64> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let from = Connection::open_with_flags(broken, flags)?;
    let transaction = into.transaction()?;
    let mut calls = 0;
    let (names, known) = (columns::names(), columns::salvaged(&from));
    for (table, columns, known, is_sane) in [
        ("runs", RUNS, RUNS, (|_| true) as fn(&[Value]) -> bool),
        ("turns", turns::COLUMNS, turns::COLUMNS, is_sane_turn),
        ("calls", &names, &known, is_sane_call),
    ] {
        let marks = vec!["?"; columns.split(',').count()].join(", ");
        let insert = format!("INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})");
        let mut insert = transaction.prepare(&insert)?;
        calls = 0;
        // From both ends up to the damage, the newest first.
        for order in ["DESC", "ASC"] {
            let select = format!("SELECT {known} FROM {table} ORDER BY seq {order}");
            let rows = read(&from, &select, until, |row| {
                if !is_sane(row) {
                    return Ok(true);
                }
                let new = insert.execute(params_from_iter(row))?;
                calls += new as u64;
                // What is there already was reached from the other end.
                Ok(new > 0)
            });
            if rows.is_ok() {
                break;
            }
        }
    }
    let key = chain::key_of(database)?;
    // Whatever the damaged file had of a chain says nothing of these any more.
    Chain::resume(&transaction, key.as_ref())?.append_uncovered()?;
    transaction.commit()?;
    Ok(calls)
}

/// Shows rows until one can not be read, which is an error, or none is wanted any more.
fn read(
    from: &Connection,
    select: &str,
    until: Instant,
    mut wanted: impl FnMut(&[Value]) -> rusqlite::Result<bool>,
) -> rusqlite::Result<()> {
    let mut statement = from.prepare(select)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let values = (0..columns).map(|column| row.get_ref(column).map(owned));
        let values = values.collect::<rusqlite::Result<Vec<Value>>>()?;
        if !wanted(&values)? || Instant::now() > until {
            break;
        }
    }
    Ok(())
}

/// A value, whatever a damaged page has there.
fn owned(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        other => Value::try_from(other).unwrap_or(Value::Null),
    }
}

/// Times from a damaged page could put all later calls in the wrong order.
fn is_sane_call(row: &[Value]) -> bool {
    let finished = &row[column!(finished)];
    is_id(&row[column!(id)])
        && is_time(&row[column!(started_at)])
        && (*finished == Value::Null || is_time(finished))
}

fn is_sane_turn(row: &[Value]) -> bool {
    matches!(row, [kept, id, ..] if is_time(kept) && is_id(id))
}

fn is_time(value: &Value) -> bool {
    const DAY: i64 = 86_400 * 1_000_000;
    let latest = time::now() + DAY;
    matches!(value, Value::Integer(time) if (0..=latest).contains(time))
}

fn is_id(value: &Value) -> bool {
    matches!(value, Value::Text(id) if id.len() == 32)
}
