//! Writes rows: all that waited in one transaction.

use rusqlite::{Connection, params};
use toolgate_core::Redactor;

use crate::place::{self, NEARBY};
use crate::row::{EndRow, Executed, Row, Start, StartRow};
use crate::time;

const INSERT: &str = "
    INSERT INTO calls (seq, id, run, tool, source, server, origin, trace_id, parent_span_id, started_at, asked, executed, is_as_asked)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING";
const UPDATE: &str = "
    UPDATE calls SET finished = ?3, outcome = ?4, duration = ?5, check_time = ?6, approval_time = ?7, invoke_time = ?8,
        result_bytes = ?9, result_cut = ?10, error = ?11, hint = ?12, details = ?13, renamed = ?14, dropped = ?15,
        result = ?16, content = ?17
    WHERE seq = ?1 AND id = ?2";

/// Fails if the tables are not what they should be. Makes both statements, for later.
pub(crate) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached(INSERT)?;
    connection.prepare_cached(UPDATE)?;
    Ok(())
}

/// Writes rows in one transaction: all of them or none.
pub(crate) fn write<'a>(
    connection: &Connection,
    run: i64,
    redactor: &Redactor,
    rows: impl Iterator<Item = &'a Row>,
) -> rusqlite::Result<()> {
    let mut batch = Batch {
        connection,
        run,
        redactor,
        last: None,
    };
    batch.run("BEGIN IMMEDIATE")?;
    let written = batch.write(rows).and_then(|()| batch.run("COMMIT"));
    if written.is_err() && !connection.is_autocommit() {
        // What was wrong with the rows is worth more than what is wrong with this.
        batch.run("ROLLBACK").ok();
    }
    written
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
    run: i64,
    redactor: &'a Redactor,
    /// When the last call ended; only known once one of these does.
    last: Option<i64>,
}

impl Batch<'_> {
    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    fn write<'a>(&mut self, rows: impl Iterator<Item = &'a Row>) -> rusqlite::Result<()> {
        for row in rows {
            match row {
                Row::Start(row) => self.insert(row)?,
                Row::End(row) => self.end(row)?,
            }
        }
        Ok(())
    }

    fn insert(&mut self, row: &StartRow) -> rusqlite::Result<()> {
        let (executed, is_as_asked) = match &row.executed {
            Executed::Not => (None, false),
            Executed::AsAsked => (None, true),
            Executed::Otherwise(executed) => (Some(executed), false),
        };
        let mut insert = self.connection.prepare_cached(INSERT)?;
        let first = place::of(&row.id);
        for place in first..first + NEARBY {
            let rows = insert.execute(params![
                place,
                row.id,
                self.run,
                row.tool,
                row.source,
                row.server,
                row.origin,
                row.trace_id,
                row.parent_span_id,
                row.started_at,
                row.asked,
                executed,
                is_as_asked,
            ])?;
            if rows > 0 || self.is_at(place, &row.id)? {
                break;
            }
        }
        Ok(())
    }

    #[cold]
    fn is_at(&self, place: i64, id: &str) -> rusqlite::Result<bool> {
        let sql = "SELECT 1 FROM calls WHERE seq = ? AND id = ?";
        self.connection
            .prepare_cached(sql)?
            .exists(params![place, id])
    }

    fn end(&mut self, row: &EndRow) -> rusqlite::Result<()> {
        match &row.start {
            Start::Made(start) => self.insert(start)?,
            Start::Known(known) => {
                if self.update(row)? {
                    return Ok(());
                }
                self.insert(&known.row(self.redactor))?;
            }
        }
        self.update(row)?;
        Ok(())
    }

    /// False if there is no such row.
    fn update(&mut self, row: &EndRow) -> rusqlite::Result<bool> {
        let last = match self.last {
            Some(last) => last,
            None => last_finished(self.connection)?,
        };
        let finished = time::now().max(last.saturating_add(1));
        self.last = Some(finished);
        let mut update = self.connection.prepare_cached(UPDATE)?;
        let first = place::of(&row.id);
        for place in first..first + NEARBY {
            let rows = update.execute(params![
                place,
                row.id,
                finished,
                row.outcome,
                row.duration,
                row.check,
                row.approval,
                row.invoke,
                row.result_bytes,
                row.result_cut,
                row.error,
                row.hint,
                row.details,
                row.renamed,
                row.dropped,
                row.result,
                row.content,
            ])?;
            if rows > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
