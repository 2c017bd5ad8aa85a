//! The digest of a call as it stands in its row, with the run it belongs to.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use sha2::{Digest, Sha256};

use crate::columns::{COLUMNS, COUNT, DIGESTED, SELECT_BY_SEQ, column};
use crate::key::Hash;

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
    let sql = format!("SELECT {} FROM runs WHERE seq = ?", RUN_COLUMNS.join(", "));
    let found = connection.prepare_cached(&sql)?.query_row([run], |row| {
        let mut digester = Digester::new(b"");
        for (index, name) in RUN_COLUMNS.iter().enumerate() {
            digester.add(name, row.get_ref(index)?);
        }
        Ok(digester.finish().to_vec())
    });
    Ok(found.optional()?.unwrap_or_default())
}

/// The digest of a row that is about to be written.
pub(crate) fn of_values(run: &[u8], values: &[ValueRef<'_>; COUNT]) -> Hash {
    let mut digester = Digester::new(run);
    for column in DIGESTED {
        digester.add(COLUMNS[column].name, values[column]);
    }
    digester.finish()
}

/// The same of a row that [`SELECT_BY_SEQ`] found.
pub(crate) fn of_row(run: &[u8], row: &Row<'_>) -> rusqlite::Result<Hash> {
    let mut values = [ValueRef::Null; COUNT];
    for (column, value) in values.iter_mut().enumerate() {
        *value = row.get_ref(column)?;
    }
    Ok(of_values(run, &values))
}

/// The same of a row of the table; none if it isn't there.
pub(crate) fn of_call(connection: &Connection, seq: i64) -> rusqlite::Result<Option<Hash>> {
    let mut statement = connection.prepare_cached(&SELECT_BY_SEQ)?;
    let mut rows = statement.query([seq])?;
    match rows.next()? {
        Some(row) => {
            let run = run(connection, row.get(column!(run))?)?;
            Ok(Some(of_row(&run, row)?))
        }
        None => Ok(None),
    }
}
