//! The digest of a call as it stands in its row, with the run it belongs to: one list of columns, whatever they hold.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use sha2::{Digest, Sha256};

use crate::key::Hash;

/// Every column of a call but `chained`, which says where in the chain its digest stands. A column that holds nothing is left
/// out of the digest, so rows from before a column was added keep theirs.
pub(crate) const COLUMNS: [&str; 32] = [
    "seq",
    "id",
    "run",
    "tool",
    "source",
    "server",
    "origin",
    "caller",
    "trace_id",
    "parent_span_id",
    "started_at",
    "asked",
    "executed",
    "is_as_asked",
    "approval",
    "finished",
    "outcome",
    "duration",
    "check_time",
    "approval_time",
    "queue_time",
    "invoke_time",
    "result_bytes",
    "result_cut",
    "error",
    "hint",
    "details",
    "renamed",
    "dropped",
    "result",
    "content",
    "destructive",
];
/// Of a run, what never changes: who made the call.
const RUN_COLUMNS: [&str; 5] = ["id", "command", "pid", "version", "started_at"];

/// Longer values are hashed where they stand.
const SHORT: usize = 1024;

/// Collects short values, so that few pieces are hashed.
struct Digester {
    hash: Sha256,
    short: Vec<u8>,
}

impl Digester {
    fn new(run: &[u8]) -> Self {
        let mut short = Vec::with_capacity(2 * SHORT);
        short.extend_from_slice(run);
        let hash = Sha256::new();
        Self { hash, short }
    }

    /// Names, kinds and lengths are part of it: no value can be taken for another, nor for the beginning of the next.
    fn add(&mut self, name: &str, value: ValueRef<'_>) {
        let number: [u8; 8];
        let (kind, bytes): (u8, &[u8]) = match value {
            ValueRef::Null => return,
            ValueRef::Integer(integer) => {
                number = integer.to_be_bytes();
                (b'i', &number)
            }
            ValueRef::Real(real) => {
                number = real.to_be_bytes();
                (b'r', &number)
            }
            ValueRef::Text(text) => (b't', text),
            ValueRef::Blob(blob) => (b'b', blob),
        };
        self.short.extend_from_slice(name.as_bytes());
        self.short.extend_from_slice(&[0, kind]);
        self.short
            .extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        if bytes.len() <= SHORT {
            self.short.extend_from_slice(bytes);
        } else {
            self.hash.update(&self.short);
            self.hash.update(bytes);
            self.short.clear();
        }
    }

    fn finish(mut self) -> Hash {
        self.hash.update(&self.short);
        self.hash.finalize().into()
    }
}

/// What the digests of a run's calls begin with.
pub(crate) fn run(connection: &Connection, run: i64) -> rusqlite::Result<Vec<u8>> {
    let sql = "SELECT id, command, pid, version, started_at FROM runs WHERE seq = ?";
    let found = connection.prepare_cached(sql)?.query_row([run], |row| {
        let mut digester = Digester::new(b"");
        for (index, name) in RUN_COLUMNS.iter().enumerate() {
            digester.add(name, row.get_ref(index)?);
        }
        Ok(digester.finish().to_vec())
    });
    Ok(found.optional()?.unwrap_or_default())
}

/// The digest of a row that is about to be written.
pub(crate) fn of_values(
    run: &[u8],
    values: &[&dyn ToSql; COLUMNS.len()],
) -> rusqlite::Result<Hash> {
    let mut digester = Digester::new(run);
    for (name, value) in COLUMNS.iter().zip(values) {
        match value.to_sql()? {
            ToSqlOutput::Borrowed(value) => digester.add(name, value),
            ToSqlOutput::Owned(value) => digester.add(name, (&value).into()),
            _ => {}
        }
    }
    Ok(digester.finish())
}

/// The same of a row that was read: its first columns are [`COLUMNS`].
pub(crate) fn of_row(run: &[u8], row: &Row<'_>) -> rusqlite::Result<Hash> {
    let mut digester = Digester::new(run);
    for (index, name) in COLUMNS.iter().enumerate() {
        digester.add(name, row.get_ref(index)?);
    }
    Ok(digester.finish())
}

/// The same of a row of the table; none if it isn't there.
pub(crate) fn of_call(connection: &Connection, seq: i64) -> rusqlite::Result<Option<Hash>> {
    let sql = format!("SELECT {} FROM calls WHERE seq = ?", COLUMNS.join(", "));
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![seq])?;
    match rows.next()? {
        Some(row) => Ok(Some(of_row(&run(connection, row.get(2)?)?, row)?)),
        None => Ok(None),
    }
}
