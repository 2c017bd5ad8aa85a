//! Calls as they happen, for whoever watches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use tokio::sync::broadcast;
use toolgate_core::{CallRecord, CallStarted, Observer, Redactor, Tool};
use toolgate_journal::{CallSummary, Journal};

use crate::recent::Recent;

/// Events that wait for a slow watcher; who is slower than that is told how many it missed.
const KEPT: usize = 1024;

#[derive(Clone)]
pub(crate) enum Event {
    Started(Arc<Shown>),
    Finished(Arc<Shown>),
}

/// A call as it is shown, and the tool it is of. Not its result: results may be large, and many events wait.
pub(crate) struct Shown {
    pub(crate) call: CallSummary,
    pub(crate) tool: Option<Arc<dyn Tool>>,
}

/// Hands every call on to all who watch, and keeps the last ones while nobody else does. Cheap to clone.
#[derive(Clone)]
pub struct Feed(Arc<Shared>);

struct Shared {
    events: broadcast::Sender<Event>,
    redactor: OnceLock<Redactor>,
    command: OnceLock<String>,
    recent: OnceLock<Recent>,
    /// Where calls are recorded. Only while that fails they are kept here.
    journal: OnceLock<Journal>,
    /// They are kept at present.
    keeps: AtomicBool,
}

impl Default for Feed {
    fn default() -> Self {
        Self(Arc::new(Shared {
            events: broadcast::Sender::new(KEPT),
            redactor: OnceLock::new(),
            command: OnceLock::new(),
            recent: OnceLock::new(),
            journal: OnceLock::new(),
            keeps: AtomicBool::new(false),
        }))
    }
}

impl Feed {
    /// Says what must not be shown and which command every call is by. From now on the last calls are kept here; where there is
    /// a journal, only while it fails.
    pub(crate) fn equip(&self, redactor: &Redactor, command: &str, journal: Option<Journal>) {
        drop(self.0.redactor.set(redactor.clone()));
        drop(self.0.command.set(command.to_owned()));
        if let Some(journal) = journal {
            drop(self.0.journal.set(journal));
        }
        let recent = Recent::new(redactor.clone(), command.to_owned());
        drop(self.0.recent.set(recent));
    }

    pub(crate) fn recent(&self) -> Option<&Recent> {
        let recent = self.0.recent.get()?;
        let keeps = self.0.journal.get().is_none_or(Journal::is_failing);
        // What is left of the last time is in the journal by now.
        if keeps != self.0.keeps.load(Ordering::Relaxed)
            && !self.0.keeps.swap(keeps, Ordering::Relaxed)
            && keeps
        {
            recent.clear();
        }
        keeps.then_some(recent)
    }

    pub(crate) fn watch(&self) -> broadcast::Receiver<Event> {
        self.0.events.subscribe()
    }

    fn send(&self, event: impl FnOnce(&Redactor, &str) -> Event) {
        // Most of the time nobody watches, and a call is not worth a copy then.
        if self.0.events.receiver_count() > 0 {
            let redactor = self.0.redactor.get_or_init(Redactor::default);
            let command = self.0.command.get().map_or("", String::as_str);
            drop(self.0.events.send(event(redactor, command)));
        }
    }
}

impl Observer for Feed {
    fn started<'a>(&'a self, call: &'a CallStarted) -> Option<BoxFuture<'a, ()>> {
        if let Some(recent) = self.recent() {
            recent.started(call);
        }
        self.send(|redactor, command| {
            Event::Started(Arc::new(Shown {
                call: CallSummary::started(call, redactor, command),
                tool: Some(Arc::clone(&call.tool)),
            }))
        });
        None
    }

    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        if let Some(recent) = self.recent() {
            recent.finished(record);
        }
        self.send(|redactor, command| {
            Event::Finished(Arc::new(Shown {
                call: CallSummary::finished(record, redactor, command),
                tool: record.tool.clone(),
            }))
        });
        None
    }
}
