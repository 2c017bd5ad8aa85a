//! Takes over from a process that died without ending its run: the rows it left go into the
//! database, its open calls become interrupted, and its files are removed.
//!
//! Everything happens in one transaction, and doing it twice is harmless: another process may be
//! doing the same, or this one may be killed before the files are removed.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};
use toolgate_core::Redactor;
use tracing::{debug, warn};

use crate::chain::{self, HashChain};
use crate::key::ChainKey;
use crate::runs::{self, RunEntry};
use crate::seq::{self, MAX_PROBES};
use crate::store::{self, StoreError, suffixed};
use crate::{batch, foreign_schema, spool, time};

pub(crate) const INTERRUPTED: &str = "interrupted, outcome unknown";

// Calls scanned in one transaction.
const SCAN_ROWS: i64 = 20_000;
// How much earlier than its run a call's id may have been created, since the clock may be set back.
const ID_SLACK_MICROS: i64 = 3600 * 1_000_000;
// Short, because a reader can also do without the takeover.
const BUSY_TIMEOUT: Duration = Duration::from_millis(500);

/// Takes over the rows of dead runs and marks their open calls as interrupted, newest first and a
/// limited number at a time. Returns false if there are more to mark.
pub(crate) fn take_over(connection: &mut Connection, database: &Path) -> rusqlite::Result<bool> {
    if runs::dead_runs(connection, database)?.is_empty()
        && runs::abandoned_runs(database).is_empty()
    {
        return Ok(true);
    }
    let key = chain::load_key(database)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Checked again under the lock, because another process may have done it in between.
    let mut taken = Vec::new();
    for id in runs::abandoned_runs(database) {
        if take_over_rows(&transaction, key.as_ref(), database, &id)? {
            taken.push(id);
        }
    }
    let mut calls = 0;
    let mut unmarked = Vec::new();
    for run in runs::dead_runs(&transaction, database)? {
        let (marked, is_done) =
            mark_interrupted(&transaction, key.as_ref(), run.seq, run.unmarked)?;
        calls += marked;
        if !is_done {
            unmarked.push(run.id);
        }
    }
    transaction.commit()?;
    chain::save_head(connection, database)?;
    for id in taken {
        remove_files(database, &id, !unmarked.contains(&id));
    }
    if calls > 0 {
        warn!(
            calls,
            "calls were interrupted when their process ended; their outcome is unknown"
        );
    }
    Ok(unmarked.is_empty())
}

/// Takes over abandoned rows before a read, if there are any. A failure is only logged, because the
/// reader can return the rest.
pub(crate) fn take_over_to_read(database: &Path) {
    let take = || -> Result<(), StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(database, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        if store::read_format(&connection, database)?.is_some() {
            foreign_schema::check(&connection, database)?;
            take_over(&mut connection, database)?;
        }
        Ok(())
    };
    if runs::has_abandoned_rows(database)
        && let Err(error) = take()
    {
        debug!(%error, "records that a dead process left can't be taken over now");
    }
}

/// Writes the rows of a run's files. Returns false if these can't be read.
fn take_over_rows(
    connection: &Connection,
    key: Option<&ChainKey>,
    database: &Path,
    id: &str,
) -> rusqlite::Result<bool> {
    let left = match spool::read_abandoned(&runs::folder_path(database).join(id)) {
        Ok(left) => left,
        Err(error) => {
            warn!(%error, run = id, "records that a dead process left can't be read");
            return Ok(false);
        }
    };
    if left.damaged > 0 {
        let records = left.damaged;
        warn!(
            records,
            run = id,
            "some records that a dead process left are damaged and were dropped"
        );
    }
    if left.rows.is_empty() {
        return Ok(true);
    }
    let run = RunEntry::read_abandoned(database, id).insert(connection)?;
    // Spooled rows are redacted already, and none needs its start built.
    let redactor = Redactor::default();
    let dropped = batch::add(connection, key, run, &redactor, left.rows.iter())?;
    if dropped > 0 {
        warn!(
            dropped,
            run = id,
            "some records that a dead process left end calls that never started, and were dropped"
        );
    }
    // If the run counts as ended, its open calls must be checked again.
    let sql =
        "UPDATE runs SET ended_at = NULL, unmarked = ?2 WHERE seq = ?1 AND ended_at IS NOT NULL";
    connection.execute(sql, params![run, i64::MAX])?;
    debug!(
        rows = left.rows.len(),
        run = id,
        "records that a dead process left were added to the journal"
    );
    Ok(true)
}

// The lock is removed last, and only when nothing is left to do: as long as it exists and is free,
// other processes see that this run has something to take over.
fn remove_files(database: &Path, id: &str, is_done: bool) {
    let lock = runs::folder_path(database).join(id);
    let spools = spool::SUFFIXES.map(|suffix| suffixed(&lock, suffix));
    for file in spools.iter().chain(is_done.then_some(&lock)) {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                debug!(%error, "a file of a dead process can't be removed");
            }
            _ => {}
        }
    }
}

/// Ends a run in good order. `open` lists the first `seq` of each call that is still open;
/// these calls become interrupted.
pub(crate) fn end_run(
    connection: &mut Connection,
    database: &Path,
    run: &str,
    open: impl Iterator<Item = i64>,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let key = chain::load_key(database)?;
    let sql = "SELECT seq FROM runs WHERE id = ?";
    let run_seq: i64 = transaction.query_row(sql, [run], |row| row.get(0))?;
    for seq in open {
        interrupt(&transaction, key.as_ref(), run_seq, seq, seq + MAX_PROBES)?;
    }
    let sql = "UPDATE runs SET ended_at = ? WHERE seq = ?";
    transaction.execute(sql, params![time::now(), run_seq])?;
    transaction.commit()?;
    chain::save_head(connection, database)
}

/// Marks open calls of a run as interrupted, in a range of limited size that ends at `unmarked`.
/// Returns how many were marked and whether none are left.
fn mark_interrupted(
    connection: &Connection,
    key: Option<&ChainKey>,
    run: i64,
    unmarked: i64,
) -> rusqlite::Result<(usize, bool)> {
    let now = time::now();
    let sql = "SELECT started_at FROM runs WHERE seq = ?";
    let started: i64 = connection.query_row(sql, [run], |row| row.get(0))?;
    // No call of the run can be older, so the scan ends here.
    let oldest = seq::first_at((started - ID_SLACK_MICROS) / 1000);
    let from: Option<i64> = connection.query_row(
        "SELECT min(seq) FROM (SELECT seq FROM calls WHERE seq >= ? AND seq < ? ORDER BY seq DESC LIMIT ?)",
        params![oldest, unmarked, SCAN_ROWS],
        |row| row.get(0),
    )?;
    let calls = interrupt(connection, key, run, from.unwrap_or(unmarked), unmarked)?;
    let ended_at = from.is_none().then_some(now);
    connection.execute(
        "UPDATE runs SET ended_at = ?, unmarked = ? WHERE seq = ?",
        params![ended_at, from.unwrap_or(oldest), run],
    )?;
    Ok((calls, from.is_none()))
}

fn interrupt(
    connection: &Connection,
    key: Option<&ChainKey>,
    run: i64,
    from: i64,
    until: i64,
) -> rusqlite::Result<usize> {
    let sql = "SELECT seq, chained IS NOT NULL FROM calls
        WHERE seq >= ? AND seq < ? AND finished IS NULL AND run = ? ORDER BY seq";
    let mut statement = connection.prepare_cached(sql)?;
    let open = statement.query_map([from, until, run], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let open = open.collect::<rusqlite::Result<Vec<(i64, bool)>>>()?;
    if open.is_empty() {
        return Ok(0);
    }
    let mut chain = HashChain::resume(connection, key)?;
    let mut finished = time::now().max(batch::last_finished(connection)?);
    let sql = "UPDATE calls SET outcome = 'interrupted', error = ?1, finished = ?2 WHERE seq = ?3";
    let mut update = connection.prepare_cached(sql)?;
    for (seq, is_chained) in &open {
        finished += 1;
        update.execute(params![INTERRUPTED, finished, seq])?;
        chain.append_call(*seq, !is_chained)?;
    }
    Ok(open.len())
}
