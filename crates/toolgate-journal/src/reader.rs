//! Reads the journal, also while others write it.

mod asking;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use crate::columns::{self, Read, column};
use crate::detail::{CallDetail, RunInfo};
use crate::fields::{number, text};
use crate::filter::Conditions;
use crate::key::Key;
use crate::queue::Queue;
use crate::runs::{self, DeadRuns};
use crate::store::{Unusable, suffixed};
use crate::summary::{BESIDE, CallSummary};
use crate::{Filter, JournalError, batch, place};

/// A list is at most so long.
const MOST_CALLS: usize = 1000;
/// A question that takes longer reads too much of a large file, unless who asks says otherwise.
const LONGEST_QUESTION: Duration = Duration::from_secs(5);

/// Reads calls. Cheap to make and to clone; each question opens the file anew.
#[derive(Debug, Clone)]
pub struct Reader {
    file: PathBuf,
    /// Where this process has rows that are not in the database yet.
    queue: Option<Arc<Queue>>,
    patience: Duration,
    is_gone: Arc<AtomicBool>,
}

/// A place in the order in which calls ended; see [`Reader::finished_after`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position(i64);

impl Reader {
    /// For a program that only reads. It sees what other processes recorded at most some fifty milliseconds ago. Nothing is
    /// made or changed, but that what a killed process left is taken over where that is possible.
    pub fn open(file: &Path) -> Result<Self, JournalError> {
        let reader = Self::of(file.to_owned(), None);
        reader.connect()?;
        Ok(reader)
    }

    pub(crate) fn of(file: PathBuf, queue: Option<&Arc<Queue>>) -> Self {
        Self {
            file,
            queue: queue.cloned(),
            patience: LONGEST_QUESTION,
            is_gone: Arc::default(),
        }
    }

    /// The same for somebody who waits for that long, and no longer once `is_gone` is set: a question that takes longer is
    /// ended. Nobody else has to wait for it then.
    #[must_use]
    pub fn asked_by(mut self, patience: Duration, is_gone: Arc<AtomicBool>) -> Self {
        (self.patience, self.is_gone) = (patience, is_gone);
        self
    }

    /// Calls, newest first.
    pub fn calls(&self, filter: &Filter) -> Result<Vec<CallSummary>, JournalError> {
        self.ask(|connection| {
            let dead = self.dead(connection)?;
            let conditions = filter.conditions(&dead.list());
            let calls = select(connection, &conditions, "seq DESC", filter.limit, &dead)?;
            Ok(calls.into_iter().map(|(_, call)| call).collect())
        })
    }

    /// The same, only of tools that may be shown: by the name that was asked for, and the server. However many calls lie
    /// between, there are fewer than the filter's limit only where there are no more.
    pub fn calls_shown(
        &self,
        filter: &Filter,
        mut is_shown: impl FnMut(&str, Option<&str>) -> bool,
    ) -> Result<Vec<CallSummary>, JournalError> {
        self.ask(|connection| {
            let dead = self.dead(connection)?;
            let conditions = filter.conditions(&dead.list());
            let sql = query(connection, &conditions, "seq DESC");
            let mut statement = connection.prepare(&sql)?;
            let mut rows = statement.query(params_from_iter(&conditions.values))?;
            let mut calls = Vec::new();
            while calls.len() < filter.limit.min(MOST_CALLS)
                && let Some(row) = rows.next()?
            {
                let (tool, server) = (text(row, column!(tool))?, text(row, column!(server))?);
                if is_shown(&tool.unwrap_or_default(), server.as_deref()) {
                    calls.push(CallSummary::read(row, &dead)?);
                }
            }
            Ok(calls)
        })
    }

    /// One call by its id or by the beginning of it that no other call has.
    pub fn call(&self, id: &str) -> Result<Option<CallDetail>, JournalError> {
        let is_id = (1..=32).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            return Err(JournalError::NoId(toolgate_core::escape(
                &id[..id.floor_char_boundary(100)],
            )));
        }
        let id = id.to_ascii_lowercase();
        let found: Vec<i64> = self.ask(|connection| {
            let (start, end) = place::range(&id);
            let mut statement = connection.prepare(
                "SELECT seq FROM calls WHERE seq >= ?2 AND seq < ?3 AND substr(id, 1, length(?1)) = ?1 LIMIT 2",
            )?;
            let places = statement.query_map(params![id, start, end], |row| row.get(0))?;
            places.collect()
        })?;
        match found.as_slice() {
            [] => Ok(None),
            [only] => self.ask(|connection| self.detail(connection, *only)),
            _ => Err(JournalError::Ambiguous(id)),
        }
    }

    /// How many digits of each id tell it from every other call there is.
    pub fn distinct_digits(&self, ids: &[&str]) -> Result<Vec<usize>, JournalError> {
        self.ask(|connection| {
            let sql = "SELECT id FROM calls WHERE seq >= ? AND seq < ? AND id <> ?";
            let mut statement = connection.prepare(sql)?;
            let mut digits = Vec::with_capacity(ids.len());
            for id in ids {
                let millisecond = id.get(..12).unwrap_or(id);
                let (start, end) = place::range(millisecond);
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

    /// Where the order of ended calls ends now.
    pub fn position(&self) -> Result<Position, JournalError> {
        self.ask(|connection| Ok(Position(batch::last_finished(connection)?)))
    }

    /// Calls that ended after a position, in the order in which they did, each with its own position. None is left out and
    /// none comes twice, whoever ran it.
    pub fn finished_after(
        &self,
        position: Position,
        filter: &Filter,
    ) -> Result<Vec<(Position, CallSummary)>, JournalError> {
        self.ask(|connection| {
            let dead = DeadRuns::default();
            let mut conditions = filter.conditions(&dead.list());
            conditions.add("finished > ?", [position.0.into()]);
            select(connection, &conditions, "finished", filter.limit, &dead)
        })
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    pub(crate) fn key(&self) -> Result<Option<Key>, JournalError> {
        let key = Key::load(&self.file);
        key.map_err(|error| Unusable::Io(error).of(&suffixed(&self.file, ".key")))
    }

    pub(crate) fn dead(&self, connection: &Connection) -> rusqlite::Result<DeadRuns> {
        runs::dead(connection, &self.file).map(DeadRuns::new)
    }

    fn detail(&self, connection: &Connection, place: i64) -> rusqlite::Result<Option<CallDetail>> {
        let dead = self.dead(connection)?;
        let sql = detail_query(connection, "seq = ?", "seq", false);
        let found = connection.query_row(&sql, [place], |row| {
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
    conditions: &Conditions,
    order: &str,
    limit: usize,
    dead: &DeadRuns,
) -> rusqlite::Result<Vec<(Position, CallSummary)>> {
    let limit = limit.min(MOST_CALLS);
    let sql = query(connection, conditions, order);
    let mut statement = connection.prepare(&format!("{sql} LIMIT {limit}"))?;
    let rows = statement.query_map(params_from_iter(&conditions.values), |row| {
        let position = number(row, column!(finished))?.unwrap_or(0);
        Ok((Position(position), CallSummary::read(row, dead)?))
    })?;
    rows.collect()
}

fn query(connection: &Connection, conditions: &Conditions, order: &str) -> String {
    let (columns, table) = (columns::selected(Read::List), columns::table(connection));
    let conditions = conditions.sql();
    format!("SELECT {columns}, {BESIDE} FROM {table} WHERE {conditions} ORDER BY {order}")
}

/// Everything about calls; with their links in the chain, if there is one.
pub(crate) fn detail_query(
    connection: &Connection,
    conditions: &str,
    order: &str,
    has_chain: bool,
) -> String {
    let (columns, table) = (columns::selected(Read::Detail), columns::table(connection));
    let (link, join) = match has_chain {
        true => (
            "chain.n, chain.digest, chain.hash",
            "LEFT JOIN chain ON chain.n = calls.chained AND chain.row = calls.seq",
        ),
        false => ("NULL, NULL, NULL", ""),
    };
    format!(
        "SELECT {columns}, {BESIDE}, {link} FROM {table} {join} WHERE {conditions} ORDER BY {order}"
    )
}
