//! Computes the digest of a call's row, which includes the run it belongs to.

use ring::digest::{Context, SHA256};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};

use crate::columns::{COLUMNS, COUNT, DIGESTED, SELECT_BY_SEQ, column};
use crate::key::{ChainHash, to_hash};

// The columns of a run that never change. Without them, somebody could attribute a call to another
// process.
const RUN_COLUMNS: [&str; 5] = ["id", "command", "pid", "version", "started_at"];

// Longer values are hashed in place instead of being copied.
const MAX_BUFFERED: usize = 1024;

/// Computes digests one after another. Collects short values in a buffer, because hashing few
/// large pieces is faster.
pub(crate) struct RowDigester {
    hash: Context,
    short: Vec<u8>,
}

impl RowDigester {
    pub(crate) fn new() -> Self {
        let (hash, short) = (Context::new(&SHA256), Vec::with_capacity(2 * MAX_BUFFERED));
        Self { hash, short }
    }

    pub(crate) fn digest_values(
        &mut self,
        run: &[u8],
        values: &[ValueRef<'_>; COUNT],
    ) -> ChainHash {
        self.short.extend_from_slice(run);
        for column in &DIGESTED {
            self.add(COLUMNS[*column].name, values[*column]);
        }
        self.finish()
    }

    // Names, kinds and lengths are hashed too, so that no value can pass for another or for the
    // beginning of the next.
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
        if bytes.len() <= MAX_BUFFERED {
            self.short.extend_from_slice(bytes);
        } else {
            self.hash.update(&self.short);
            self.hash.update(bytes);
            self.short.clear();
        }
    }

    fn finish(&mut self) -> ChainHash {
        self.hash.update(&self.short);
        self.short.clear();
        let hash = std::mem::replace(&mut self.hash, Context::new(&SHA256));
        to_hash(hash.finish().as_ref())
    }
}

pub(crate) fn run_digest(connection: &Connection, run: i64) -> rusqlite::Result<Vec<u8>> {
    let sql = format!("SELECT {} FROM runs WHERE seq = ?", RUN_COLUMNS.join(", "));
    let found = connection.prepare_cached(&sql)?.query_row([run], |row| {
        let mut digester = RowDigester::new();
        for (index, name) in RUN_COLUMNS.iter().enumerate() {
            digester.add(name, row.get_ref(index)?);
        }
        Ok(digester.finish().to_vec())
    });
    Ok(found.optional()?.unwrap_or_default())
}

pub(crate) fn row_digest(run: &[u8], row: &Row<'_>) -> rusqlite::Result<ChainHash> {
    let mut values = [ValueRef::Null; COUNT];
    for (column, value) in values.iter_mut().enumerate() {
        *value = row.get_ref(column)?;
    }
    Ok(RowDigester::new().digest_values(run, &values))
}

pub(crate) fn call_digest(
    connection: &Connection,
    seq: i64,
) -> rusqlite::Result<Option<ChainHash>> {
    let mut statement = connection.prepare_cached(&SELECT_BY_SEQ)?;
    let mut rows = statement.query([seq])?;
    match rows.next()? {
        Some(row) => {
            let run = run_digest(connection, row.get(column!(run))?)?;
            Ok(Some(row_digest(&run, row)?))
        }
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SyncMode, key, store};

    #[test]
    fn digests_of_recorded_calls_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal.db");
        let connection = store::open(&file, SyncMode::Normal, store::CheckDepth::Quick).unwrap();
        let rows = "
            INSERT INTO runs (seq, id, command, pid, version, started_at)
            VALUES (1, '0123456789abcdef', 'toolgate serve', 4711, '0.1.0', 1700000000000000);
            INSERT INTO calls (seq, id, run, tool, source, server, origin, caller, trace_id,
                parent_span_id, started_at, asked, executed, is_as_asked, approval, finished, outcome,
                duration, check_time, approval_time, queue_time, invoke_time, result_bytes, result_cut,
                error, hint, details, renamed, dropped, result, content, destructive, chained)
            VALUES (5, '0199f0c27b1a4fd2c39b5d0000000007', 1, 'tool', 'source', 'server', 'origin',
                'caller', 'trace', 'parent', 11, 'asked', 'executed', 0, 'approval', 16, 'outcome', 17,
                18, 19, 20, 21, 22, 1, 'error', 'hint', 'details', 'renamed', 'dropped', 'result',
                'content', 1, 99);";
        connection.execute_batch(rows).unwrap();
        let digest = call_digest(&connection, 5).unwrap().unwrap();
        // Made by the version before columns were declared in one place.
        let expected = "939de8125e792d43111a09b80beec29c000dfa599b3297afc72f4cc66f31930c";
        assert_eq!(key::hex(&digest), expected);
    }
}
