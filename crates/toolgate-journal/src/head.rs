//! The last entry of the chain, kept in a file beside the database: who deletes the newest calls there has to know of it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rusqlite::Connection;
use tracing::debug;

use crate::chain;
use crate::key::{Hash, hex};
use crate::store::suffixed;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) n: i64,
    pub(crate) hash: Hash,
}

impl Head {
    /// None if there is no such file, or nothing that makes sense in it.
    pub(crate) fn read(database: &Path) -> Option<Self> {
        let mut file = File::open(suffixed(database, ".head")).ok()?;
        file.lock_shared().ok()?;
        Self::read_from(&mut file)
    }

    fn read_from(file: &mut File) -> Option<Self> {
        let mut text = String::new();
        file.take(200).read_to_string(&mut text).ok()?;
        let (n, hash) = text.lines().next()?.split_once(' ')?;
        Some(Self {
            n: n.parse().ok()?,
            hash: parse_hash(hash)?,
        })
    }

    /// Writes it down, unless another process has come further. What fails is tried again after the next rows.
    pub(crate) fn keep(&self, database: &Path) {
        if let Err(error) = self.try_keep(database) {
            debug!(%error, "the head of the journal's chain cannot be kept");
        }
    }

    fn try_keep(&self, database: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(suffixed(database, ".head"))?;
        file.lock()?;
        if Self::read_from(&mut file).is_some_and(|kept| kept.n >= self.n) {
            return Ok(());
        }
        // Always as long as before: nobody ever sees half of it.
        let line = format!("{:020} {}\n", self.n, hex(&self.hash));
        file.write_all_at(line.as_bytes(), 0)
    }

    /// Whether the chain has this entry, or may have had it before it was trimmed.
    pub(crate) fn is_in(&self, connection: &Connection) -> rusqlite::Result<bool> {
        if let Some(entry) = chain::entry(connection, self.n)? {
            return Ok(entry.hash == self.hash);
        }
        let first: Option<i64> =
            connection.query_row("SELECT min(n) FROM chain", [], |row| row.get(0))?;
        Ok(first.is_some_and(|first| self.n < first))
    }
}

/// A hash as people write it down.
pub(crate) fn parse_hash(text: &str) -> Option<Hash> {
    let text = text.trim();
    let mut hash = Hash::default();
    if text.len() != 2 * hash.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (index, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(hash)
}
