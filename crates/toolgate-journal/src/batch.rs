//! Writes rows into the database in batches, each in one transaction.

use std::collections::HashMap;
use std::ops::Range;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params, params_from_iter};
use toolgate_core::Redactor;

use crate::chain::{EntryKind, HashChain};
use crate::columns::{self, CallEnd, CallStart, INSERT, UPDATE};
use crate::digest::{self, RowDigester};
use crate::key::ChainKey;
use crate::row::{EndRow, JournalRow, StartRow};
use crate::seq::{self, MAX_PROBES};
use crate::{task_rows, time, turn_store};

// A row may still be ended if it never ended or was only presumed interrupted, because its end may
// arrive later from a spool. The result says whether the chain already counts it.
const SELECT_OPEN: &str = "
    SELECT chained IS NOT NULL OR finished IS NOT NULL FROM calls
    WHERE seq = ? AND id = ? AND (finished IS NULL OR outcome = 'interrupted')";

/// Prepares both statements. Fails if the tables are not what they should be.
pub(crate) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached(&INSERT)?;
    connection.prepare_cached(&UPDATE)?;
    Ok(())
}

/// Writes rows in one transaction, all or none. Returns how many rows were dropped because no
/// `seq` was free for them, or because they end a call that isn't there.
pub(crate) fn write<'a>(
    connection: &Connection,
    key: Option<&ChainKey>,
    run: i64,
    redactor: &Redactor,
    rows: impl Iterator<Item = &'a JournalRow> + Clone,
) -> rusqlite::Result<u64> {
    let execute = |sql| connection.prepare_cached(sql)?.execute([]);
    execute("BEGIN IMMEDIATE")?;
    let written = add(connection, key, run, redactor, rows)
        .and_then(|dropped| execute("COMMIT").map(|_| dropped));
    if written.is_err() && !connection.is_autocommit() {
        // The error of the rows says more than an error of the rollback.
        execute("ROLLBACK").ok();
    }
    written
}

/// Like [`write()`], but inside the caller's transaction. Rows that exist already stay unchanged.
pub(crate) fn add<'a>(
    connection: &Connection,
    key: Option<&ChainKey>,
    run: i64,
    redactor: &Redactor,
    rows: impl Iterator<Item = &'a JournalRow> + Clone,
) -> rusqlite::Result<u64> {
    let mut batch = RowBatch {
        connection,
        insert: connection.prepare_cached(&INSERT)?,
        chain: HashChain::resume(connection, key)?,
        run,
        run_digest: digest::run_digest(connection, run)?,
        digester: RowDigester::new(),
        redactor,
        last: None,
        dropped: 0,
    };
    batch.add(rows)?;
    Ok(batch.dropped)
}

pub(crate) fn last_finished(connection: &Connection) -> rusqlite::Result<i64> {
    let mut statement =
        connection.prepare_cached("SELECT max(finished) FROM calls WHERE finished IS NOT NULL")?;
    let last: Option<i64> = statement.query_row([], |row| row.get(0))?;
    Ok(last.unwrap_or(0))
}

struct RowBatch<'a> {
    connection: &'a Connection,
    // Held for the whole batch: returning it to the cache and fetching it again costs as much as a
    // fifth of a row.
    insert: CachedStatement<'a>,
    chain: HashChain<'a>,
    run: i64,
    run_digest: Vec<u8>,
    digester: RowDigester,
    redactor: &'a Redactor,
    // Read from the database only when a call of this batch ends.
    last: Option<i64>,
    dropped: u64,
}

impl RowBatch<'_> {
    // Most calls begin and end in one batch, so they are written once instead of twice.
    fn add<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a JournalRow> + Clone,
    ) -> rusqlite::Result<()> {
        let start = |row: &'a JournalRow| match row {
            JournalRow::Start(row) => Some((row.id.as_str(), &**row)),
            JournalRow::End(_) | JournalRow::Turn(_) | JournalRow::Task(_) => None,
        };
        let mut starts: HashMap<&str, &StartRow> = HashMap::with_capacity(rows.size_hint().0);
        starts.extend(rows.clone().filter_map(start));
        for row in rows {
            match row {
                JournalRow::Start(_) => {}
                JournalRow::End(end) => match starts.remove(end.id.as_str()) {
                    Some(start) => self.insert(start, Some(end))?,
                    None => self.add_end(end)?,
                },
                JournalRow::Turn(turn) => turn_store::write(self.connection, turn)?,
                JournalRow::Task(task) => task_rows::write(self.connection, self.run, task)?,
            }
        }
        let mut open: Vec<&StartRow> = starts.into_values().collect();
        // A hash map has no order, and entries of the chain should follow the order of the calls.
        open.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        open.into_iter()
            .try_for_each(|start| self.insert(start, None))
    }

    fn insert(&mut self, row: &StartRow, end: Option<&EndRow>) -> rusqlite::Result<()> {
        let end = match end {
            Some(row) => Some(CallEnd {
                finished: self.next_finished()?,
                row,
            }),
            None => None,
        };
        let first = seq::for_id(&row.id);
        for seq in first..first + MAX_PROBES {
            let start = CallStart {
                seq,
                run: self.run,
                chained: self.chain.next(),
                row,
            };
            let values = columns::values(&start, end.as_ref());
            let bound = values.iter().map(|value| ToSqlOutput::Borrowed(*value));
            let rows = self.insert.execute(params_from_iter(bound))?;
            if rows > 0 {
                let digest = self.digester.digest_values(&self.run_digest, &values);
                return self.chain.append(EntryKind::Call, seq, 1, &digest);
            }
            // The `seq` is taken: either by this same call, which is written twice, or by a call of
            // another process. In that case the next `seq` is tried.
            if self.has_call(&row.id, seq..seq + 1)? {
                return end.map_or(Ok(()), |end| self.update_end(end.row).map(drop));
            }
        }
        self.dropped += 1;
        Ok(())
    }

    #[cold]
    fn has_call(&self, id: &str, seqs: Range<i64>) -> rusqlite::Result<bool> {
        let sql = "SELECT 1 FROM calls WHERE seq >= ? AND seq < ? AND id = ?";
        self.connection
            .prepare_cached(sql)?
            .exists(params![seqs.start, seqs.end, id])
    }

    fn add_end(&mut self, row: &EndRow) -> rusqlite::Result<()> {
        if let Some(start) = &row.start {
            return self.insert(start, Some(row));
        }
        if self.update_end(row)? {
            return Ok(());
        }
        let first = seq::for_id(&row.id);
        // The start was lost, perhaps with the queue full. The end carries enough to write it now.
        if let Some(known) = &row.known {
            return self.insert(&known.row(self.redactor), Some(row));
        }
        // If the row exists, it has its end already: this one arrived twice, and nothing is lost.
        let exists = self.has_call(&row.id, first..first + MAX_PROBES)?;
        self.dropped += u64::from(!exists);
        Ok(())
    }

    // Strictly increasing: readers follow calls by this number, so it must not repeat or go back
    // even if the clock does.
    fn next_finished(&mut self) -> rusqlite::Result<i64> {
        let last = match self.last {
            Some(last) => last,
            None => last_finished(self.connection)?,
        };
        let finished = time::now().max(last.saturating_add(1));
        self.last = Some(finished);
        Ok(finished)
    }

    fn update_end(&mut self, row: &EndRow) -> rusqlite::Result<bool> {
        let end = CallEnd {
            finished: self.next_finished()?,
            row,
        };
        let mut update = self.connection.prepare_cached(&UPDATE)?;
        let first = seq::for_id(&row.id);
        for seq in first..first + MAX_PROBES {
            let Some(is_chained) = self.is_open(seq, &row.id)? else {
                continue;
            };
            let same_row = [ValueRef::Integer(seq), ValueRef::Text(row.id.as_bytes())];
            let values = columns::end_values(&end).chain(same_row);
            update.execute(params_from_iter(values.map(ToSqlOutput::Borrowed)))?;
            self.chain.append_call(seq, !is_chained)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Returns whether the chain already counts a call that may still end, or `None` if no such
    /// call is at this `seq`.
    fn is_open(&self, seq: i64, id: &str) -> rusqlite::Result<Option<bool>> {
        let mut statement = self.connection.prepare_cached(SELECT_OPEN)?;
        let found = statement.query_row(params![seq, id], |row| row.get(0));
        found.optional()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SyncMode, store};

    fn end(id: &str, error: &str) -> JournalRow {
        JournalRow::End(Box::new(EndRow {
            id: id.to_owned(),
            outcome: "tool_error".into(),
            error: Some(error.to_owned()),
            hint: None,
            details: None,
            duration: 1,
            check: 1,
            approval: 1,
            queue: Some(1),
            invoke: 1,
            renamed: None,
            dropped: None,
            result: None,
            result_bytes: None,
            result_cut: false,
            content: None,
            start: Some(Box::new(StartRow::sample(id))),
            known: None,
        }))
    }

    #[test]
    fn calls_of_two_processes_with_the_same_seq_are_both_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal.db");
        let connection = store::open(&file, SyncMode::Normal, store::CheckDepth::Quick).unwrap();
        // The same millisecond, the same bits of the process and of the counter; they differ in
        // between.
        let ids = [1_u128, 2, 3].map(|other| format!("{:032x}", 5 << 80 | other << 20 | 7));
        assert!(ids.iter().all(|id| seq::for_id(id) == seq::for_id(&ids[0])));
        let starts = ids
            .each_ref()
            .map(|id| JournalRow::Start(Box::new(StartRow::sample(id))));
        let ends = ids.each_ref().map(|id| end(id, &format!("of {id}")));
        let redactor = Redactor::default();
        let again = [2, 0].map(|n: usize| end(&ids[n], &format!("of {}", ids[n])));
        for rows in [&starts[..], &starts[..1], &ends[..2], &again] {
            let dropped = write(&connection, None, 1, &redactor, rows.iter()).unwrap();
            assert_eq!(dropped, 0);
        }
        let mut statement = connection
            .prepare("SELECT tool, id, error, finished FROM calls ORDER BY seq")
            .unwrap();
        let rows: Vec<[String; 4]> = statement
            .query_map([], |row| {
                let finished: i64 = row.get(3)?;
                Ok([row.get(0)?, row.get(1)?, row.get(2)?, finished.to_string()])
            })
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(rows.len(), 3);
        for (row, id) in rows.iter().zip(&ids) {
            assert_eq!((&row[0], &row[1], &row[2]), (id, id, &format!("of {id}")));
        }
        let is_in_order = rows[0][3] < rows[1][3] && rows[1][3] < rows[2][3];
        assert!(is_in_order, "a call that has an end keeps it");
    }

    #[test]
    fn a_failed_batch_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal.db");
        let connection = store::open(&file, SyncMode::Normal, store::CheckDepth::Quick).unwrap();
        let pages: i64 = connection
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .unwrap();
        connection
            .pragma_update(None, "max_page_count", pages + 4)
            .unwrap();
        let rows: Vec<JournalRow> = (0..100_u128)
            .map(|n| end(&format!("{:032x}", n << 80), &"x".repeat(1000)))
            .collect();
        let redactor = Redactor::default();
        let error = write(&connection, None, 1, &redactor, rows.iter()).unwrap_err();
        assert_eq!(
            error.sqlite_error_code(),
            Some(rusqlite::ErrorCode::DiskFull)
        );
        let count =
            || connection.query_row("SELECT count(*) FROM calls", [], |row| row.get::<_, i64>(0));
        assert_eq!(count().unwrap(), 0);
        connection
            .pragma_update(None, "max_page_count", 1 << 20)
            .unwrap();
        write(&connection, None, 1, &redactor, rows.iter()).unwrap();
        assert_eq!(count().unwrap(), 100);
    }
}
