//! `documents`: full-text search over folders of text and Markdown files.
//!
//! Each search scans the folders ([`scan`]), updates the index with what changed
//! ([`mod@update`]), then queries it ([`mod@search`]). So every search sees the current files,
//! and nothing has to watch the folders.

mod answer;
mod index_store;
mod page_text;
mod query;
mod scan;
mod search;
mod update;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use toolgate_core::{
    CallContext, Handler, Progress, ToolError, ToolFuture, ToolOutput, ValidArguments,
};

use self::answer::format_answer;
use self::index_store::IndexStore;
use self::query::DocumentQuery;
use self::scan::{FolderScan, ScanLimits};
use self::search::search;
use self::update::update;

const DEFAULT_RESULTS: usize = 5;
const MAX_RESULTS: usize = 50;

/// The section `documents` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(description = "Full-text search over folders")]
pub struct DocumentsSettings {
    /// Folders to search, with all they contain.
    #[serde(default)]
    pub folders: Vec<PathBuf>,
    /// The index file; `None` keeps the index in memory. It can't be configured, because the
    /// program knows its cache folder.
    #[serde(skip)]
    pub index: Option<PathBuf>,
}

/// Why a search or an update of the index failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentsError {
    #[error("no folder is configured; set documents.folders in the configuration")]
    NoFolder,
    #[error("can't read {}; correct documents.folders in the configuration", describe_folders(.0))]
    Missing(Vec<PathBuf>),
    #[error("the document index can't be used")]
    Index(#[from] rusqlite::Error),
    #[error("the search was cancelled")]
    Cancelled,
}

/// The internal service [`documents`](Self::NAME): full-text search over folders.
pub struct Documents {
    folders: Arc<[PathBuf]>,
    limits: ScanLimits,
    store: Arc<Mutex<IndexStore>>,
}

/// Lets a blocking thread check for cancellation and report progress.
struct TaskControl<'a> {
    cancelled: &'a dyn Fn() -> bool,
    report: &'a dyn Fn(usize, usize),
}

impl TaskControl<'_> {
    fn check(&self) -> Result<(), DocumentsError> {
        if (self.cancelled)() {
            Err(DocumentsError::Cancelled)
        } else {
            Ok(())
        }
    }

    #[cfg(test)]
    fn detached() -> Self {
        TaskControl {
            cancelled: &|| false,
            report: &|_, _| {},
        }
    }
}

impl Documents {
    /// The name that definitions refer to.
    pub const NAME: &'static str = "documents";

    /// Doesn't read anything yet: the first search or [`refresh`](Self::refresh) opens the index.
    pub fn new(settings: DocumentsSettings) -> Self {
        Self {
            folders: settings.folders.into(),
            limits: ScanLimits::default(),
            store: Arc::new(Mutex::new(IndexStore::new(settings.index))),
        }
    }

    /// The JSON Schema of the service's arguments.
    pub fn parameters() -> Value {
        json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "Words to look for, in any order. No operators are needed." },
                "max_results": {
                    "type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "default": DEFAULT_RESULTS,
                    "description": "How many documents to return at most"
                }
            },
            "required": ["query"]
        })
    }

    /// Updates the index, so that the first search doesn't have to. Returns the number of files.
    pub async fn refresh(&self) -> Result<usize, DocumentsError> {
        let work = |store: &mut IndexStore, scan: &FolderScan, control: &TaskControl<'_>| {
            store.with(|connection| update(connection, scan, control))?;
            Ok(scan.files.len())
        };
        self.run_blocking(|| false, |_, _| {}, work).await
    }

    async fn answer(
        &self,
        query: DocumentQuery,
        max_results: usize,
        cancelled: impl Fn() -> bool + Send + 'static,
        report: impl Fn(usize, usize) + Send + 'static,
    ) -> Result<Value, DocumentsError> {
        self.run_blocking(cancelled, report, move |store, scan, control| {
            store.with(|connection| {
                let update = update(connection, scan, control)?;
                let all = search(connection, scan, &query.all_words(), max_results)?;
                let (hits, only_some) = match query.any_word() {
                    Some(any_word) if all.total == 0 => {
                        (search(connection, scan, &any_word, max_results)?, true)
                    }
                    _ => (all, false),
                };
                Ok(format_answer(&hits, only_some, scan, &update))
            })
        })
        .await
    }

    /// Scans the folders and runs `work` on a blocking thread, one call at a time. Dropping
    /// the future stops it.
    async fn run_blocking<T: Send + 'static>(
        &self,
        cancelled: impl Fn() -> bool + Send + 'static,
        report: impl Fn(usize, usize) + Send + 'static,
        work: impl FnOnce(&mut IndexStore, &FolderScan, &TaskControl<'_>) -> Result<T, DocumentsError>
        + Send
        + 'static,
    ) -> Result<T, DocumentsError> {
        // Waits here rather than on the thread, so that a cancelled call doesn't leave a waiting
        // thread behind.
        let mut store = Arc::clone(&self.store).lock_owned().await;
        let (folders, limits) = (Arc::clone(&self.folders), self.limits);
        let dropped = StopOnDrop::default();
        let stop = Arc::clone(&dropped.0);
        let task = tokio::task::spawn_blocking(move || {
            let cancelled = || stop.load(Ordering::Relaxed) || cancelled();
            let control = TaskControl {
                cancelled: &cancelled,
                report: &report,
            };
            let scan = scan_all(&folders, limits, &control)?;
            work(&mut store, &scan, &control)
        });
        match task.await {
            Ok(result) => result,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(DocumentsError::Cancelled),
        }
    }
}

impl Handler for Documents {
    fn call<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let DocumentArguments { query, max_results } = arguments.parse()?;
            let query = DocumentQuery::new(&query)
                .ok_or_else(|| ToolError::invalid("query", "must contain at least one word"))?;
            let (cancelled_by, reporter) = (context.clone(), context.clone());
            let cancelled = move || cancelled_by.cancellation().is_cancelled();
            let report = move |done, total| reporter.report(&progress(done, total));
            let answer = self.answer(query, max_results, cancelled, report).await;
            answer
                .map(ToolOutput::json)
                .map_err(|error| tool_error(error, context.tool_name()))
        })
    }
}

#[derive(Deserialize)]
struct DocumentArguments {
    query: String,
    #[serde(default = "default_results")]
    max_results: usize,
}

fn default_results() -> usize {
    DEFAULT_RESULTS
}

#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn scan_all(
    folders: &[PathBuf],
    limits: ScanLimits,
    control: &TaskControl<'_>,
) -> Result<FolderScan, DocumentsError> {
    if folders.is_empty() {
        return Err(DocumentsError::NoFolder);
    }
    let scan = FolderScan::new(folders, limits, control)?;
    if scan.folders.is_empty() {
        Err(DocumentsError::Missing(scan.missing))
    } else {
        Ok(scan)
    }
}

fn progress(done: usize, total: usize) -> Progress {
    let message = Some(format!("indexing documents: {done} of {total}"));
    Progress {
        done: done as f64,
        total: Some(total as f64),
        message,
        meta: None,
    }
}

fn describe_folders(paths: &[PathBuf]) -> String {
    let noun = if paths.len() == 1 {
        "folder"
    } else {
        "folders"
    };
    let quoted: Vec<_> = paths
        .iter()
        .map(|path| format!("'{}'", page_text::display(path)))
        .collect();
    format!("{noun} {}", quoted.join(", "))
}

fn tool_error(error: DocumentsError, tool: &str) -> ToolError {
    match error {
        DocumentsError::Cancelled => ToolError::Cancelled {
            tool: tool.to_owned(),
        },
        DocumentsError::Index(cause) => {
            let details = cause.to_string();
            ToolError::unavailable(tool, DocumentsError::Index(cause).to_string())
                .with_details(details)
        }
        error => ToolError::unavailable(tool, error.to_string()),
    }
}

#[cfg(test)]
mod tests;
