//! One entry of the chain, as it stands in the table and in its hash.

use rusqlite::Row;
use rusqlite::types::{ToSqlOutput, ValueRef};

use super::NOTHING;
use crate::key::{Hash, Key, hash};

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

    /// True if it holds the digest of a call.
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

    /// In the order of the table's columns.
    pub(super) fn values(&self) -> [ToSqlOutput<'_>; 7] {
        let kind = self.kind.map(|kind| ValueRef::Integer(kind as i64));
        [
            ValueRef::Integer(self.n),
            kind.unwrap_or(ValueRef::Null),
            ValueRef::Integer(self.row),
            ValueRef::Integer(self.calls),
            self.key.map_or(ValueRef::Null, ValueRef::Integer),
            ValueRef::Blob(&self.digest),
            ValueRef::Blob(&self.hash),
        ]
        .map(ToSqlOutput::Borrowed)
    }
}
