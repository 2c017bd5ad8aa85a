//! Publishes calls as they happen.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use tokio::sync::broadcast;
use toolgate_core::{CallContext, CallRecord, CallStarted, Observer, Redactor, RemoteTask, Tool};
use toolgate_journal::{CallSummary, Journal};

use crate::recent::RecentCallCache;
use crate::server_tasks::ServerTasks;

/// How many events wait for a slow subscriber. A slower one is told how many it missed.
const EVENT_CAPACITY: usize = 1024;

/// A started or finished call. Without its result, because results may be large and many
/// events wait for subscribers.
pub(crate) struct FeedEvent {
    // `started` or `call`, which is a finished one.
    pub(crate) kind: &'static str,
    pub(crate) call: CallSummary,
    pub(crate) tool: Option<Arc<dyn Tool>>,
}

/// Publishes every call to open dashboards and API clients. Clones share their subscribers.
///
/// It also keeps the latest calls in memory while no journal records them.
#[derive(Clone)]
pub struct CallFeed(Arc<FeedState>);

struct FeedState {
    events: broadcast::Sender<Arc<FeedEvent>>,
    redactor: OnceLock<Redactor>,
    command: OnceLock<String>,
    recent: OnceLock<RecentCallCache>,
    // If there is a journal, calls are kept in memory only while it fails.
    journal: OnceLock<Journal>,
    // Whether calls are currently kept.
    is_keeping: AtomicBool,
    tasks: ServerTasks,
}

impl Default for CallFeed {
    fn default() -> Self {
        Self(Arc::new(FeedState {
            events: broadcast::Sender::new(EVENT_CAPACITY),
            redactor: OnceLock::new(),
            command: OnceLock::new(),
            recent: OnceLock::new(),
            journal: OnceLock::new(),
            is_keeping: AtomicBool::new(false),
            tasks: ServerTasks::default(),
        }))
    }
}

impl CallFeed {
    /// Sets the redactor for secrets, and the command that this process was started as. From then
    /// on the latest calls are kept in memory; with a journal, only those made while it fails.
    pub(crate) fn configure(&self, redactor: &Redactor, command: &str, journal: Option<Journal>) {
        drop(self.0.redactor.set(redactor.clone()));
        drop(self.0.command.set(command.to_owned()));
        if let Some(journal) = journal {
            drop(self.0.journal.set(journal));
        }
        let recent = RecentCallCache::new(redactor.clone(), command.to_owned());
        drop(self.0.recent.set(recent));
    }

    pub(crate) fn recent(&self) -> Option<&RecentCallCache> {
        let recent = self.0.recent.get()?;
        let is_keeping = self.0.journal.get().is_none_or(Journal::is_failing);
        // Calls kept during the previous failure are in the journal by now.
        if is_keeping != self.0.is_keeping.load(Ordering::Relaxed)
            && !self.0.is_keeping.swap(is_keeping, Ordering::Relaxed)
            && is_keeping
        {
            recent.clear();
        }
        is_keeping.then_some(recent)
    }

    /// The running calls that their servers continue as tasks.
    pub(crate) fn tasks(&self) -> &ServerTasks {
        &self.0.tasks
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<FeedEvent>> {
        self.0.events.subscribe()
    }

    fn send(&self, event: impl FnOnce(&Redactor, &str) -> FeedEvent) {
        // Nearly always nobody subscribes, so the copy of the call is only made on demand.
        if self.0.events.receiver_count() > 0 {
            let redactor = self.0.redactor.get_or_init(Redactor::default);
            let command = self.0.command.get().map_or("", String::as_str);
            drop(self.0.events.send(Arc::new(event(redactor, command))));
        }
    }
}

impl Observer for CallFeed {
    fn started<'a>(&'a self, call: &'a CallStarted) -> Option<BoxFuture<'a, ()>> {
        if let Some(recent) = self.recent() {
            recent.started(call);
        }
        self.send(|redactor, command| {
            let tool = Some(Arc::clone(&call.tool));
            let call = CallSummary::started(call, redactor, command);
            FeedEvent {
                kind: "started",
                call,
                tool,
            }
        });
        None
    }

    fn became_task(&self, call: &CallContext, task: &RemoteTask) {
        self.0.tasks.add(call, task);
    }

    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        self.0.tasks.remove(record.outcome.call_id);
        if let Some(recent) = self.recent() {
            recent.finished(record);
        }
        self.send(|redactor, command| {
            let tool = record.tool.clone();
            let call = CallSummary::finished(record, redactor, command);
            FeedEvent {
                kind: "call",
                call,
                tool,
            }
        });
        None
    }
}
