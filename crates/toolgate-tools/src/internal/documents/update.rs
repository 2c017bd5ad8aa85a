//! Brings the index up to what is on the disk: reads what is new or changed, drops what is gone.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use tracing::{debug, info};

use super::scan::{Found, Scan, Stamp, nanos_since_1970};
use super::text::{self, Page};
use super::{DocumentsError, Watch};

/// A batch is written in one transaction, which other processes wait for, and is in memory until then.
const BATCH_FILES: usize = 256;
const BATCH_BYTES: u64 = 16 << 20;
/// The coarsest clock of a file system. A file younger than this could change again without a new time.
const CLOCK_STEP: Duration = Duration::from_secs(2);
/// Seconds after which the use of a folder is noted again, and after which one is forgotten that nobody uses.
const NOTE_USE_AFTER: i64 = 24 * 3600;
const FORGET_AFTER: i64 = 30 * 24 * 3600;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Update {
    /// Files read because they were new or changed, or too young to tell.
    pub(super) read: usize,
    /// Files whose text in the index was replaced.
    pub(super) written: usize,
    /// Files that are gone.
    pub(super) removed: usize,
    /// Files that hold no text.
    pub(super) binary: usize,
    /// Files that could not be read.
    pub(super) unreadable: usize,
}

/// A file as the index knows it.
struct Known {
    id: i64,
    folder: i64,
    /// `None` if the file was too young to be sure of its time.
    stamp: Option<Stamp>,
    is_text: bool,
}

struct Fresh<'a> {
    key: &'a [u8],
    found: &'a Found,
    stamp: Stamp,
    /// False if the file could change without a new time.
    is_settled: bool,
    /// `None` for a binary file.
    page: Option<Page>,
}

type Stale<'a> = (&'a Vec<u8>, &'a Found);

/// Makes the index hold exactly the files of the scan, in steps that are each kept if a later one is cancelled.
pub(super) fn update(
    connection: &mut Connection,
    scan: &Scan,
    watch: &Watch<'_>,
) -> Result<Update, DocumentsError> {
    let folders = folder_ids(connection, scan)?;
    let known = known_files(connection)?;
    let mut update = Update {
        removed: remove_gone(connection, scan, &folders, &known)?,
        ..Update::default()
    };

    let is_current = |(key, found): &Stale<'_>| {
        known
            .get(*key)
            .is_some_and(|known| known.stamp == Some(found.stamp))
    };
    let (current, stale): (Vec<_>, Vec<_>) = scan.files.iter().partition(is_current);
    update.binary = current
        .iter()
        .filter(|(key, _)| known.get(*key).is_some_and(|known| !known.is_text))
        .count();

    let mut rest = stale.as_slice();
    while !rest.is_empty() {
        let batch;
        (batch, rest) = read_batch(rest, watch, &mut update)?;
        write_batch(connection, &batch, scan, &folders, &mut update)?;
        (watch.report)(stale.len() - rest.len(), stale.len());
    }
    if update.written + update.removed > 0 {
        info!(
            files = scan.files.len(),
            written = update.written,
            removed = update.removed,
            "documents indexed"
        );
    }
    Ok(update)
}

/// The ids of the scan's folders, in its order. Writes nothing as long as they are known and noted as used.
fn folder_ids(connection: &mut Connection, scan: &Scan) -> Result<Vec<i64>, DocumentsError> {
    let now = nanos_since_1970(SystemTime::now()) / 1_000_000_000;
    let mut ids = Vec::with_capacity(scan.folders.len());
    for folder in &scan.folders {
        let path = folder.as_os_str().as_encoded_bytes();
        let mut noted =
            connection.prepare_cached("SELECT id FROM folders WHERE path = ?1 AND used > ?2")?;
        let id = noted
            .query_row(params![path, now - NOTE_USE_AFTER], |row| row.get(0))
            .optional()?;
        drop(noted);
        ids.push(match id {
            Some(id) => id,
            None => note_use(connection, path, now)?,
        });
    }
    Ok(ids)
}

/// Also the moment to forget folders that left the configuration long ago.
fn note_use(connection: &mut Connection, folder: &[u8], now: i64) -> Result<i64, DocumentsError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let id = transaction.query_row(
        "INSERT INTO folders (path, used) VALUES (?1, ?2) ON CONFLICT (path) DO UPDATE SET used = ?2 RETURNING id",
        params![folder, now],
        |row| row.get(0),
    )?;
    let unused = "SELECT id FROM folders WHERE used < ?1";
    for forget in [
        format!(
            "DELETE FROM pages WHERE rowid IN (SELECT id FROM files WHERE folder IN ({unused}))"
        ),
        format!("DELETE FROM files WHERE folder IN ({unused})"),
        "DELETE FROM folders WHERE used < ?1".to_owned(),
    ] {
        transaction.execute(&forget, [now - FORGET_AFTER])?;
    }
    transaction.commit()?;
    Ok(id)
}

fn known_files(connection: &Connection) -> Result<HashMap<Vec<u8>, Known>, DocumentsError> {
    let mut statement =
        connection.prepare_cached("SELECT path, id, folder, modified, size, is_text FROM files")?;
    let rows = statement.query_map([], |row| {
        let (modified, size): (Option<i64>, i64) = (row.get(3)?, row.get(4)?);
        let stamp = modified.map(|modified| Stamp {
            modified,
            size: size.unsigned_abs(),
        });
        Ok((
            row.get(0)?,
            Known {
                id: row.get(1)?,
                folder: row.get(2)?,
                stamp,
                is_text: row.get(5)?,
            },
        ))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Another process may keep folders of its own in the same index: those are not ours to judge, nor are missing ones.
fn remove_gone(
    connection: &mut Connection,
    scan: &Scan,
    folders: &[i64],
    known: &HashMap<Vec<u8>, Known>,
) -> Result<usize, DocumentsError> {
    let is_gone = |key: &Vec<u8>, known: &Known| {
        folders.contains(&known.folder) && !scan.files.contains_key(key)
    };
    let gone: Vec<i64> = known
        .iter()
        .filter(|(key, known)| is_gone(key, known))
        .map(|(_, known)| known.id)
        .collect();
    if gone.is_empty() {
        return Ok(0);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for id in &gone {
        transaction
            .prepare_cached("DELETE FROM pages WHERE rowid = ?1")?
            .execute([id])?;
        transaction
            .prepare_cached("DELETE FROM files WHERE id = ?1")?
            .execute([id])?;
    }
    transaction.commit()?;
    Ok(gone.len())
}

/// Reads the next files before the transaction begins, so that a slow disk holds up no other process. Returns the rest.
fn read_batch<'a, 'b>(
    stale: &'b [Stale<'a>],
    watch: &Watch<'_>,
    update: &mut Update,
) -> Result<(Vec<Fresh<'a>>, &'b [Stale<'a>]), DocumentsError> {
    let (mut batch, mut bytes, mut taken) = (Vec::new(), 0, 0);
    for &(key, found) in stale.iter().take(BATCH_FILES) {
        if bytes >= BATCH_BYTES {
            break;
        }
        watch.check()?;
        taken += 1;
        match read(key, found) {
            Ok(fresh) => {
                bytes += fresh.stamp.size;
                batch.push(fresh);
            }
            Err(error) => {
                debug!(file = %found.path.display(), %error, "document can not be read");
                update.unreadable += 1;
            }
        }
    }
    update.read += batch.len();
    Ok((batch, &stale[taken..]))
}

fn read<'a>(key: &'a [u8], found: &'a Found) -> io::Result<Fresh<'a>> {
    let file = File::open(&found.path)?;
    // The time from before reading: if the file changes meanwhile, the next scan sees another one.
    let metadata = file.metadata()?;
    let stamp = Stamp::of(&metadata);
    let age = SystemTime::now()
        .duration_since(metadata.modified()?)
        .unwrap_or_default();
    let mut bytes = Vec::new();
    // Not past the size of the scan, which is within the limit; a file that has grown since is read again next time.
    file.take(found.stamp.size).read_to_end(&mut bytes)?;
    let is_settled = age > CLOCK_STEP && stamp == found.stamp;
    Ok(Fresh {
        key,
        found,
        stamp,
        is_settled,
        page: Page::new(&found.path, &bytes),
    })
}

fn write_batch(
    connection: &mut Connection,
    batch: &[Fresh<'_>],
    scan: &Scan,
    folders: &[i64],
    update: &mut Update,
) -> Result<(), DocumentsError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for fresh in batch {
        let id = write_file(&transaction, fresh, folders[fresh.found.folder])?;
        let Some(page) = &fresh.page else {
            update.binary += 1;
            transaction
                .prepare_cached("DELETE FROM pages WHERE rowid = ?1")?
                .execute([id])?;
            continue;
        };
        if write_page(&transaction, id, page, &relative(fresh, scan))? {
            update.written += 1;
        }
    }
    Ok(transaction.commit()?)
}

fn write_file(
    transaction: &Transaction<'_>,
    fresh: &Fresh<'_>,
    folder: i64,
) -> Result<i64, rusqlite::Error> {
    let modified = fresh.is_settled.then_some(fresh.stamp.modified);
    let size = i64::try_from(fresh.stamp.size).unwrap_or(i64::MAX);
    let mut statement = transaction.prepare_cached(
        "INSERT INTO files (path, folder, modified, size, is_text) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (path) DO UPDATE SET folder = ?2, modified = ?3, size = ?4, is_text = ?5 RETURNING id",
    )?;
    statement.query_row(
        params![fresh.key, folder, modified, size, fresh.page.is_some()],
        |row| row.get(0),
    )
}

/// False if the index holds this very text already: the file was only touched, or another process was quicker.
fn write_page(
    transaction: &Transaction<'_>,
    id: i64,
    page: &Page,
    path: &str,
) -> Result<bool, rusqlite::Error> {
    let mut same = transaction.prepare_cached(
        "SELECT 1 FROM pages WHERE rowid = ?1 AND title = ?2 AND path = ?3 AND body = ?4",
    )?;
    if same.exists(params![id, page.title, path, page.body])? {
        return Ok(false);
    }
    let mut replace = transaction
        .prepare_cached("REPLACE INTO pages (rowid, title, path, body) VALUES (?1, ?2, ?3, ?4)")?;
    replace.execute(params![id, page.title, path, page.body])?;
    Ok(true)
}

/// The path within its folder: its words are searched too.
fn relative(fresh: &Fresh<'_>, scan: &Scan) -> String {
    let path: &Path = &fresh.found.path;
    text::display(
        path.strip_prefix(&scan.folders[fresh.found.folder])
            .unwrap_or(path),
    )
}
