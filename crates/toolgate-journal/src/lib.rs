//! A record of every tool call: what was requested, what was executed, the result, and when. Voice
//! turns are kept beside them.
//!
//! ```text
//!  ToolExecutor    ── notifies ───▶ JournalObserver  that a call starts or has ended
//!  JournalObserver ── appends to ─▶ Spool            so that the call survives its process
//!  JournalObserver ── sends to ───▶ Queue
//!  Writer, a thread ─ takes from ─▶ Queue
//!  Writer, a thread ─ recovers ───▶ Spool            the rows that a killed process left
//!  Writer, a thread ─ writes to ──▶ journal.db
//!  JournalReader   ── reads ──────▶ journal.db
//! ```
//!
//! To record calls, open a [`Journal`] and add its [`observer`](Journal::observer) to the executor.
//! To read them, use a [`JournalReader`], in any process. A [`CallSummary`] is a call in a list,
//! and a [`CallDetail`] all of it.
//!
//! A call survives the death of its process once its row is in the spool, an append-only file
//! beside the database. Its start is there before the tool is invoked, and its end before the
//! caller gets the answer. If a row can't be written, the journal logs a warning and the call still
//! runs. Calls covered by [`RecordRequirement`] are denied instead.
//!
//! A hash chain over all rows shows whether somebody changed them later: see
//! [`JournalReader::verify`].
//!
//! To read the code, start in `journal.rs`. `columns.rs` and `row.rs` say what is kept,
//! `store.rs` and `spool.rs` how.

mod backlog;
mod batch;
mod chain;
mod checkpointer;
mod checksummed_line;
mod columns;
mod detail;
mod digest;
mod error;
mod evict;
mod export;
mod fields;
mod file_identity;
mod filter;
mod foreign_schema;
mod forward;
mod head;
mod health;
mod journal;
mod key;
mod observer;
mod opener;
mod queue;
mod reader;
mod recent_calls;
mod recovery;
mod required_calls;
mod row;
mod runs;
mod seq;
mod settings;
mod spool;
mod store;
mod summary;
mod takeover;
mod task_rows;
mod time;
mod turn_store;
mod upkeep;
mod verify;
mod voice_turn;
mod wal;
mod writer;

pub use detail::{ApprovalInfo, CallDetail, RunInfo, StepTimes};
pub use error::JournalError;
pub use export::ExportSummary;
pub use filter::{JournalFilter, OUTCOME_NAMES, matches_caller};
pub use forward::ForwardTarget;
pub use health::JournalHealth;
pub use journal::Journal;
pub use observer::JournalObserver;
pub use reader::{JournalPosition, JournalReader};
pub use recent_calls::RecentCallsHandler;
pub use required_calls::UnavailableJournal;
pub use settings::{JournalSettings, OpenRetry, RecordRequirement, SyncMode};
pub use summary::CallSummary;
pub use verify::{HashChainFinding, HashChainProblem, VerifyOptions, VerifyReport};
pub use voice_turn::{TurnOutcome, TurnStages, VoiceTurn};
