//! A record of every tool call: what was asked, what was executed, what came of it, and when. Voice turns are kept beside them.
//!
//! ```text
//!  ToolExecutor ─ started, finished ─▶ JournalObserver ─ rows ─▶ Queue ─▶ Writer, a thread ─▶ journal.db
//!                                            │ one append              ▲ what a killed process left │
//!                                            └───────▶ Spool ──────────┘      Reader, RecentCalls ◀─┘
//! ```
//!
//! Start reading in `journal.rs`; `columns.rs` and `row.rs` say what is kept, `store.rs` and `spool.rs` how. A call survives the end of the process
//! once its row is in the spool: the start before the tool is invoked, the end before the answer leaves. A journal that can not
//! be written costs one line in the log, never a call, but for those that must not happen unrecorded (`witness.rs`).
//!
//! ```
//! use std::sync::Arc;
//! use serde_json::json;
//! use toolgate_core::{Redactor, ToolCall, ToolExecutor, ToolManager};
//! use toolgate_journal::{Filter, Journal, JournalSettings};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let file = folder.path().join("journal.db");
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let journal = Journal::open(&file, &JournalSettings::default(), Redactor::default(), "doc")?;
//! let executor = ToolExecutor::builder(Arc::new(ToolManager::new())).observer(journal.observer()).build();
//! executor.execute(ToolCall::new("nope", json!({ "a": 1 }))).await;
//!
//! let calls = journal.reader().calls(&Filter::default())?;
//! assert_eq!((calls[0].outcome.as_str(), &calls[0].arguments), ("not_found", &json!({ "a": 1 })));
//! journal.close().await;
//! # Ok::<_, toolgate_journal::JournalError>(())
//! # }).unwrap();
//! ```

mod backlog;
mod batch;
mod chain;
mod columns;
mod detail;
mod digest;
mod error;
mod evict;
mod export;
mod fields;
mod filter;
mod foreign;
mod forward;
mod head;
mod health;
mod identity;
mod journal;
mod key;
mod line;
mod observer;
mod opening;
mod place;
mod queue;
mod reader;
mod recent;
mod recover;
mod row;
mod runs;
mod settings;
mod spool;
mod store;
mod summary;
mod takeover;
mod tidier;
mod time;
mod turn;
mod turns;
mod upkeep;
mod verify;
mod wal;
mod witness;
mod writer;

pub use detail::{ApprovalInfo, CallDetail, RunInfo, StepTimes};
pub use error::JournalError;
pub use export::ExportSummary;
pub use filter::{Filter, OUTCOMES, is_called_by};
pub use forward::Forward;
pub use health::JournalHealth;
pub use journal::Journal;
pub use observer::JournalObserver;
pub use reader::{Position, Reader};
pub use recent::RecentCalls;
pub use settings::{JournalSettings, Patience, Require, Sync};
pub use summary::CallSummary;
pub use turn::{TurnOutcome, TurnStages, VoiceTurn};
pub use verify::{ChainFinding, ChainProblem, Verification, VerifyOptions};
pub use witness::NoJournal;
