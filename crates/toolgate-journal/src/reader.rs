//! Reads the journal, even while other processes write it.

mod query;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use crate::columns::{self, ColumnSet, column};
use crate::detail::{CallDetail, RunInfo};
use crate::fields::{number, text};
use crate::filter::SqlConditions;
use crate::key::ChainKey;
use crate::queue::RowQueue;
use crate::runs::{self, DeadRuns};
use crate::store::{StoreError, suffixed};
use crate::summary::{CallSummary, EXTRA_COLUMNS};
use crate::{JournalError, JournalFilter, batch, seq};

const MAX_CALLS: usize = 1000;
// A longer query reads too much of a large file, unless the caller allows it.
const DEFAULT_QUERY_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads calls. Cheap to make and to clone, because each query opens the file again.
#[derive(Debug, Clone)]
pub struct JournalReader {
    file: PathBuf,
    // The queue of this process, flushed before each query.
    queue: Option<Arc<RowQueue>>,
    query_timeout: Duration,
    is_cancelled: Arc<AtomicBool>,
}

/// A position in the order in which calls ended; see [`JournalReader::finished_after`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct JournalPosition(i64);

impl JournalReader {
    /// Opens the journal for a program that only reads. It sees calls of other processes
    /// within fifty milliseconds. It changes nothing, except that it takes over the rows of a
    /// killed process where possible.
    pub fn open(file: &Path) -> Result<Self, JournalError> {
        let reader = Self::new(file.to_owned(), None);
        reader.connect()?;
        Ok(reader)
    }

    pub(crate) fn new(file: PathBuf, queue: Option<&Arc<RowQueue>>) -> Self {
        Self {
            file,
            queue: queue.cloned(),
            query_timeout: DEFAULT_QUERY_TIMEOUT,
            is_cancelled: Arc::default(),
        }
    }

    /// Limits each query to `query_timeout`, and cancels it once `is_cancelled` is set.
    #[must_use]
    pub fn with_limits(mut self, query_timeout: Duration, is_cancelled: Arc<AtomicBool>) -> Self {
        (self.query_timeout, self.is_cancelled) = (query_timeout, is_cancelled);
        self
    }

    pub fn calls(&self, filter: &JournalFilter) -> Result<Vec<CallSummary>, JournalError> {
        self.query(|connection| {
            let dead = self.dead_runs(connection)?;
            let conditions = filter.conditions(&dead.list());
            let calls = select(connection, &conditions, "seq DESC", filter.limit, &dead)?;
            Ok(calls.into_iter().map(|(_, call)| call).collect())
        })
    }

    /// Calls that the reader may see, newest first. `is_visible` receives the tool name and the
    /// server of a call. Hidden calls don't count towards the filter's limit.
    pub fn visible_calls(
        &self,
        filter: &JournalFilter,
        mut is_visible: impl FnMut(&str, Option<&str>) -> bool,
    ) -> Result<Vec<CallSummary>, JournalError> {
        self.query(|connection| {
            let dead = self.dead_runs(connection)?;
            let conditions = filter.conditions(&dead.list());
            let sql = list_query(connection, &conditions, "seq DESC");
            let mut statement = connection.prepare(&sql)?;
            let mut rows = statement.query(params_from_iter(&conditions.values))?;
            let mut calls = Vec::new();
            while calls.len() < filter.limit.min(MAX_CALLS)
                && let Some(row) = rows.next()?
            {
                let (tool, server) = (text(row, column!(tool))?, text(row, column!(server))?);
                if is_visible(&tool.unwrap_or_default(), server.as_deref()) {
                    calls.push(CallSummary::read(row, &dead)?);
                }
            }
            Ok(calls)
        })
    }

    /// One call by its id or a unique prefix of it.
    pub fn call(&self, id: &str) -> Result<Option<CallDetail>, JournalError> {
        let is_id = (1..=32).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            return Err(JournalError::InvalidId(toolgate_core::text::escape(
                &id[..id.floor_char_boundary(100)],
            )));
        }
        let id = id.to_ascii_lowercase();
        let found: Vec<i64> = self.query(|connection| {
            let (start, end) = seq::range_for_prefix(&id);
            let mut statement = connection.prepare(
                "SELECT seq FROM calls WHERE seq >= ?2 AND seq < ?3 AND substr(id, 1, length(?1)) = ?1 LIMIT 2",
            )?;
            let seqs = statement.query_map(params![id, start, end], |row| row.get(0))?;
            seqs.collect()
        })?;
        match found.as_slice() {
            [] => Ok(None),
            [only] => self.query(|connection| self.detail(connection, *only)),
            _ => Err(JournalError::Ambiguous(id)),
        }
    }

    /// For each id, how many of its first digits distinguish it from all other calls.
    pub fn distinct_digits(&self, ids: &[&str]) -> Result<Vec<usize>, JournalError> {
        self.query(|connection| {
            let sql = "SELECT id FROM calls WHERE seq >= ? AND seq < ? AND id <> ?";
            let mut statement = connection.prepare(sql)?;
            let mut digits = Vec::with_capacity(ids.len());
            for id in ids {
                let millisecond = id.get(..12).unwrap_or(id);
                let (start, end) = seq::range_for_prefix(millisecond);
                let others = statement.query_map(params![start, end, id], |row| row.get(0))?;
                let shared = |other: String| {
                    let both = id.bytes().zip(other.bytes());
                    both.take_while(|(one, other)| one == other).count()
                };
                let most = others
                    .map(|other| other.map(shared))
                    .try_fold(0, |most, next| next.map(|next| most.max(next)))?;
                digits.push((most + 1).min(id.len()));
            }
            Ok(digits)
        })
    }

    /// The position of the call that ended last.
    pub fn position(&self) -> Result<JournalPosition, JournalError> {
        self.query(|connection| Ok(JournalPosition(batch::last_finished(connection)?)))
    }

    /// Calls that ended after a position, in that order, each with its own position. No call is
    /// missing or repeated, whichever process ran it.
    pub fn finished_after(
        &self,
        position: JournalPosition,
        filter: &JournalFilter,
    ) -> Result<Vec<(JournalPosition, CallSummary)>, JournalError> {
        self.query(|connection| {
            let dead = DeadRuns::default();
            let mut conditions = filter.conditions(&dead.list());
            conditions.add("finished > ?", [position.0.into()]);
            select(connection, &conditions, "finished", filter.limit, &dead)
        })
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    pub(crate) fn key(&self) -> Result<Option<ChainKey>, JournalError> {
        let key = ChainKey::load(&self.file);
        key.map_err(|error| StoreError::Io(error).at_path(&suffixed(&self.file, ".key")))
    }

    pub(crate) fn dead_runs(&self, connection: &Connection) -> rusqlite::Result<DeadRuns> {
        runs::dead_runs(connection, &self.file).map(DeadRuns::new)
    }

    fn detail(&self, connection: &Connection, seq: i64) -> rusqlite::Result<Option<CallDetail>> {
        let dead = self.dead_runs(connection)?;
        let sql = detail_query(connection, "seq = ?", "seq", false);
        let found = connection.query_row(&sql, [seq], |row| {
            let run = RunInfo::read(connection, row.get(column!(run))?)?;
            Ok(CallDetail {
                run,
                ..CallDetail::read(row, &dead)?
            })
        });
        found.optional()
    }
}

pub(crate) fn select(
    connection: &Connection,
    conditions: &SqlConditions,
    order: &str,
    limit: usize,
    dead: &DeadRuns,
) -> rusqlite::Result<Vec<(JournalPosition, CallSummary)>> {
    let limit = limit.min(MAX_CALLS);
    let sql = list_query(connection, conditions, order);
    let mut statement = connection.prepare(&format!("{sql} LIMIT {limit}"))?;
    let rows = statement.query_map(params_from_iter(&conditions.values), |row| {
        let position = number(row, column!(finished))?.unwrap_or(0);
        Ok((JournalPosition(position), CallSummary::read(row, dead)?))
    })?;
    rows.collect()
}

fn list_query(connection: &Connection, conditions: &SqlConditions, order: &str) -> String {
    let columns = columns::select_list(ColumnSet::List);
    let table = columns::table_expression(connection);
    let conditions = conditions.sql();
    format!("SELECT {columns}, {EXTRA_COLUMNS} FROM {table} WHERE {conditions} ORDER BY {order}")
}

/// Selects everything about calls, with their entries in the chain if there is one.
pub(crate) fn detail_query(
    connection: &Connection,
    conditions: &str,
    order: &str,
    has_chain: bool,
) -> String {
    let columns = columns::select_list(ColumnSet::Detail);
    let table = columns::table_expression(connection);
    let (link, join) = match has_chain {
        true => (
            "chain.n, chain.digest, chain.hash",
            "LEFT JOIN chain ON chain.n = calls.chained AND chain.row = calls.seq",
        ),
        false => ("NULL, NULL, NULL", ""),
    };
    format!(
        "SELECT {columns}, {EXTRA_COLUMNS}, {link} FROM {table} {join} WHERE {conditions} ORDER BY {order}"
    )
}
