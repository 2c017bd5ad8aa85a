//! Updates the index: adds files that are new or changed, and removes deleted ones.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use tracing::{debug, info};

use super::page_text::{self, PageText};
use super::scan::{FileStamp, FolderScan, ScannedFile, nanos_since_1970};
use super::{DocumentsError, TaskControl};

// Each batch is one transaction. Other processes wait for it, and its files are kept in memory.
const BATCH_FILES: usize = 256;
const BATCH_BYTES: u64 = 16 << 20;
// The coarsest resolution of file timestamps. A file younger than this could change again and keep
// its timestamp.
const CLOCK_STEP: Duration = Duration::from_secs(2);
// How often the use of a folder is recorded, and when an unused one is removed, in seconds.
const RECORD_USE_AFTER: i64 = 24 * 3600;
const REMOVE_UNUSED_AFTER: i64 = 30 * 24 * 3600;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct IndexUpdate {
    /// Files read because they were new, changed, or too young to tell.
    pub(super) read: usize,
    /// Files whose text was replaced in the index.
    pub(super) written: usize,
    pub(super) removed: usize,
    pub(super) binary: usize,
    pub(super) unreadable: usize,
}

struct IndexedFile {
    id: i64,
    folder: i64,
    // `None` if the file was too young to trust its timestamp.
    stamp: Option<FileStamp>,
    is_text: bool,
}

struct FreshFile<'a> {
    key: &'a [u8],
    found: &'a ScannedFile,
    stamp: FileStamp,
    // False if the file could still change without a new timestamp.
    is_settled: bool,
    /// `None` for a binary file.
    page: Option<PageText>,
}

type StaleFile<'a> = (&'a Vec<u8>, &'a ScannedFile);

/// Makes the index match the scan. Each batch is kept even if a later one is cancelled.
pub(super) fn update(
    connection: &mut Connection,
    scan: &FolderScan,
    control: &TaskControl<'_>,
) -> Result<IndexUpdate, DocumentsError> {
    let folders = folder_ids(connection, scan)?;
    let known = known_files(connection)?;
    let mut update = IndexUpdate {
        removed: remove_deleted(connection, scan, &folders, &known)?,
        ..IndexUpdate::default()
    };

    let is_current = |(key, found): &StaleFile<'_>| {
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
        (batch, rest) = read_batch(rest, control, &mut update)?;
        write_batch(connection, &batch, scan, &folders, &mut update)?;
        (control.report)(stale.len() - rest.len(), stale.len());
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

// Writes only if a folder is new or its use is due to be recorded, because writers
// wait for each other.
fn folder_ids(connection: &mut Connection, scan: &FolderScan) -> Result<Vec<i64>, DocumentsError> {
    let now = nanos_since_1970(SystemTime::now()) / 1_000_000_000;
    let mut ids = Vec::with_capacity(scan.folders.len());
    for folder in &scan.folders {
        let path = folder.as_os_str().as_encoded_bytes();
        let mut statement =
            connection.prepare_cached("SELECT id FROM folders WHERE path = ?1 AND used > ?2")?;
        let id = statement
            .query_row(params![path, now - RECORD_USE_AFTER], |row| row.get(0))
            .optional()?;
        drop(statement);
        ids.push(match id {
            Some(id) => id,
            None => record_use(connection, path, now)?,
        });
    }
    Ok(ids)
}

// Also removes folders that haven't been used for a month.
fn record_use(connection: &mut Connection, folder: &[u8], now: i64) -> Result<i64, DocumentsError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let id = transaction.query_row(
        "INSERT INTO folders (path, used) VALUES (?1, ?2) ON CONFLICT (path) DO UPDATE SET used = ?2 RETURNING id",
        params![folder, now],
        |row| row.get(0),
    )?;
    let unused = "SELECT id FROM folders WHERE used < ?1";
    for removal in [
        format!(
            "DELETE FROM pages WHERE rowid IN (SELECT id FROM files WHERE folder IN ({unused}))"
        ),
        format!("DELETE FROM files WHERE folder IN ({unused})"),
        "DELETE FROM folders WHERE used < ?1".to_owned(),
    ] {
        transaction.execute(&removal, [now - REMOVE_UNUSED_AFTER])?;
    }
    transaction.commit()?;
    Ok(id)
}

fn known_files(connection: &Connection) -> Result<HashMap<Vec<u8>, IndexedFile>, DocumentsError> {
    let mut statement =
        connection.prepare_cached("SELECT path, id, folder, modified, size, is_text FROM files")?;
    let rows = statement.query_map([], |row| {
        let (modified, size): (Option<i64>, i64) = (row.get(3)?, row.get(4)?);
        let stamp = modified.map(|modified| FileStamp {
            modified,
            size: size.unsigned_abs(),
        });
        Ok((
            row.get(0)?,
            IndexedFile {
                id: row.get(1)?,
                folder: row.get(2)?,
                stamp,
                is_text: row.get(5)?,
            },
        ))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

// Leaves folders alone that other processes keep in the same index, and missing ones.
fn remove_deleted(
    connection: &mut Connection,
    scan: &FolderScan,
    folders: &[i64],
    known: &HashMap<Vec<u8>, IndexedFile>,
) -> Result<usize, DocumentsError> {
    let is_gone = |key: &Vec<u8>, known: &IndexedFile| {
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

// Reads before the transaction begins, so that a slow disk doesn't delay other
// processes. Returns the rest.
fn read_batch<'a, 'b>(
    stale: &'b [StaleFile<'a>],
    control: &TaskControl<'_>,
    update: &mut IndexUpdate,
) -> Result<(Vec<FreshFile<'a>>, &'b [StaleFile<'a>]), DocumentsError> {
    let (mut batch, mut bytes, mut taken) = (Vec::new(), 0, 0);
    for &(key, found) in stale.iter().take(BATCH_FILES) {
        if bytes >= BATCH_BYTES {
            break;
        }
        control.check()?;
        taken += 1;
        match read_file(key, found) {
            Ok(fresh) => {
                bytes += fresh.stamp.size;
                batch.push(fresh);
            }
            Err(error) => {
                debug!(file = %found.path.display(), %error, "can't read document");
                update.unreadable += 1;
            }
        }
    }
    update.read += batch.len();
    Ok((batch, &stale[taken..]))
}

fn read_file<'a>(key: &'a [u8], found: &'a ScannedFile) -> io::Result<FreshFile<'a>> {
    let file = File::open(&found.path)?;
    // Read before the content: if the file changes meanwhile, the next scan sees another timestamp.
    let metadata = file.metadata()?;
    let stamp = FileStamp::from_metadata(&metadata);
    let age = SystemTime::now()
        .duration_since(metadata.modified()?)
        .unwrap_or_default();
    let mut bytes = Vec::new();
    // Reads no more than the size in the scan, which is within the limit. A file that has grown
    // since is read again next time.
    file.take(found.stamp.size).read_to_end(&mut bytes)?;
    let is_settled = age > CLOCK_STEP && stamp == found.stamp;
    Ok(FreshFile {
        key,
        found,
        stamp,
        is_settled,
        page: PageText::new(&found.path, &bytes),
    })
}

fn write_batch(
    connection: &mut Connection,
    batch: &[FreshFile<'_>],
    scan: &FolderScan,
    folders: &[i64],
    update: &mut IndexUpdate,
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
        if write_page(&transaction, id, page, &relative_path(fresh, scan))? {
            update.written += 1;
        }
    }
    Ok(transaction.commit()?)
}

fn write_file(
    transaction: &Transaction<'_>,
    fresh: &FreshFile<'_>,
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

/// Returns false if the index already has the same text, because only the file's timestamp changed,
/// or another process was faster.
fn write_page(
    transaction: &Transaction<'_>,
    id: i64,
    page: &PageText,
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

/// The path within its folder, whose words are searched too.
fn relative_path(fresh: &FreshFile<'_>, scan: &FolderScan) -> String {
    let path: &Path = &fresh.found.path;
    page_text::display(
        path.strip_prefix(&scan.folders[fresh.found.folder])
            .unwrap_or(path),
    )
}
