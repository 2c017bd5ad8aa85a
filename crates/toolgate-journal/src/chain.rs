//! The chain: for every change of a call an entry with a digest of its row and a hash over itself and the entry before.
//!
//! Entries stand in the order in which they were committed, over all processes: each is written in the transaction of the
//! change it speaks of. Nothing in the middle is ever deleted. Where the old end is, `trimmed` says; a call that is still kept
//! then gets a new entry with its old digest, so that nothing that was changed meanwhile looks right again. `head.rs` keeps
//! the last entry outside of the database, `verify.rs` checks all of it.

use std::path::Path;

use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};
use tracing::warn;

use crate::head::Head;
use crate::key::{Hash, Key, hash, hex};

/// `row` is the `seq` of a call, or what the kind says. `calls` is how many calls there are from then on. `key` says which key
/// made the hash, and is NULL for a plain one.
pub(crate) const TABLE: &str = "
    CREATE TABLE chain (
        n INTEGER PRIMARY KEY, kind INTEGER NOT NULL, row INTEGER NOT NULL, calls INTEGER NOT NULL, key INTEGER,
        digest BLOB NOT NULL, hash BLOB NOT NULL
    );
    CREATE INDEX chain_marks ON chain (kind, row) WHERE kind IN (3, 6);";
const INSERT: &str =
    "INSERT INTO chain (n, kind, row, calls, key, digest, hash) VALUES (?, ?, ?, ?, ?, ?, ?)";
pub(crate) const SELECT: &str = "SELECT n, kind, row, calls, key, digest, hash FROM chain";

pub(crate) const NOTHING: Hash = [0; 32];

/// So many entries are kept however few calls there are.
const SPARE: i64 = 1000;
/// Entries looked at in one step of trimming.
const SLICE: i64 = 500;

/// What an entry says. The numbers stand in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The first of all; its digest is the hash of the last entry of the journal that was here before.
    Begin = 0,
    /// A call as it stands now: it began, ended, or both.
    Call = 1,
    /// A call whose entry was about to be trimmed.
    Kept = 2,
    /// A call was deleted: it was too old or too much.
    Evicted = 3,
    /// Entries before the one of number `row` were deleted; the digest is that one's hash.
    Trimmed = 4,
    /// `row` entries are missing before this one. The digest is the hash of the last of them.
    Lost = 5,
    /// Calls up to the place `row` are not covered: they are older than the chain.
    Uncovered = 6,
}

impl Kind {
    fn of(number: i64) -> Option<Self> {
        use Kind::{Begin, Call, Evicted, Kept, Lost, Trimmed, Uncovered};
        [Begin, Call, Kept, Evicted, Trimmed, Lost, Uncovered]
            .into_iter()
            .find(|kind| *kind as i64 == number)
    }

    pub(crate) fn is_of_call(self) -> bool {
        matches!(self, Self::Call | Self::Kept)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) n: i64,
    /// None if it is one that this program doesn't know.
    pub(crate) kind: Option<Kind>,
    pub(crate) row: i64,
    pub(crate) calls: i64,
    pub(crate) key: Option<i64>,
    pub(crate) digest: Hash,
    pub(crate) hash: Hash,
}

impl Entry {
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let bytes = |column| -> rusqlite::Result<Hash> {
            let value = row.get_ref(column)?.as_blob().unwrap_or_default();
            Ok(value.try_into().unwrap_or(NOTHING))
        };
        Ok(Self {
            n: row.get(0)?,
            kind: row.get_ref(1)?.as_i64().ok().and_then(Kind::of),
            row: row.get_ref(2)?.as_i64().unwrap_or_default(),
            calls: row.get_ref(3)?.as_i64().unwrap_or_default(),
            key: row.get_ref(4)?.as_i64().ok(),
            digest: bytes(5)?,
            hash: bytes(6)?,
        })
    }

    /// What its hash should be, after the entry with this hash.
    pub(crate) fn expected(&self, key: Option<&Key>, before: &Hash) -> Hash {
        let mut message = [0; 105];
        let (head, digest) = message.split_at_mut(73);
        digest.copy_from_slice(&self.digest);
        head[..32].copy_from_slice(before);
        head[32] = self.kind.map_or(u8::MAX, |kind| kind as u8);
        let numbers = [self.n, self.row, self.calls, self.key.unwrap_or_default()];
        for (bytes, number) in head[33..65].chunks_exact_mut(8).zip(numbers) {
            bytes.copy_from_slice(&number.to_be_bytes());
        }
        head[65] = u8::from(self.key.is_some());
        hash(key, &message)
    }
}

pub(crate) fn last(connection: &Connection) -> rusqlite::Result<Option<Entry>> {
    let sql = format!("{SELECT} ORDER BY n DESC LIMIT 1");
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_row([], Entry::read).optional()
}

pub(crate) fn entry(connection: &Connection, n: i64) -> rusqlite::Result<Option<Entry>> {
    let mut statement = connection.prepare_cached(&format!("{SELECT} WHERE n = ?"))?;
    statement.query_row([n], Entry::read).optional()
}

/// The end of the chain, in a transaction that nobody else can write in between.
pub(crate) struct Chain<'a> {
    connection: &'a Connection,
    /// Held, as it is for rows: see `batch.rs`.
    insert: CachedStatement<'a>,
    key: Option<&'a Key>,
    n: i64,
    hash: Hash,
    calls: i64,
}

impl<'a> Chain<'a> {
    pub(crate) fn resume(
        connection: &'a Connection,
        key: Option<&'a Key>,
    ) -> rusqlite::Result<Self> {
        let last = last(connection)?;
        Ok(Self {
            connection,
            insert: connection.prepare_cached(INSERT)?,
            key,
            n: last.as_ref().map_or(0, |last| last.n),
            hash: last.as_ref().map_or(NOTHING, |last| last.hash),
            calls: last.map_or(0, |last| last.calls),
        })
    }

    pub(crate) fn next(&self) -> i64 {
        self.n + 1
    }

    /// Adds an entry; `more` calls are there than before.
    pub(crate) fn append(
        &mut self,
        kind: Kind,
        row: i64,
        more: i64,
        digest: &Hash,
    ) -> rusqlite::Result<()> {
        self.append_as(self.next(), kind, row, more, digest)
    }

    fn append_as(
        &mut self,
        n: i64,
        kind: Kind,
        row: i64,
        more: i64,
        digest: &Hash,
    ) -> rusqlite::Result<()> {
        let mut entry = Entry {
            n,
            kind: Some(kind),
            row,
            calls: self.calls + more,
            key: self.key.map(|key| key.id),
            digest: *digest,
            hash: NOTHING,
        };
        entry.hash = entry.expected(self.key, &self.hash);
        let Entry { calls, key, .. } = entry;
        let number = kind as i64;
        self.insert
            .execute(params![n, number, row, calls, key, digest, entry.hash])?;
        (self.n, self.calls, self.hash) = (n, calls, entry.hash);
        Ok(())
    }

    /// A call as its row stands now. `is_new` unless the chain counts it already.
    pub(crate) fn append_call(&mut self, seq: i64, is_new: bool) -> rusqlite::Result<()> {
        let sql = "UPDATE calls SET chained = ? WHERE seq = ?";
        let mut update = self.connection.prepare_cached(sql)?;
        update.execute(params![self.next(), seq])?;
        let digest = crate::digest::of_call(self.connection, seq)?.unwrap_or(NOTHING);
        self.append(Kind::Call, seq, i64::from(is_new), &digest)
    }

    /// Calls that stand in the table and not in the chain, because they are older than it or were salvaged.
    pub(crate) fn append_uncovered(&mut self) -> rusqlite::Result<i64> {
        // The index of ends counts them fast; a call that hasn't ended is counted when it does.
        let count = "SELECT count(*) FROM calls WHERE finished IS NOT NULL";
        let count: i64 = self.connection.query_row(count, [], |row| row.get(0))?;
        let newest = "SELECT coalesce(max(seq), 0) FROM calls";
        let newest: i64 = self.connection.query_row(newest, [], |row| row.get(0))?;
        if newest > 0 {
            self.append(Kind::Uncovered, newest, count - self.calls, &NOTHING)?;
        }
        Ok(count)
    }

    /// Deletes calls, and says in the chain that this was meant to be.
    pub(crate) fn evict(&mut self, seqs: &[i64]) -> rusqlite::Result<()> {
        let sql =
            "DELETE FROM calls WHERE seq = ? RETURNING finished IS NOT NULL OR chained IS NOT NULL";
        let mut delete = self.connection.prepare_cached(sql)?;
        for seq in seqs {
            let counted: Option<bool> = delete.query_row([seq], |row| row.get(0)).optional()?;
            if let Some(is_counted) = counted {
                self.append(Kind::Evicted, *seq, -i64::from(is_counted), &NOTHING)?;
            }
        }
        Ok(())
    }

    /// Deletes old entries where there are many more than calls. Says whether there may be more to do.
    pub(crate) fn trim(&mut self) -> rusqlite::Result<bool> {
        let first: Option<i64> =
            self.connection
                .query_row("SELECT min(n) FROM chain", [], |row| row.get(0))?;
        let first = first.unwrap_or(self.n);
        if self.n - first <= 2 * self.calls + SPARE {
            return Ok(false);
        }
        let sql = format!("{SELECT} WHERE n >= ? AND n <= ? ORDER BY n LIMIT ?");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let oldest = statement.query_map(params![first, self.n - SPARE, SLICE], Entry::read)?;
        let oldest = oldest.collect::<rusqlite::Result<Vec<Entry>>>()?;
        let (Some(first), Some(end)) = (oldest.first(), oldest.last()) else {
            return Ok(false);
        };
        // The first one stays as the last one of the previous time: what it spoke of is done already, unless it is a beginning.
        let skipped = usize::from(first.kind != Some(Kind::Begin));
        for entry in &oldest[skipped..] {
            self.carry(entry)?;
        }
        self.append(Kind::Trimmed, end.n, 0, &end.hash)?;
        let sql = "DELETE FROM chain WHERE n < ?";
        self.connection.prepare_cached(sql)?.execute([end.n])?;
        Ok(true)
    }

    /// What an entry vouches for gets a new one, with the digest it has: a row that was changed or deleted by others stays
    /// so to whoever verifies.
    fn carry(&mut self, entry: &Entry) -> rusqlite::Result<()> {
        match entry.kind {
            Some(Kind::Uncovered) => self.append(Kind::Uncovered, entry.row, 0, &NOTHING),
            Some(kind) if kind.is_of_call() => {
                let chained = chained(self.connection, entry.row)?;
                match chained {
                    Some(Some(later)) if later > entry.n => return Ok(()),
                    None if self.is_evicted(entry)? => return Ok(()),
                    Some(Some(same)) if same == entry.n => {
                        let sql = "UPDATE calls SET chained = ? WHERE seq = ?";
                        let mut update = self.connection.prepare_cached(sql)?;
                        update.execute(params![self.next(), entry.row])?;
                    }
                    _ => {}
                }
                self.append(Kind::Kept, entry.row, 0, &entry.digest)
            }
            _ => Ok(()),
        }
    }

    fn is_evicted(&self, entry: &Entry) -> rusqlite::Result<bool> {
        let sql =
            "SELECT 1 FROM chain WHERE kind IN (3, 6) AND kind = 3 AND row = ? AND n > ? LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.exists([entry.row, entry.n])
    }
}

/// Which entry a call says is its own: nothing at all if there is no such call.
pub(crate) fn chained(connection: &Connection, seq: i64) -> rusqlite::Result<Option<Option<i64>>> {
    let sql = "SELECT chained FROM calls WHERE seq = ?";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row([seq], |row| row.get(0)).optional()
}

/// Begins the chain of a file that has none. Calls that are there already are not covered by it.
pub(crate) fn begin(connection: &Connection, database: &Path) -> rusqlite::Result<()> {
    let key = key_of(database)?;
    let mut chain = Chain::resume(connection, key.as_ref())?;
    if chain.n > 0 {
        return Ok(());
    }
    let before = Head::read(database);
    chain.n = before.as_ref().map_or(0, |before| before.n);
    let digest = before.as_ref().map_or(NOTHING, |before| before.hash);
    chain.append(Kind::Begin, 0, 0, &digest)?;
    let calls = chain.append_uncovered()?;
    if calls > 0 {
        warn!(
            calls,
            "the journal's chain of hashes begins now; calls from before aren't covered by it"
        );
    }
    Ok(())
}

/// Looks whether the chain still has the entry that was the last one. If it doesn't, that is said in the chain as well: the
/// next entries would else hide it.
pub(crate) fn attend(connection: &mut Connection, database: &Path) -> rusqlite::Result<()> {
    // The head first: what is written in between only makes the chain longer.
    let Some(head) = Head::read(database) else {
        return note(connection, database);
    };
    if head.is_in(connection)? {
        return note(connection, database);
    }
    let key = key_of(database)?;
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let mut chain = Chain::resume(&transaction, key.as_ref())?;
    let n = head.n.max(chain.n) + 1;
    let missing = n - chain.n - 1;
    warn!(
        entries = missing,
        head = %hex(&head.hash),
        "the newest entries of the journal's chain are gone or were replaced: calls are missing at its end; 'toolgate calls --verify' says more"
    );
    chain.append_as(n, Kind::Lost, missing, 0, &head.hash)?;
    drop(chain);
    transaction.commit()?;
    note(connection, database)
}

/// Keeps the head outside of the database.
pub(crate) fn note(connection: &Connection, database: &Path) -> rusqlite::Result<()> {
    if let Some(last) = last(connection)? {
        Head {
            n: last.n,
            hash: last.hash,
        }
        .keep(database);
    }
    Ok(())
}

/// The key of a journal, for those who write to it.
pub(crate) fn key_of(database: &Path) -> rusqlite::Result<Option<Key>> {
    Key::load(database).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}
