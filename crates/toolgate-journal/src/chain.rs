//! The hash chain: every change of a call adds an entry with a digest of its row and a hash over
//! itself and the previous entry.
//!
//! Entries are in commit order over all processes, because each is written in the transaction of
//! the change it describes. Nothing in the middle is ever deleted. A `Trimmed` entry says where the
//! old end is. A call that is still kept when its entry is trimmed gets a new entry with its old
//! digest, so that a row that was changed meanwhile doesn't look right again. `head.rs` keeps the
//! last entry outside the database, and `verify.rs` checks all of it.

use std::path::Path;

use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};
use tracing::warn;

use crate::fields::number;
use crate::head::ChainHead;
use crate::key::{ChainHash, ChainKey, hash, hex};

// `row` is the `seq` of a call, or what the kind says. `calls` is the number of calls from this
// entry on. `key` says which key made the hash, and is NULL for a plain one.
pub(crate) const TABLE: &str = "
    CREATE TABLE chain (
        n INTEGER PRIMARY KEY, kind INTEGER NOT NULL, row INTEGER NOT NULL, calls INTEGER NOT NULL, key INTEGER,
        digest BLOB NOT NULL, hash BLOB NOT NULL
    );
    CREATE INDEX chain_marks ON chain (kind, row) WHERE kind IN (3, 6);";
const INSERT: &str =
    "INSERT INTO chain (n, kind, row, calls, key, digest, hash) VALUES (?, ?, ?, ?, ?, ?, ?)";
pub(crate) const SELECT: &str = "SELECT n, kind, row, calls, key, digest, hash FROM chain";

pub(crate) const NO_HASH: ChainHash = [0; 32];

// This many entries are kept however few calls there are.
const MIN_KEPT_ENTRIES: i64 = 1000;
// Bounds how long one step of trimming holds the write lock.
const TRIM_BATCH: i64 = 500;

/// What an entry says. The numbers are stored in files, so they never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// The first entry. Its digest is the hash of the last entry of the journal
    /// that this one replaced.
    Begin = 0,
    /// A call as its row is now: it began, ended, or both.
    Call = 1,
    /// A call whose older entry was trimmed. Repeats the digest of that entry.
    Kept = 2,
    /// A call was deleted because of its age or of the journal's size.
    Evicted = 3,
    /// Entries before number `row` were deleted; the digest is the hash of that entry.
    Trimmed = 4,
    /// `row` entries are missing before this one, whose digest is the hash of the last of them.
    Lost = 5,
    /// Calls up to the `seq` in `row` are older than the chain and not covered by it.
    Uncovered = 6,
}

impl EntryKind {
    fn from_number(number: i64) -> Option<Self> {
        use EntryKind::{Begin, Call, Evicted, Kept, Lost, Trimmed, Uncovered};
        [Begin, Call, Kept, Evicted, Trimmed, Lost, Uncovered]
            .into_iter()
            .find(|kind| *kind as i64 == number)
    }

    pub(crate) fn is_call(self) -> bool {
        matches!(self, Self::Call | Self::Kept)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainEntry {
    pub(crate) n: i64,
    /// `None` for a kind that this program doesn't know.
    pub(crate) kind: Option<EntryKind>,
    pub(crate) row: i64,
    pub(crate) calls: i64,
    pub(crate) key: Option<i64>,
    pub(crate) digest: ChainHash,
    pub(crate) hash: ChainHash,
}

impl ChainEntry {
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let bytes = |column| -> rusqlite::Result<ChainHash> {
            let value = row.get_ref(column)?.as_blob().unwrap_or_default();
            Ok(value.try_into().unwrap_or(NO_HASH))
        };
        Ok(Self {
            n: row.get(0)?,
            kind: number(row, 1)?.and_then(EntryKind::from_number),
            row: number(row, 2)?.unwrap_or_default(),
            calls: number(row, 3)?.unwrap_or_default(),
            key: number(row, 4)?,
            digest: bytes(5)?,
            hash: bytes(6)?,
        })
    }

    /// The hash this entry should have, given the hash of the entry before it.
    pub(crate) fn expected_hash(&self, key: Option<&ChainKey>, before: &ChainHash) -> ChainHash {
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

pub(crate) fn last(connection: &Connection) -> rusqlite::Result<Option<ChainEntry>> {
    let sql = format!("{SELECT} ORDER BY n DESC LIMIT 1");
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_row([], ChainEntry::read).optional()
}

/// The number of the oldest entry that is kept.
pub(crate) fn first(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    connection.query_row("SELECT min(n) FROM chain", [], |row| row.get(0))
}

pub(crate) fn entry(connection: &Connection, n: i64) -> rusqlite::Result<Option<ChainEntry>> {
    let mut statement = connection.prepare_cached(&format!("{SELECT} WHERE n = ?"))?;
    statement.query_row([n], ChainEntry::read).optional()
}

/// The end of the chain. Needs a write transaction, so that no other process appends in between.
pub(crate) struct HashChain<'a> {
    connection: &'a Connection,
    // Held for the whole batch, for the reason given in `batch.rs`.
    insert: CachedStatement<'a>,
    key: Option<&'a ChainKey>,
    n: i64,
    hash: ChainHash,
    calls: i64,
}

impl<'a> HashChain<'a> {
    pub(crate) fn resume(
        connection: &'a Connection,
        key: Option<&'a ChainKey>,
    ) -> rusqlite::Result<Self> {
        let last = last(connection)?;
        Ok(Self {
            connection,
            insert: connection.prepare_cached(INSERT)?,
            key,
            n: last.as_ref().map_or(0, |last| last.n),
            hash: last.as_ref().map_or(NO_HASH, |last| last.hash),
            calls: last.map_or(0, |last| last.calls),
        })
    }

    pub(crate) fn next(&self) -> i64 {
        self.n + 1
    }

    /// Adds an entry. `call_change` is added to the number of calls that the chain counts.
    pub(crate) fn append(
        &mut self,
        kind: EntryKind,
        row: i64,
        call_change: i64,
        digest: &ChainHash,
    ) -> rusqlite::Result<()> {
        self.append_numbered(self.next(), kind, row, call_change, digest)
    }

    fn append_numbered(
        &mut self,
        n: i64,
        kind: EntryKind,
        row: i64,
        call_change: i64,
        digest: &ChainHash,
    ) -> rusqlite::Result<()> {
        let mut entry = ChainEntry {
            n,
            kind: Some(kind),
            row,
            calls: self.calls + call_change,
            key: self.key.map(|key| key.id),
            digest: *digest,
            hash: NO_HASH,
        };
        entry.hash = entry.expected_hash(self.key, &self.hash);
        let ChainEntry { calls, key, .. } = entry;
        let number = kind as i64;
        self.insert
            .execute(params![n, number, row, calls, key, digest, entry.hash])?;
        (self.n, self.calls, self.hash) = (n, calls, entry.hash);
        Ok(())
    }

    /// Adds an entry for a call as its row is now. `is_new` is false if the chain
    /// counts the call already.
    pub(crate) fn append_call(&mut self, seq: i64, is_new: bool) -> rusqlite::Result<()> {
        let sql = "UPDATE calls SET chained = ? WHERE seq = ?";
        let mut update = self.connection.prepare_cached(sql)?;
        update.execute(params![self.next(), seq])?;
        let digest = crate::digest::call_digest(self.connection, seq)?.unwrap_or(NO_HASH);
        self.append(EntryKind::Call, seq, i64::from(is_new), &digest)
    }

    /// Records that calls are in the table but not in the chain: they are older
    /// than it, or salvaged.
    pub(crate) fn append_uncovered(&mut self) -> rusqlite::Result<i64> {
        // The index of ends makes this count fast. A call that hasn't ended is counted when it
        // does.
        let count = "SELECT count(*) FROM calls WHERE finished IS NOT NULL";
        let count: i64 = self.connection.query_row(count, [], |row| row.get(0))?;
        let newest = "SELECT coalesce(max(seq), 0) FROM calls";
        let newest: i64 = self.connection.query_row(newest, [], |row| row.get(0))?;
        if newest > 0 {
            self.append(EntryKind::Uncovered, newest, count - self.calls, &NO_HASH)?;
        }
        Ok(count)
    }

    /// Deletes calls and records in the chain that this was intended.
    pub(crate) fn evict(&mut self, seqs: &[i64]) -> rusqlite::Result<()> {
        let sql =
            "DELETE FROM calls WHERE seq = ? RETURNING finished IS NOT NULL OR chained IS NOT NULL";
        let mut delete = self.connection.prepare_cached(sql)?;
        for seq in seqs {
            let counted: Option<bool> = delete.query_row([seq], |row| row.get(0)).optional()?;
            if let Some(is_counted) = counted {
                self.append(EntryKind::Evicted, *seq, -i64::from(is_counted), &NO_HASH)?;
            }
        }
        Ok(())
    }

    /// Deletes some old entries once there are many more entries than calls. Returns whether more
    /// may have to be deleted.
    pub(crate) fn trim(&mut self) -> rusqlite::Result<bool> {
        let first = first(self.connection)?.unwrap_or(self.n);
        if self.n - first <= 2 * self.calls + MIN_KEPT_ENTRIES {
            return Ok(false);
        }
        let sql = format!("{SELECT} WHERE n >= ? AND n <= ? ORDER BY n LIMIT ?");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let oldest = statement.query_map(
            params![first, self.n - MIN_KEPT_ENTRIES, TRIM_BATCH],
            ChainEntry::read,
        )?;
        let oldest = oldest.collect::<rusqlite::Result<Vec<ChainEntry>>>()?;
        let (Some(first), Some(end)) = (oldest.first(), oldest.last()) else {
            return Ok(false);
        };
        // The first entry was already carried forward by the previous trimming, which kept it as
        // its anchor. Only a `Begin` entry is not such an anchor.
        let skipped = usize::from(first.kind != Some(EntryKind::Begin));
        for entry in &oldest[skipped..] {
            self.carry_forward(entry)?;
        }
        self.append(EntryKind::Trimmed, end.n, 0, &end.hash)?;
        let sql = "DELETE FROM chain WHERE n < ?";
        self.connection.prepare_cached(sql)?.execute([end.n])?;
        Ok(true)
    }

    // The new entry keeps the old digest: a row that somebody changed or deleted must still fail
    // verification after its entry was trimmed.
    fn carry_forward(&mut self, entry: &ChainEntry) -> rusqlite::Result<()> {
        match entry.kind {
            Some(EntryKind::Uncovered) => self.append(EntryKind::Uncovered, entry.row, 0, &NO_HASH),
            Some(kind) if kind.is_call() => {
                let chained = entry_of_call(self.connection, entry.row)?;
                match chained {
                    // A later entry covers this call already.
                    Some(Some(later)) if later > entry.n => return Ok(()),
                    None if self.is_evicted(entry)? => return Ok(()),
                    Some(Some(same)) if same == entry.n => {
                        let sql = "UPDATE calls SET chained = ? WHERE seq = ?";
                        let mut update = self.connection.prepare_cached(sql)?;
                        update.execute(params![self.next(), entry.row])?;
                    }
                    _ => {}
                }
                self.append(EntryKind::Kept, entry.row, 0, &entry.digest)
            }
            _ => Ok(()),
        }
    }

    fn is_evicted(&self, entry: &ChainEntry) -> rusqlite::Result<bool> {
        let sql =
            // The first condition repeats that of the partial index, or SQLite wouldn't use it.
            "SELECT 1 FROM chain WHERE kind IN (3, 6) AND kind = 3 AND row = ? AND n > ? LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.exists([entry.row, entry.n])
    }
}

/// The number of the entry that a call's row refers to. The outer `None` means that
/// the call is gone.
pub(crate) fn entry_of_call(
    connection: &Connection,
    seq: i64,
) -> rusqlite::Result<Option<Option<i64>>> {
    let sql = "SELECT chained FROM calls WHERE seq = ?";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row([seq], |row| row.get(0)).optional()
}

/// Begins the chain unless it exists. It continues the numbers of the journal that was here before,
/// as far as the saved head shows them.
pub(crate) fn begin(connection: &Connection, database: &Path) -> rusqlite::Result<()> {
    let key = load_key(database)?;
    let mut chain = HashChain::resume(connection, key.as_ref())?;
    if chain.n > 0 {
        return Ok(());
    }
    let before = ChainHead::read(database);
    chain.n = before.as_ref().map_or(0, |before| before.n);
    let digest = before.as_ref().map_or(NO_HASH, |before| before.hash);
    chain.append(EntryKind::Begin, 0, 0, &digest)?;
    let calls = chain.append_uncovered()?;
    if calls > 0 {
        warn!(
            calls,
            "the journal's hash chain starts now; earlier calls aren't covered by it"
        );
    }
    Ok(())
}

/// Checks that the chain still has the entry that was saved as its last. If not, records that in
/// the chain, because the next entries would otherwise hide it.
pub(crate) fn check_head(connection: &mut Connection, database: &Path) -> rusqlite::Result<()> {
    // Read before the chain: entries written in between only make the chain longer.
    let Some(head) = ChainHead::read(database) else {
        return save_head(connection, database);
    };
    if head.is_in_chain(connection)? {
        return save_head(connection, database);
    }
    let key = load_key(database)?;
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let mut chain = HashChain::resume(&transaction, key.as_ref())?;
    // Beyond the old head, so that no number is used twice.
    let n = head.n.max(chain.n) + 1;
    let missing = n - chain.n - 1;
    warn!(
        entries = missing,
        head = %hex(&head.hash),
        "the newest entries of the journal's hash chain are missing or were replaced, so the newest calls may be missing; 'toolgate calls --verify' shows more"
    );
    chain.append_numbered(n, EntryKind::Lost, missing, 0, &head.hash)?;
    drop(chain);
    transaction.commit()?;
    save_head(connection, database)
}

pub(crate) fn save_head(connection: &Connection, database: &Path) -> rusqlite::Result<()> {
    if let Some(last) = last(connection)? {
        ChainHead {
            n: last.n,
            hash: last.hash,
        }
        .save(database);
    }
    Ok(())
}

pub(crate) fn load_key(database: &Path) -> rusqlite::Result<Option<ChainKey>> {
    ChainKey::load(database)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}
