//! The way to the inbox, until the connection is over.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::endpoint::Trouble;
use crate::client::message::Message;
use crate::client::transport::{End, Inbox, Lost, Reason, TransportError};

/// Held while something is delivered, so that nothing comes after the end; empty after it.
pub(super) struct Outlet(Mutex<Option<Arc<dyn Inbox>>>);

impl Outlet {
    pub(super) fn new(inbox: Arc<dyn Inbox>) -> Self {
        Self(Mutex::new(Some(inbox)))
    }

    pub(super) fn message(&self, message: Message) {
        if let Some(inbox) = &*self.inbox() {
            inbox.message(message);
        }
    }

    pub(super) fn lost(&self, id: Option<u64>, problem: Lost) {
        if let Some(inbox) = &*self.inbox() {
            inbox.lost(id, problem);
        }
    }

    pub(super) fn failed(&self, id: u64, error: TransportError) {
        if let Some(inbox) = &*self.inbox() {
            inbox.failed(id, error);
        }
    }

    pub(super) fn closed(&self, status: impl Into<Reason>) {
        if let Some(inbox) = self.inbox().take() {
            inbox.closed(End {
                status: status.into(),
                stderr: Vec::new(),
            });
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.inbox().is_some()
    }

    /// The end, if the trouble is not with one request alone.
    pub(super) fn after(&self, trouble: &Trouble) {
        if let Trouble::Unreachable(reason) = trouble {
            self.closed(reason.clone());
        }
    }

    fn inbox(&self) -> MutexGuard<'_, Option<Arc<dyn Inbox>>> {
        self.0.lock()
    }
}
