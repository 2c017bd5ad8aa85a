//! An inbox that drops everything after the connection has ended.

use std::sync::Arc;

use parking_lot::Mutex;

use super::endpoint::EndpointError;
use crate::client::message::RpcMessage;
use crate::client::transport::{
    FailureReason, SessionEnd, TransportError, TransportInbox, UnreadableAnswer,
};

/// `None` after the end. Locked during delivery, so that nothing is delivered after the end.
pub(super) struct ClosableInbox(Mutex<Option<Arc<dyn TransportInbox>>>);

impl ClosableInbox {
    pub(super) fn new(inbox: Arc<dyn TransportInbox>) -> Self {
        Self(Mutex::new(Some(inbox)))
    }

    pub(super) fn on_message(&self, message: RpcMessage, request: Option<u64>) {
        self.deliver(|inbox| inbox.on_message(message, request));
    }

    pub(super) fn on_unreadable(&self, id: Option<u64>, problem: UnreadableAnswer) {
        self.deliver(|inbox| inbox.on_unreadable(id, problem));
    }

    pub(super) fn on_request_failed(&self, id: u64, error: TransportError) {
        self.deliver(|inbox| inbox.on_request_failed(id, error));
    }

    fn deliver(&self, message: impl FnOnce(&dyn TransportInbox)) {
        if let Some(inbox) = &*self.0.lock() {
            message(&**inbox);
        }
    }

    pub(super) fn on_closed(&self, status: impl Into<FailureReason>) {
        if let Some(inbox) = self.0.lock().take() {
            inbox.on_closed(SessionEnd {
                status: status.into(),
                stderr: Vec::new(),
            });
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.lock().is_some()
    }

    pub(super) fn close_if_unreachable(&self, error: &EndpointError) {
        if let EndpointError::Unreachable(reason) = error {
            self.on_closed(reason.clone());
        }
    }
}
