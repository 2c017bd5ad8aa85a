//! `documents`: full-text search over folders of text and Markdown files.
//!
//! Each search first looks at the folders ([`scan`]), brings the index up to date with what changed ([`mod@update`]), then asks
//! it ([`mod@search`]). So whatever is on the disk is found by the very next search, and nothing has to watch the folders.

mod answer;
mod query;
mod scan;
mod search;
mod store;
mod text;
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

use self::answer::answer;
use self::query::Query;
use self::scan::{Scan, ScanLimits};
use self::search::search;
use self::store::Store;
use self::update::update;

const DEFAULT_RESULTS: usize = 5;
const MAX_RESULTS: usize = 50;

/// The section `documents` of the configuration.
///
/// ```
/// use toolgate_tools::internal::DocumentsSettings;
///
/// let settings: DocumentsSettings = serde_json::from_str(r#"{ "folders": ["notes"] }"#).unwrap();
/// assert_eq!(settings.folders.len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(description = "Full-text search over folders")]
pub struct DocumentsSettings {
    /// Folders to search, with all they contain.
    #[serde(default)]
    pub folders: Vec<PathBuf>,
    /// The file of the index; `None` keeps it in memory. Not for the configuration: the program knows its cache folder.
    #[serde(skip)]
    pub index: Option<PathBuf>,
}

/// Why a search was not possible.
///
/// ```
/// use toolgate_tools::internal::DocumentsError;
///
/// assert_eq!(DocumentsError::NoFolder.to_string(), "no folder is configured; set documents.folders in the configuration");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentsError {
    /// There is nothing to search.
    #[error("no folder is configured; set documents.folders in the configuration")]
    NoFolder,
    /// None of the configured folders can be entered.
    #[error("can not read {}; correct documents.folders in the configuration", folders(.0))]
    Missing(Vec<PathBuf>),
    /// The index failed, for example because the disk is full.
    #[error("the index of the documents can not be used")]
    Index(#[from] rusqlite::Error),
    /// The search was no longer wanted.
    #[error("the search was cancelled")]
    Cancelled,
}

/// Searches documents; the internal service [`NAME`](Self::NAME).
///
/// ```
/// use std::sync::Arc;
/// use toolgate_tools::internal::{Documents, DocumentsSettings};
/// use toolgate_tools::{Handlers, builtin::BuiltinSettings};
///
/// let mut settings = DocumentsSettings::default();
/// settings.folders.push("notes".into());
/// let mut handlers = Handlers::new(&BuiltinSettings::default());
/// handlers.add_service(Documents::NAME, Documents::parameters(), Arc::new(Documents::new(settings)));
/// ```
pub struct Documents {
    folders: Arc<[PathBuf]>,
    limits: ScanLimits,
    store: Arc<Mutex<Store>>,
}

/// Lets a blocking thread be told to stop, and tell how far it is.
struct Watch<'a> {
    cancelled: &'a dyn Fn() -> bool,
    report: &'a dyn Fn(usize, usize),
}

impl Watch<'_> {
    fn check(&self) -> Result<(), DocumentsError> {
        if (self.cancelled)() {
            Err(DocumentsError::Cancelled)
        } else {
            Ok(())
        }
    }

    #[cfg(test)]
    fn nobody() -> Self {
        Watch {
            cancelled: &|| false,
            report: &|_, _| {},
        }
    }
}

impl Documents {
    /// The name a definition refers to.
    pub const NAME: &'static str = "documents";

    /// Reads nothing yet: the index is opened by the first search or [`refresh`](Self::refresh).
    pub fn new(settings: DocumentsSettings) -> Self {
        Self {
            folders: settings.folders.into(),
            limits: ScanLimits::default(),
            store: Arc::new(Mutex::new(Store::new(settings.index))),
        }
    }

    /// The JSON Schema of the arguments.
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

    /// Brings the index up to date, so that the first search need not. Returns the number of files there are.
    pub async fn refresh(&self) -> Result<usize, DocumentsError> {
        self.blocking(
            || false,
            |_, _| {},
            |store, scan, watch| {
                store
                    .with(|connection| update(connection, scan, watch))
                    .map(|_| scan.files.len())
            },
        )
        .await
    }

    async fn answer(
        &self,
        query: Query,
        max_results: usize,
        cancelled: impl Fn() -> bool + Send + 'static,
        report: impl Fn(usize, usize) + Send + 'static,
    ) -> Result<Value, DocumentsError> {
        self.blocking(cancelled, report, move |store, scan, watch| {
            store.with(|connection| {
                let update = update(connection, scan, watch)?;
                let all = search(connection, scan, &query.all_words(), max_results)?;
                let (hits, only_some) = match query.any_word() {
                    Some(any_word) if all.total == 0 => {
                        (search(connection, scan, &any_word, max_results)?, true)
                    }
                    _ => (all, false),
                };
                Ok(answer(&hits, only_some, scan, &update))
            })
        })
        .await
    }

    /// Runs `work` on a thread that may block, one at a time, on a fresh scan. It is told to stop when the future is dropped.
    async fn blocking<T: Send + 'static>(
        &self,
        cancelled: impl Fn() -> bool + Send + 'static,
        report: impl Fn(usize, usize) + Send + 'static,
        work: impl FnOnce(&mut Store, &Scan, &Watch<'_>) -> Result<T, DocumentsError> + Send + 'static,
    ) -> Result<T, DocumentsError> {
        // Waiting here rather than in the thread: a caller that goes away leaves no thread behind.
        let mut store = Arc::clone(&self.store).lock_owned().await;
        let (folders, limits) = (Arc::clone(&self.folders), self.limits);
        let dropped = StopOnDrop::default();
        let stop = Arc::clone(&dropped.0);
        let task = tokio::task::spawn_blocking(move || {
            let cancelled = || stop.load(Ordering::Relaxed) || cancelled();
            let watch = Watch {
                cancelled: &cancelled,
                report: &report,
            };
            let scan = scan_all(&folders, limits, &watch)?;
            work(&mut store, &scan, &watch)
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
            let Asked { query, max_results } = arguments.parse()?;
            let query = Query::new(&query)
                .ok_or_else(|| ToolError::invalid("query", "must have a word to look for"))?;
            let (watched, heard) = (context.clone(), context.clone());
            let cancelled = move || watched.cancellation().is_cancelled();
            let report = move |done, total| heard.report(&progress(done, total));
            let answer = self.answer(query, max_results, cancelled, report).await;
            answer
                .map(ToolOutput::json)
                .map_err(|error| tool_error(error, context.tool_name()))
        })
    }
}

#[derive(Deserialize)]
struct Asked {
    query: String,
    #[serde(default = "default_results")]
    max_results: usize,
}

fn default_results() -> usize {
    DEFAULT_RESULTS
}

/// Sets its flag when it goes out of scope.
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
    watch: &Watch<'_>,
) -> Result<Scan, DocumentsError> {
    if folders.is_empty() {
        return Err(DocumentsError::NoFolder);
    }
    let scan = Scan::new(folders, limits, watch)?;
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
    }
}

fn folders(paths: &[PathBuf]) -> String {
    let noun = if paths.len() == 1 {
        "folder"
    } else {
        "folders"
    };
    let quoted: Vec<_> = paths
        .iter()
        .map(|path| format!("'{}'", text::display(path)))
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
