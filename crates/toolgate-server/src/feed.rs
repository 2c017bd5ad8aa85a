//! Calls as they happen, for whoever watches.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::broadcast;
use toolgate_core::{CallRecord, CallStarted, Observer};

/// Events that wait for a slow watcher; who is slower than that is told how many it missed.
const KEPT: usize = 1024;

/// Something to show.
#[derive(Clone)]
pub(crate) enum Event {
    /// A call is about to run.
    Started(Arc<CallStarted>),
    /// A call has ended.
    Finished(Arc<CallRecord>),
}

/// Hands every call on to all who watch. Cheap to clone.
#[derive(Clone)]
pub struct Feed(broadcast::Sender<Event>);

impl Default for Feed {
    fn default() -> Self {
        Self(broadcast::Sender::new(KEPT))
    }
}

impl Feed {
    /// Everything from now on.
    pub(crate) fn watch(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }

    fn send(&self, event: impl FnOnce() -> Event) {
        // Most of the time nobody watches, and a record is not worth a copy then.
        if self.0.receiver_count() > 0 {
            drop(self.0.send(event()));
        }
    }
}

impl Observer for Feed {
    fn started<'a>(&'a self, call: &'a CallStarted) -> Option<BoxFuture<'a, ()>> {
        self.send(|| Event::Started(Arc::new(call.clone())));
        None
    }

    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        self.send(|| Event::Finished(Arc::new(record.clone())));
        None
    }
}
