//! Reads the journal, also while others write it.

mod asking;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use serde_json::Value;
use toolgate_core::{kept, marked};

use crate::export::Link;
use crate::filter::Conditions;
use crate::key::Key;
use crate::queue::Queue;
use crate::record::{CallDetail, CallSummary, RunInfo, StepTimes};
use crate::takeover::INTERRUPTED;
use crate::{Filter, JournalError, batch, place, runs, store, time};

/// A list is at most so long.
const MOST_CALLS: usize = 1000;
/// The columns of a summary, by number. Of long arguments only the beginning is read.
const SUMMARY: &str = "
    calls.seq, id, tool, source, server, origin, started_at, duration, outcome, error, result_bytes, run, finished,
    substr(coalesce(executed, asked), 1, 2049), octet_length(coalesce(executed, asked)), caller,
    (SELECT command FROM runs WHERE runs.seq = calls.run)";

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
            let sql = query(connection, &conditions, "seq DESC")?;
            let mut statement = connection.prepare(&sql)?;
            let mut rows = statement.query(params_from_iter(&conditions.values))?;
            let mut calls = Vec::new();
            while calls.len() < filter.limit.min(MOST_CALLS)
                && let Some(row) = rows.next()?
            {
                let (tool, server) = (text(row, 2)?.unwrap_or_default(), text(row, 4)?);
                if is_shown(&tool, server.as_deref()) {
                    calls.push(summary(row, &dead)?);
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
            let dead = Dead::default();
            let mut conditions = filter.conditions(&dead.list());
            conditions.add("finished > ?", [position.0.into()]);
            select(connection, &conditions, "finished", filter.limit, &dead)
        })
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    pub(crate) fn key(&self) -> Result<Option<Key>, JournalError> {
        Key::load(&self.file).map_err(|error| JournalError::Io {
            file: store::suffixed(&self.file, ".key"),
            error,
        })
    }

    pub(crate) fn dead(&self, connection: &Connection) -> rusqlite::Result<Dead> {
        let runs = runs::dead(connection, &self.file)?;
        Ok(Dead(runs.into_iter().map(|run| run.seq).collect()))
    }

    fn detail(&self, connection: &Connection, place: i64) -> rusqlite::Result<Option<CallDetail>> {
        let dead = self.dead(connection)?;
        let sql = detail_query(connection, "seq = ?", "seq", false)?;
        let found = connection
            .query_row(&sql, [place], |row| Ok((detail(row, &dead)?, row.get(11)?)))
            .optional()?;
        let Some((mut call, run)) = found else {
            return Ok(None);
        };
        call.run = run_info(connection, run)?;
        Ok(Some(call))
    }
}

/// Runs that are over without having said so.
#[derive(Default)]
pub(crate) struct Dead(Vec<i64>);

impl Dead {
    pub(crate) fn list(&self) -> String {
        let runs: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        runs.join(", ")
    }
}

pub(crate) fn select(
    connection: &Connection,
    conditions: &Conditions,
    order: &str,
    limit: usize,
    dead: &Dead,
) -> rusqlite::Result<Vec<(Position, CallSummary)>> {
    let limit = limit.min(MOST_CALLS);
    let sql = query(connection, conditions, order)?;
    let mut statement = connection.prepare(&format!("{sql} LIMIT {limit}"))?;
    let rows = statement.query_map(params_from_iter(&conditions.values), |row| {
        let position = number(row, 12)?.unwrap_or(0);
        Ok((Position(position), summary(row, dead)?))
    })?;
    rows.collect()
}

fn query(
    connection: &Connection,
    conditions: &Conditions,
    order: &str,
) -> rusqlite::Result<String> {
    let mut conditions = conditions.sql();
    if known_column(connection, "caller")? == "NULL" {
        conditions = conditions.replace("caller", "NULL");
    }
    let columns = columns(connection)?;
    Ok(format!(
        "SELECT {columns} FROM calls WHERE {conditions} ORDER BY {order}"
    ))
}

/// Everything about calls; with their links in the chain, if there is one.
pub(crate) fn detail_query(
    connection: &Connection,
    conditions: &str,
    order: &str,
    has_chain: bool,
) -> rusqlite::Result<String> {
    let queue_time = known_column(connection, "queue_time")?;
    let approval = known_column(connection, "approval")?;
    let mut conditions = conditions.to_owned();
    if known_column(connection, "caller")? == "NULL" {
        conditions = conditions.replace("caller", "NULL");
    }
    let (link, join) = match has_chain {
        true => (
            ", chain.n, chain.digest, chain.hash",
            "LEFT JOIN chain ON chain.n = calls.chained AND chain.row = calls.seq",
        ),
        false => (", NULL, NULL, NULL", ""),
    };
    Ok(format!(
        "SELECT {}, asked, executed, is_as_asked, renamed, dropped, check_time, approval_time, invoke_time,
            result, result_cut, content, hint, details, trace_id, parent_span_id, {queue_time}, {approval} {link}
            FROM calls {join} WHERE {conditions} ORDER BY {order}",
        columns(connection)?
    ))
}

/// The link of a call that [`detail_query`] found.
pub(crate) fn link(row: &Row<'_>) -> rusqlite::Result<Option<Link>> {
    let bytes = |column| row.get_ref(column).map(|value| value.as_blob().ok());
    let link = (number(row, 34)?, bytes(35)?, bytes(36)?);
    Ok(match link {
        (Some(entry), Some(digest), Some(hash)) => Some(Link::new(entry, digest, hash)),
        _ => None,
    })
}

/// The columns of a summary, also of a file that nobody has written to since a column was added.
fn columns(connection: &Connection) -> rusqlite::Result<Cow<'static, str>> {
    Ok(match known_column(connection, "caller")? {
        "NULL" => SUMMARY.replace("caller", "NULL").into(),
        _ => SUMMARY.into(),
    })
}

/// The column, or nothing in its place.
fn known_column(connection: &Connection, name: &'static str) -> rusqlite::Result<&'static str> {
    Ok(match connection.column_exists(None, "calls", name)? {
        true => name,
        false => "NULL",
    })
}

fn summary(row: &Row<'_>, dead: &Dead) -> rusqlite::Result<CallSummary> {
    let run = number(row, 11)?.unwrap_or(0);
    let outcome = match text(row, 8)? {
        Some(outcome) => outcome,
        None if dead.0.contains(&run) => "interrupted".to_owned(),
        None => "running".to_owned(),
    };
    let success = match outcome.as_str() {
        "running" | "interrupted" => None,
        outcome => Some(outcome == "success"),
    };
    let error = match outcome.as_str() {
        "interrupted" => Some(INTERRUPTED.to_owned()),
        _ => text(row, 9)?,
    };
    let arguments = text(row, 13)?.unwrap_or_default();
    let bytes = number(row, 14)?.unwrap_or(0).unsigned_abs();
    Ok(CallSummary {
        id: text(row, 1)?.unwrap_or_default(),
        tool: text(row, 2)?.unwrap_or_default(),
        source: text(row, 3)?,
        server: text(row, 4)?,
        origin: text(row, 5)?.unwrap_or_default(),
        caller: text(row, 15)?,
        command: text(row, 16)?,
        started_at: time::timestamp(number(row, 6)?.unwrap_or(0)),
        duration_ms: millis(row, 7)?,
        outcome,
        success,
        error,
        arguments: shown(&arguments, bytes),
        result_bytes: number(row, 10)?.map(i64::unsigned_abs),
    })
}

pub(crate) fn detail(row: &Row<'_>, dead: &Dead) -> rusqlite::Result<CallDetail> {
    let asked = json(row, 17)?.unwrap_or_default();
    let executed = match number(row, 19)? {
        Some(1) => Some(asked.clone()),
        _ => json(row, 18)?,
    };
    Ok(CallDetail {
        summary: summary(row, dead)?,
        asked,
        executed,
        approval: text(row, 33)?.and_then(|text| serde_json::from_str(&text).ok()),
        renamed: list(row, 20)?,
        dropped: list(row, 21)?,
        timings: StepTimes {
            check_ms: millis(row, 22)?,
            approval_ms: millis(row, 23)?,
            queue_ms: millis(row, 32)?,
            invoke_ms: millis(row, 24)?,
        },
        result: json(row, 25)?,
        result_cut: number(row, 26)? == Some(1),
        content: json(row, 27)?,
        hint: text(row, 28)?,
        details: text(row, 29)?,
        trace_id: text(row, 30)?,
        parent_span_id: text(row, 31)?,
        run: None,
    })
}

pub(crate) fn run_info(connection: &Connection, run: i64) -> rusqlite::Result<Option<RunInfo>> {
    let sql = "SELECT id, command, pid, version, started_at FROM runs WHERE seq = ?";
    let info = connection.query_row(sql, [run], |row| {
        Ok(RunInfo {
            id: text(row, 0)?.unwrap_or_default(),
            command: text(row, 1)?.unwrap_or_default(),
            pid: number(row, 2)?
                .and_then(|pid| pid.try_into().ok())
                .unwrap_or(0),
            version: text(row, 3)?.unwrap_or_default(),
            started_at: time::timestamp(number(row, 4)?.unwrap_or(0)),
        })
    });
    info.optional()
}

/// A column of text, whatever a damaged file has there.
pub(crate) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
    })
}

/// A column of whole numbers, whatever a damaged file has there.
pub(crate) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<i64>> {
    Ok(row.get_ref(column)?.as_i64().ok())
}

pub(crate) fn millis(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<f64>> {
    Ok(number(row, column)?.map(|micros| micros as f64 / 1000.0))
}

/// A column of JSON; the text itself where it is damaged.
fn json(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Value>> {
    Ok(text(row, column)?.map(|text| parsed(&text)))
}

pub(crate) fn list<T: serde::de::DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<Vec<T>> {
    let text = text(row, column)?.unwrap_or_default();
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// Arguments for a list: whole if they are short.
fn shown(text: &str, bytes: u64) -> Value {
    if bytes <= kept::SHOWN as u64 {
        return parsed(text);
    }
    let start = &text[..text.floor_char_boundary(kept::SHOWN)];
    let missing = bytes.saturating_sub(start.len() as u64);
    marked(start.to_owned(), missing).into()
}
