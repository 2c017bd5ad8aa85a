//! The number and hash of the chain's last entry, saved in a file beside the database so that the
//! deletion of the newest calls is detected.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rusqlite::Connection;
use tracing::debug;

use crate::chain;
use crate::key::{ChainHash, hex};
use crate::store::{private_file, suffixed};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChainHead {
    pub(crate) n: i64,
    pub(crate) hash: ChainHash,
}

impl ChainHead {
    /// `None` if the file is missing or can't be parsed.
    pub(crate) fn read(database: &Path) -> Option<Self> {
        let mut file = File::open(suffixed(database, ".head")).ok()?;
        // A writer holds the lock exclusively, so no half-written line is read.
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

    /// Saves the head, unless another process has saved a later one. A failure is only logged,
    /// because the next batch saves a newer head anyway.
    pub(crate) fn save(&self, database: &Path) {
        if let Err(error) = self.try_save(database) {
            debug!(%error, "the head of the journal's chain can't be saved");
        }
    }

    fn try_save(&self, database: &Path) -> io::Result<()> {
        let mut file = private_file()
            .read(true)
            .write(true)
            .create(true)
            .open(suffixed(database, ".head"))?;
        file.lock()?;
        if Self::read_from(&mut file).is_some_and(|kept| kept.n >= self.n) {
            return Ok(());
        }
        // Fixed width, so that no reader sees half of it.
        let line = format!("{:020} {}\n", self.n, hex(&self.hash));
        file.write_all_at(line.as_bytes(), 0)
    }

    /// Whether the chain has this entry, or may have had it before it was trimmed.
    pub(crate) fn is_in_chain(&self, connection: &Connection) -> rusqlite::Result<bool> {
        if let Some(entry) = chain::entry(connection, self.n)? {
            return Ok(entry.hash == self.hash);
        }
        Ok(chain::first(connection)?.is_some_and(|first| self.n < first))
    }
}

pub(crate) fn parse_hash(text: &str) -> Option<ChainHash> {
    let text = text.trim();
    let mut hash = ChainHash::default();
    if text.len() != 2 * hash.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (index, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(hash)
}
