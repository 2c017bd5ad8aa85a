//! Formats the result of a search as JSON.

use serde_json::{Value, json};

use super::describe_folders;
use super::scan::FolderScan;
use super::search::{DocumentHit, DocumentHits};
use super::update::IndexUpdate;

/// `only_some` means that no document has all of the words.
pub(super) fn format_answer(
    hits: &DocumentHits,
    only_some: bool,
    scan: &FolderScan,
    update: &IndexUpdate,
) -> Value {
    let result = |hit: &DocumentHit| json!({ "file": hit.file, "title": hit.title, "snippet": hit.snippet, "score": hit.score });
    let mut answer = json!({
        "results": hits.best.iter().map(result).collect::<Vec<_>>(),
        "total": hits.total,
        "files_searched": scan.files.len() - update.binary - update.unreadable,
    });
    let notes = limitation_notes(hits, only_some, scan, update);
    if !notes.is_empty() {
        answer["notes"] = json!(notes);
    }
    answer
}

// Without these notes, a partial search would look complete.
fn limitation_notes(
    hits: &DocumentHits,
    only_some: bool,
    scan: &FolderScan,
    update: &IndexUpdate,
) -> Vec<String> {
    let mut notes = Vec::new();
    if only_some && hits.total > 0 {
        notes.push("No document has all of the words; these have some of them.".to_owned());
    }
    if !scan.missing.is_empty() {
        notes.push(format!(
            "Not searched: can't read {}.",
            describe_folders(&scan.missing)
        ));
    }
    if scan.incomplete {
        notes.push(
            "Not searched: files beyond the limit on number, depth or total size.".to_owned(),
        );
    }
    for (count, why) in [
        (scan.too_large, "too large"),
        (update.binary, "binary"),
        (update.unreadable, "not readable"),
    ] {
        if count > 0 {
            notes.push(format!(
                "Not searched: {count} {} ({why}).",
                if count == 1 { "file" } else { "files" }
            ));
        }
    }
    notes
}
