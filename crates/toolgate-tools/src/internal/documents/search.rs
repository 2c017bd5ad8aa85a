//! Queries the index for the best documents, with a snippet of each.

use rusqlite::{Connection, OptionalExtension, params};

use super::DocumentsError;
use super::page_text::{self, HIT_END, HIT_START};
use super::scan::FolderScan;

// FTS5's own ranking, where lower is better. A hit in the title or path counts more than one in the
// text.
const RANK: &str = "bm25(pages, 5.0, 2.0, 1.0)";
const SNIPPET_WORDS: u32 = 32;

#[derive(Debug, Default)]
pub(super) struct DocumentHits {
    pub(super) best: Vec<DocumentHit>,
    pub(super) total: usize,
}

#[derive(Debug)]
pub(super) struct DocumentHit {
    pub(super) file: String,
    pub(super) title: String,
    pub(super) snippet: String,
    /// 1 for the best document of this search, less for the others.
    pub(super) score: f64,
}

// The index may also hold documents of another process, or of a folder that is missing now, so only
// those of the scan count.
pub(super) fn search(
    connection: &Connection,
    scan: &FolderScan,
    expression: &str,
    max_results: usize,
) -> Result<DocumentHits, DocumentsError> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT files.path, pages.rowid, {RANK} AS score FROM pages JOIN files ON files.id = pages.rowid
         WHERE pages MATCH ?1 ORDER BY score, files.path"
    ))?;
    let mut rows = statement.query([expression])?;
    let mut hits = DocumentHits::default();
    let mut best_rank = None;
    while let Some(row) = rows.next()? {
        let key: Vec<u8> = row.get(0)?;
        let Some(found) = scan.files.get(&key) else {
            continue;
        };
        hits.total += 1;
        if hits.best.len() == max_results {
            continue;
        }
        let (id, rank): (i64, f64) = (row.get(1)?, row.get(2)?);
        if let Some((title, snippet)) = read_snippet(connection, id, expression)? {
            let score = rank / *best_rank.get_or_insert(rank);
            hits.best.push(DocumentHit {
                file: page_text::display(&found.path),
                title,
                snippet,
                score: round_score(score),
            });
        }
    }
    Ok(hits)
}

// Only for documents that are shown, because making a snippet reads the whole text.
fn read_snippet(
    connection: &Connection,
    id: i64,
    expression: &str,
) -> Result<Option<(String, String)>, DocumentsError> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT title, snippet(pages, 2, '{HIT_START}', '{HIT_END}', '…', {SNIPPET_WORDS}) FROM pages WHERE pages MATCH ?1 AND rowid = ?2"
    ))?;
    let row = statement
        .query_row(params![expression, id], |row| {
            Ok((row.get(0)?, row.get::<_, String>(1)?))
        })
        .optional()?;
    Ok(row.map(|(title, marked)| (title, page_text::snippet(&marked))))
}

// Fewer digits, because a model reads them.
fn round_score(score: f64) -> f64 {
    if score.is_finite() {
        (score * 1000.0).round() / 1000.0
    } else {
        1.0
    }
}
