//! Writes rows: all that waited in one transaction.

use rusqlite::{Connection, TransactionBehavior, params};
use toolgate_core::Redactor;

use crate::row::{EndRow, Executed, Row, Start, StartRow};
use crate::time;

const INSERT: &str = "
    INSERT INTO calls (id, run, tool, source, server, origin, trace_id, parent_span_id, started_at, asked, executed, is_as_asked)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING";
const UPDATE: &str = "
    UPDATE calls SET finished = ?2, outcome = ?3, duration = ?4, check_time = ?5, approval_time = ?6, invoke_time = ?7,
        result_bytes = ?8, result_cut = ?9, error = ?10, hint = ?11, details = ?12, renamed = ?13, dropped = ?14,
        result = ?15, content = ?16
    WHERE id = ?1";

/// Fails if the tables are not what they should be. Makes both statements, for later.
pub(crate) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached(INSERT)?;
    connection.prepare_cached(UPDATE)?;
    Ok(())
}

/// Writes rows in one transaction: all of them or none.
pub(crate) fn write<'a>(
    connection: &mut Connection,
    run: i64,
    redactor: &Redactor,
    rows: impl Iterator<Item = &'a Row>,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    {
        let mut batch = Batch {
            connection: &transaction,
            run,
            redactor,
            last: last_finished(&transaction)?,
        };
        for row in rows {
            match row {
                Row::Start(row) => batch.insert(row)?,
                Row::End(row) => batch.end(row)?,
            }
        }
    }
    transaction.commit()
}

fn last_finished(connection: &Connection) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached("SELECT max(finished) FROM calls")?;
    let last: Option<i64> = statement.query_row([], |row| row.get(0))?;
    Ok(last.unwrap_or(0))
}

struct Batch<'a> {
    connection: &'a Connection,
    run: i64,
    redactor: &'a Redactor,
    last: i64,
}

impl Batch<'_> {
    fn insert(&mut self, row: &StartRow) -> rusqlite::Result<()> {
        let (executed, is_as_asked) = match &row.executed {
            Executed::Not => (None, false),
            Executed::AsAsked => (None, true),
            Executed::Otherwise(executed) => (Some(executed), false),
        };
        self.connection.prepare_cached(INSERT)?.execute(params![
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
        Ok(())
    }

    fn end(&mut self, row: &EndRow) -> rusqlite::Result<()> {
        self.last = time::now().max(self.last.saturating_add(1));
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
        let rows = self.connection.prepare_cached(UPDATE)?.execute(params![
            row.id,
            self.last,
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
        Ok(rows > 0)
    }
}
