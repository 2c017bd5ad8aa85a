//! Writes rows: all that waited in one transaction.

use std::collections::HashMap;
use std::ops::Range;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params, params_from_iter};
use toolgate_core::Redactor;

use crate::chain::{Chain, Kind};
use crate::columns::{self, CallEnd, CallStart, INSERT, UPDATE};
use crate::digest::{self, Digester};
use crate::key::Key;
use crate::place::{self, NEARBY};
use crate::row::{EndRow, Row, StartRow};
use crate::{time, turns};

/// The same row; whether the chain counts it already.
const OPEN: &str = "
    SELECT chained IS NOT NULL OR finished IS NOT NULL FROM calls
    WHERE seq = ? AND id = ? AND (finished IS NULL OR outcome = 'interrupted')";

/// Fails if the tables are not what they should be. Makes both statements, for later.
pub(crate) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached(&INSERT)?;
    connection.prepare_cached(&UPDATE)?;
    Ok(())
}

/// Writes rows in one transaction: all of them or none. Says how many there is no place for.
pub(crate) fn write<'a>(
    connection: &Connection,
    key: Option<&Key>,
    run: i64,
    redactor: &Redactor,
    rows: impl Iterator<Item = &'a Row> + Clone,
) -> rusqlite::Result<u64> {
    let execute = |sql| connection.prepare_cached(sql)?.execute([]);
    execute("BEGIN IMMEDIATE")?;
    let written = add(connection, key, run, redactor, rows)
        .and_then(|displaced| execute("COMMIT").map(|_| displaced));
    if written.is_err() && !connection.is_autocommit() {
        // What was wrong with the rows is worth more than what is wrong with this.
        execute("ROLLBACK").ok();
    }
    written
}

/// Writes rows in the transaction that is open. A row that is there already changes nothing.
pub(crate) fn add<'a>(
    connection: &Connection,
    key: Option<&Key>,
    run: i64,
    redactor: &Redactor,
    rows: impl Iterator<Item = &'a Row> + Clone,
) -> rusqlite::Result<u64> {
    let mut batch = Batch {
        connection,
        insert: connection.prepare_cached(&INSERT)?,
        chain: Chain::resume(connection, key)?,
        run,
        run_digest: digest::run(connection, run)?,
        digester: Digester::new(),
        redactor,
        last: None,
        displaced: 0,
    };
    batch.add(rows)?;
    Ok(batch.displaced)
}

/// The end of the order in which calls ended.
pub(crate) fn last_finished(connection: &Connection) -> rusqlite::Result<i64> {
    let mut statement =
        connection.prepare_cached("SELECT max(finished) FROM calls WHERE finished IS NOT NULL")?;
    let last: Option<i64> = statement.query_row([], |row| row.get(0))?;
    Ok(last.unwrap_or(0))
}

struct Batch<'a> {
    connection: &'a Connection,
    /// Held for the whole batch: to give it back and fetch it costs as much as a fifth of a row.
    insert: CachedStatement<'a>,
    chain: Chain<'a>,
    run: i64,
    run_digest: Vec<u8>,
    digester: Digester,
    redactor: &'a Redactor,
    /// When the last call ended; only known once one of these does.
    last: Option<i64>,
    /// Rows that there was no place for.
    displaced: u64,
}

impl Batch<'_> {
    /// Most calls begin and end in one batch: they are written once.
    fn add<'a>(&mut self, rows: impl Iterator<Item = &'a Row> + Clone) -> rusqlite::Result<()> {
        let start = |row: &'a Row| match row {
            Row::Start(row) => Some((row.id.as_str(), &**row)),
            Row::End(_) | Row::Turn(_) => None,
        };
        let mut starts: HashMap<&str, &StartRow> = HashMap::with_capacity(rows.size_hint().0);
        starts.extend(rows.clone().filter_map(start));
        for row in rows {
            match row {
                Row::Start(_) => {}
                Row::End(end) => match starts.remove(end.id.as_str()) {
                    Some(start) => self.insert(start, Some(end))?,
                    None => self.end(end)?,
                },
                Row::Turn(turn) => turns::write(self.connection, turn)?,
            }
        }
        let mut open: Vec<&StartRow> = starts.into_values().collect();
        open.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        open.into_iter()
            .try_for_each(|start| self.insert(start, None))
    }

    fn insert(&mut self, row: &StartRow, end: Option<&EndRow>) -> rusqlite::Result<()> {
        let end = match end {
            Some(row) => Some(CallEnd {
                finished: self.finish()?,
                row,
            }),
            None => None,
        };
        let first = place::of(&row.id);
        for place in first..first + NEARBY {
            let start = CallStart {
                seq: place,
                run: self.run,
                chained: self.chain.next(),
                row,
            };
            let values = columns::values(&start, end.as_ref());
            let bound = values.iter().map(|value| ToSqlOutput::Borrowed(*value));
            let rows = self.insert.execute(params_from_iter(bound))?;
            if rows > 0 {
                let digest = self.digester.of_values(&self.run_digest, &values);
                return self.chain.append(Kind::Call, place, 1, &digest);
            }
            if self.has(&row.id, place..place + 1)? {
                return end.map_or(Ok(()), |end| self.update(end.row).map(drop));
            }
        }
        self.displaced += 1;
        Ok(())
    }

    #[cold]
    fn has(&self, id: &str, places: Range<i64>) -> rusqlite::Result<bool> {
        let sql = "SELECT 1 FROM calls WHERE seq >= ? AND seq < ? AND id = ?";
        self.connection
            .prepare_cached(sql)?
            .exists(params![places.start, places.end, id])
    }

    /// The end of a call whose start was written before.
    fn end(&mut self, row: &EndRow) -> rusqlite::Result<()> {
        if let Some(start) = &row.start {
            return self.insert(start, Some(row));
        }
        if self.update(row)? {
            return Ok(());
        }
        let first = place::of(&row.id);
        if let Some(known) = &row.known {
            return self.insert(&known.row(self.redactor), Some(row));
        }
        let is_there = self.has(&row.id, first..first + NEARBY)?;
        self.displaced += u64::from(!is_there);
        Ok(())
    }

    /// A moment for the next end, later than that of every other.
    fn finish(&mut self) -> rusqlite::Result<i64> {
        let last = match self.last {
            Some(last) => last,
            None => last_finished(self.connection)?,
        };
        let finished = time::now().max(last.saturating_add(1));
        self.last = Some(finished);
        Ok(finished)
    }

    /// False if there is no such row without an end.
    fn update(&mut self, row: &EndRow) -> rusqlite::Result<bool> {
        let end = CallEnd {
            finished: self.finish()?,
            row,
        };
        let mut update = self.connection.prepare_cached(&UPDATE)?;
        let first = place::of(&row.id);
        for place in first..first + NEARBY {
            let Some(is_chained) = self.is_open(place, &row.id)? else {
                continue;
            };
            let same_row = [ValueRef::Integer(place), ValueRef::Text(row.id.as_bytes())];
            let values = columns::end_values(&end).chain(same_row);
            update.execute(params_from_iter(values.map(ToSqlOutput::Borrowed)))?;
            self.chain.append_call(place, !is_chained)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Whether the chain counts a call that may still end; nothing if there is no such call.
    fn is_open(&self, place: i64, id: &str) -> rusqlite::Result<Option<bool>> {
        let mut statement = self.connection.prepare_cached(OPEN)?;
        let found = statement.query_row(params![place, id], |row| row.get(0));
        found.optional()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sync, store};

    fn end(id: &str, error: &str) -> Row {
        Row::End(Box::new(EndRow {
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
    fn calls_of_two_processes_that_share_a_place_stand_side_by_side() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal.db");
        let connection = store::open(&file, Sync::Normal, store::Look::Quick).unwrap();
        // The same millisecond, the same bits of the process and of the counter; they differ in between.
        let ids = [1_u128, 2, 3].map(|other| format!("{:032x}", 5 << 80 | other << 20 | 7));
        assert!(ids.iter().all(|id| place::of(id) == place::of(&ids[0])));
        let starts = ids
            .each_ref()
            .map(|id| Row::Start(Box::new(StartRow::sample(id))));
        let ends = ids.each_ref().map(|id| end(id, &format!("of {id}")));
        let redactor = Redactor::default();
        let again = [2, 0].map(|n: usize| end(&ids[n], &format!("of {}", ids[n])));
        for rows in [&starts[..], &starts[..1], &ends[..2], &again] {
            let displaced = write(&connection, None, 1, &redactor, rows.iter()).unwrap();
            assert_eq!(displaced, 0);
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
        assert!(is_in_order, "what has an end keeps it");
    }

    #[test]
    fn of_a_batch_that_fails_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal.db");
        let connection = store::open(&file, Sync::Normal, store::Look::Quick).unwrap();
        let pages: i64 = connection
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .unwrap();
        connection
            .pragma_update(None, "max_page_count", pages + 4)
            .unwrap();
        let rows: Vec<Row> = (0..100_u128)
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
