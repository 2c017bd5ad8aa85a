//! Keeps tasks beside the calls: those of clients that come back for the result, and the tasks of
//! servers that running calls wait for.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::BoxFuture;
use rusqlite::{
    Connection, OpenFlags, Row, ToSql, TransactionBehavior, named_params, params, params_from_iter,
};
use serde_json::Value;
use tokio::sync::oneshot;
use toolgate_core::{CallId, Origin, RemoteTask, TaskRecord, TaskStore};
use tracing::debug;

use crate::fields::{number, text};
use crate::queue::{RowWaiter, WriteAck, WriterJob};
use crate::row::JournalRow;
use crate::store::StoreError;
use crate::{Journal, JournalError, runs, time};

/// Times are in microseconds. `id` is the id of the call. Without a `key` no client comes back for
/// the result, and the row goes once the call has ended.
pub(crate) const TABLE: &str = "
    CREATE TABLE tasks (
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, run INTEGER NOT NULL, created INTEGER NOT NULL, key TEXT,
        owner TEXT, caller TEXT, origin TEXT, tool TEXT, arguments TEXT, client TEXT, remote TEXT, keep INTEGER,
        ended INTEGER, outcome TEXT
    );
    CREATE INDEX tasks_by_key ON tasks (key) WHERE key IS NOT NULL;";
const COLUMNS: &str = "id, created, key, owner, caller, origin, tool, arguments, client, remote, keep, ended, outcome";
// What was announced by the call itself stays if the record doesn't know it.
const SAVE: &str = "
    INSERT INTO tasks (id, run, created, key, owner, caller, origin, tool, arguments, client, remote, keep, ended, outcome)
    VALUES (:id, :run, :created, :key, :owner, :caller, :origin, :tool, :arguments, :client, :remote, :keep, :ended, :outcome)
    ON CONFLICT (id) DO UPDATE SET run = excluded.run, created = excluded.created, key = excluded.key,
        owner = excluded.owner, caller = excluded.caller, origin = excluded.origin, tool = excluded.tool,
        arguments = excluded.arguments, client = excluded.client, remote = coalesce(excluded.remote, remote),
        keep = excluded.keep, ended = excluded.ended, outcome = excluded.outcome";
const ANNOUNCE: &str = "
    INSERT INTO tasks (id, run, created, remote) VALUES (?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET remote = excluded.remote";
// A call that nobody can come back for says in the journal what was asked.
const FILL: &str = "
    UPDATE tasks SET (origin, caller, tool, arguments) =
        (SELECT origin, caller, tool, asked FROM calls WHERE calls.id = tasks.id AND calls.seq >= ?1 AND calls.seq < ?2)
    WHERE id = ?3 AND tool IS NULL";
// A task whose process never came back can't be continued after this time.
const MAX_AGE_MICROS: i64 = 30 * 86_400 * 1_000_000;
const MAX_CLAIMED: usize = 1000;
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// A change of the table, on its way to the writer.
pub(crate) enum TaskRow {
    // The server of a running call goes on with it as a task.
    Announced { call: CallId, remote: String },
    Saved(Box<TaskRecord>),
    // A call has ended that may have been announced.
    Ended(CallId),
}

impl TaskRow {
    pub(crate) fn bytes(&self) -> usize {
        let size = |value: &Value| value.to_string().len();
        match self {
            Self::Announced { remote, .. } => remote.len(),
            Self::Saved(task) => {
                let outcome = task
                    .outcome
                    .as_ref()
                    .map_or(0, |(_, outcome)| size(outcome));
                size(&task.arguments) + size(&task.client) + outcome
            }
            Self::Ended(_) => 0,
        }
    }
}

pub(crate) fn write(connection: &Connection, run: i64, row: &TaskRow) -> rusqlite::Result<()> {
    match row {
        TaskRow::Announced { call, remote } => {
            let values = params![call.to_string(), run, time::now(), remote];
            connection.prepare_cached(ANNOUNCE)?.execute(values)?;
        }
        TaskRow::Saved(task) => {
            save(connection, run, task)?;
            delete_expired(connection)?;
        }
        TaskRow::Ended(call) => {
            let sql = "DELETE FROM tasks WHERE id = ? AND key IS NULL";
            let mut statement = connection.prepare_cached(sql)?;
            statement.execute([call.to_string()])?;
        }
    }
    Ok(())
}

fn save(connection: &Connection, run: i64, task: &TaskRecord) -> rusqlite::Result<()> {
    let remote = task.remote.as_ref().map(remote_text);
    let ended = task.outcome.as_ref().map(|(ended, _)| time::micros(*ended));
    let outcome = task
        .outcome
        .as_ref()
        .map(|(_, outcome)| outcome.to_string());
    connection.prepare_cached(SAVE)?.execute(named_params! {
        ":id": task.call.to_string(),
        ":run": run,
        ":created": time::micros(task.created),
        ":key": task.key,
        ":owner": task.owner,
        ":caller": task.caller,
        ":origin": task.origin.as_str(),
        ":tool": task.tool,
        ":arguments": task.arguments.to_string(),
        ":client": task.client.to_string(),
        ":remote": remote,
        ":keep": time::whole_micros(task.keep),
        ":ended": ended,
        ":outcome": outcome,
    })?;
    Ok(())
}

/// Forgets results that were kept as long as promised, and calls that nobody continued.
pub(crate) fn delete_expired(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "DELETE FROM tasks WHERE ended + keep < ?1 OR (ended IS NULL AND created < ?1 - ?2)";
    let mut statement = connection.prepare_cached(sql)?;
    statement.execute([time::now(), MAX_AGE_MICROS])?;
    Ok(())
}

fn remote_text(remote: &RemoteTask) -> String {
    serde_json::to_string(remote).unwrap_or_default()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Option<TaskRecord>> {
    let json = |column: &str| -> rusqlite::Result<Value> {
        let text = text(row, column)?.unwrap_or_default();
        Ok(serde_json::from_str(&text).unwrap_or_default())
    };
    let moment = |micros: i64| UNIX_EPOCH + Duration::from_micros(micros.unsigned_abs());
    let outcome = match (number(row, "ended")?, text(row, "outcome")?) {
        (Some(ended), Some(_)) => Some((moment(ended), json("outcome")?)),
        _ => None,
    };
    // A damaged row doesn't count as a task.
    let Ok(call) = text(row, "id")?.unwrap_or_default().parse() else {
        return Ok(None);
    };
    Ok(Some(TaskRecord {
        call,
        key: text(row, "key")?,
        owner: text(row, "owner")?.unwrap_or_default(),
        caller: text(row, "caller")?,
        origin: text(row, "origin")?
            .and_then(|origin| origin.parse().ok())
            .unwrap_or(Origin::Library),
        tool: text(row, "tool")?.unwrap_or_default(),
        arguments: json("arguments")?,
        client: json("client")?,
        remote: text(row, "remote")?.and_then(|text| serde_json::from_str(&text).ok()),
        created: moment(number(row, "created")?.unwrap_or_default()),
        keep: Duration::from_micros(number(row, "keep")?.unwrap_or_default().unsigned_abs()),
        outcome,
    }))
}

fn select(
    connection: &Connection,
    conditions: &str,
    values: &[&dyn ToSql],
) -> rusqlite::Result<Vec<TaskRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE {conditions} LIMIT {MAX_CLAIMED}");
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map(params_from_iter(values), read)?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(rows.into_iter().flatten().collect())
}

impl Journal {
    /// Notes the server's task that a running call waits for.
    pub(crate) fn announce_task(&self, call: CallId, task: &RemoteTask) {
        self.shared.remote_tasks.lock().insert(call, task.clone());
        let remote = remote_text(task);
        // Nobody waits for it, but it should be on the disk before this process can be killed.
        let (ack, _) = oneshot::channel();
        self.put_task(
            TaskRow::Announced { call, remote },
            RowWaiter::Call(WriteAck::Task(ack)),
        );
    }

    pub(crate) fn end_task(&self, call: CallId) {
        // Nearly every call ends without a task.
        if self.shared.remote_tasks.lock().remove(&call).is_some() {
            self.put_task(TaskRow::Ended(call), RowWaiter::Unacknowledged);
        }
    }

    fn put_task(&self, row: TaskRow, waiter: RowWaiter) {
        let row = JournalRow::Task(Box::new(row));
        if self
            .shared
            .queue
            .put(WriterJob::Write(row, waiter))
            .is_err()
        {
            self.shared.health.add_lost(1);
        }
    }

    fn find_task(&self, key: &str) -> Result<Option<TaskRecord>, JournalError> {
        let found = self.reader().query(|connection| {
            // No process that knows tasks has written to this file.
            if !connection.table_exists(None, "tasks")? {
                return Ok(Vec::new());
            }
            select(connection, "key = ?", &[&key])
        });
        let now = SystemTime::now();
        let kept = |task: &TaskRecord| !task.is_expired(now);
        Ok(found?.into_iter().find(kept))
    }

    fn claim_tasks(&self, key: Option<&str>) -> Result<Vec<TaskRecord>, JournalError> {
        let shared = &self.shared;
        let run = shared.run.load(std::sync::atomic::Ordering::Relaxed);
        if run == 0 {
            return Ok(Vec::new()); // The file can't be opened yet.
        }
        let claim = || -> Result<Vec<TaskRecord>, rusqlite::Error> {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let mut connection = Connection::open_with_flags(shared.file(), flags)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let dead = runs::dead_runs(&transaction, shared.file()).map(runs::DeadRuns::new)?;
            let is_over = format!(
                "outcome IS NULL AND run IN (SELECT seq FROM runs WHERE ended_at IS NOT NULL OR seq IN ({}))",
                dead.list()
            );
            let mut claimed = match key {
                Some(key) => select(&transaction, &format!("{is_over} AND key = ?"), &[&key])?,
                None => select(&transaction, &is_over, &[])?,
            };
            for task in &mut claimed {
                let id = task.call.to_string();
                transaction.execute("UPDATE tasks SET run = ? WHERE id = ?", params![run, id])?;
                if task.key.is_none() {
                    let seq = crate::seq::for_id(&id);
                    transaction.execute(FILL, params![seq, seq + crate::seq::MAX_PROBES, id])?;
                    let filled = select(&transaction, "id = ?", &[&id])?;
                    *task = filled.into_iter().next().unwrap_or_else(|| task.clone());
                }
            }
            transaction.commit()?;
            Ok(claimed)
        };
        let claimed = claim().map_err(|error| StoreError::Sqlite(error).at_path(shared.file()))?;
        let mut remote_tasks = shared.remote_tasks.lock();
        for task in &claimed {
            if let Some(remote) = &task.remote {
                remote_tasks.insert(task.call, remote.clone());
            }
        }
        Ok(claimed)
    }
}

impl TaskStore for Journal {
    fn save(&self, task: TaskRecord) -> BoxFuture<'_, ()> {
        let row = JournalRow::Task(Box::new(TaskRow::Saved(Box::new(task))));
        let written = self.observer().write(row);
        Box::pin(written)
    }

    fn find(&self, key: &str) -> BoxFuture<'_, Option<TaskRecord>> {
        let (journal, key) = (self.clone(), key.to_owned());
        Box::pin(async move {
            let found = tokio::task::spawn_blocking(move || journal.find_task(&key)).await;
            unwrap_or_log(found.ok())
        })
    }

    fn claim(&self, key: Option<&str>) -> BoxFuture<'_, Vec<TaskRecord>> {
        let (journal, key) = (self.clone(), key.map(str::to_owned));
        Box::pin(async move {
            let claim = move || journal.claim_tasks(key.as_deref());
            unwrap_or_log(tokio::task::spawn_blocking(claim).await.ok())
        })
    }

    fn remote_task(&self, call: CallId) -> Option<RemoteTask> {
        self.shared.remote_tasks.lock().get(&call).cloned()
    }
}

fn unwrap_or_log<T: Default>(result: Option<Result<T, JournalError>>) -> T {
    result
        .and_then(|result| {
            result
                .inspect_err(|error| debug!(%error, "tasks can't be read from the journal now"))
                .ok()
        })
        .unwrap_or_default()
}
