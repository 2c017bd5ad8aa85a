//! What becomes of a run that ended without saying so: rows it left go into the database, calls it left open were
//! interrupted, and its files are removed.
//!
//! Everything happens in one transaction, and everything may happen twice: another process may be at it, or this one be killed
//! before the files are removed.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};
use toolgate_core::Redactor;
use tracing::{debug, warn};

use crate::chain::{self, Chain};
use crate::key::Key;
use crate::place::{self, NEARBY};
use crate::runs::{self, Entry};
use crate::store::{self, Unusable, suffixed};
use crate::{batch, foreign, spool, time};

/// What is said of a call whose process ended before it did.
pub(crate) const INTERRUPTED: &str = "interrupted, outcome unknown";

/// Calls looked at at once.
const SLICE: i64 = 20_000;
/// How much earlier than its run the id of a call may have been made.
const HOUR: i64 = 3600 * 1_000_000;
/// How long someone who only wants to read waits for those who write.
const BUSY: Duration = Duration::from_millis(500);

/// Takes over what runs left that are over, and marks their open calls: the newest first and not too many at once. True if
/// that was all.
pub(crate) fn take_over(connection: &mut Connection, database: &Path) -> rusqlite::Result<bool> {
    if runs::dead(connection, database)?.is_empty() && runs::left(database).is_empty() {
        return Ok(true);
    }
    let key = chain::key_of(database)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Looked at again: another process may have done it in between.
    let mut taken = Vec::new();
    for id in runs::left(database) {
        if take_rows(&transaction, key.as_ref(), database, &id)? {
            taken.push(id);
        }
    }
    let mut calls = 0;
    let mut unmarked = Vec::new();
    for run in runs::dead(&transaction, database)? {
        let (marked, is_done) = mark(&transaction, key.as_ref(), run.seq, run.unmarked)?;
        calls += marked;
        if !is_done {
            unmarked.push(run.id);
        }
    }
    transaction.commit()?;
    chain::note(connection, database)?;
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

pub(crate) fn take_over_to_read(database: &Path) {
    let take = || -> Result<(), Unusable> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(database, flags)?;
        connection.busy_timeout(BUSY)?;
        if store::form(&connection, database)?.is_some() {
            foreign::check(&connection, database)?;
            take_over(&mut connection, database)?;
        }
        Ok(())
    };
    if runs::has_left_rows(database)
        && let Err(error) = take()
    {
        debug!(%error, "what a process left for the journal is not taken over now");
    }
}

/// Rows that stand in the files of a run. False if these can not be read.
fn take_rows(
    connection: &Connection,
    key: Option<&Key>,
    database: &Path,
    id: &str,
) -> rusqlite::Result<bool> {
    let left = match spool::left_in(&runs::folder_of(database).join(id)) {
        Ok(left) => left,
        Err(error) => {
            warn!(%error, run = id, "what a process left for the journal can not be read");
            return Ok(false);
        }
    };
    if left.damaged > 0 {
        let records = left.damaged;
        warn!(
            records,
            run = id,
            "what a process left for the journal is damaged; these records are left out"
        );
    }
    if left.rows.is_empty() {
        return Ok(true);
    }
    let run = Entry::left(database, id).enter(connection)?;
    // Secrets are out of them already, and none has a start to be made.
    let redactor = Redactor::default();
    let homeless = batch::add(connection, key, run, &redactor, left.rows.iter())?;
    if homeless > 0 {
        warn!(
            homeless,
            run = id,
            "ends of calls that a process left for the journal have no beginning, and are left out"
        );
    }
    // Should it count as ended, its open calls are looked at again.
    let sql =
        "UPDATE runs SET ended_at = NULL, unmarked = ?2 WHERE seq = ?1 AND ended_at IS NOT NULL";
    connection.execute(sql, params![run, i64::MAX])?;
    debug!(
        rows = left.rows.len(),
        run = id,
        "the journal has what a process left"
    );
    Ok(true)
}

/// The lock last, and only when nothing is left to do: it shows others that the run is over.
fn remove_files(database: &Path, id: &str, is_done: bool) {
    let lock = runs::folder_of(database).join(id);
    let spools = spool::SUFFIXES.map(|suffix| suffixed(&lock, suffix));
    for file in spools.iter().chain(is_done.then_some(&lock)) {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                debug!(%error, "a file of a run can not be removed");
            }
            _ => {}
        }
    }
}

/// A run ends in good order. Calls that are still open, by their places, will never end.
pub(crate) fn end(
    connection: &mut Connection,
    database: &Path,
    run: &str,
    open: impl Iterator<Item = i64>,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let key = chain::key_of(database)?;
    let sql = "SELECT seq FROM runs WHERE id = ?";
    let seq: i64 = transaction.query_row(sql, [run], |row| row.get(0))?;
    for place in open {
        interrupt(&transaction, key.as_ref(), seq, place, place + NEARBY)?;
    }
    let sql = "UPDATE runs SET ended_at = ? WHERE seq = ?";
    transaction.execute(sql, params![time::now(), seq])?;
    transaction.commit()?;
    chain::note(connection, database)
}

/// Calls that are still open get what is known of their end: nothing. Looks at some before `unmarked`, and says how many were
/// marked and whether no more are left.
fn mark(
    connection: &Connection,
    key: Option<&Key>,
    run: i64,
    unmarked: i64,
) -> rusqlite::Result<(usize, bool)> {
    let now = time::now();
    let started: i64 =
        connection.query_row("SELECT started_at FROM runs WHERE seq = ?", [run], |row| {
            row.get(0)
        })?;
    let oldest = place::first_at((started - HOUR) / 1000);
    let from: Option<i64> = connection.query_row(
        "SELECT min(seq) FROM (SELECT seq FROM calls WHERE seq >= ? AND seq < ? ORDER BY seq DESC LIMIT ?)",
        params![oldest, unmarked, SLICE],
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

/// Marks all open calls of a run from a place to another.
fn interrupt(
    connection: &Connection,
    key: Option<&Key>,
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
    let mut chain = Chain::resume(connection, key)?;
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
