//! Tracks which resources one client subscribes to, and queues the updates to send to it.

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexSet;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use toolgate_core::{ContentMethod, UpdateSubscription, escape};

use super::jsonrpc::{RequestError, notification};
use super::methods::ClientSink;
use super::service::McpService;

// Subscriptions that one client may have.
const MAX_SUBSCRIPTIONS: usize = 10_000;

/// Ends all subscriptions when it is dropped.
#[derive(Default)]
pub(super) struct ClientSubscriptions {
    queue: Arc<UpdateQueue>,
    // By the URI as the client wrote it.
    open: Mutex<HashMap<Arc<str>, UpdateSubscription>>,
}

/// URIs with updates that were not sent yet. Several updates of one resource are one.
#[derive(Default)]
struct UpdateQueue {
    waiting: Mutex<IndexSet<Arc<str>>>,
    added: Notify,
}

impl ClientSubscriptions {
    /// Fails if nobody offers this resource to the client, or its server doesn't tell of updates.
    pub(super) fn subscribe(&self, service: &McpService, uri: &str) -> Result<(), RequestError> {
        let content = service.executor.manager().content();
        let rules = service.executor.rules();
        let found = content.resolve(uri).filter(|(owner, _)| {
            owner.is_offered(ContentMethod::ReadResource, &rules, &service.scope)
        });
        let Some((owner, own)) = found else {
            let text = format!("Resource not found: {}", escape(uri));
            return Err(RequestError::invalid_params(text));
        };
        let Some(updates) = &owner.content.access.updates else {
            let text = format!("the server of {} doesn't announce updates", escape(uri));
            return Err(RequestError::invalid_params(text));
        };
        let mut open = self.open.lock();
        if open.contains_key(uri) {
            return Ok(());
        }
        if open.len() >= MAX_SUBSCRIPTIONS {
            let text = format!("a client may have {MAX_SUBSCRIPTIONS} subscriptions");
            return Err(RequestError::invalid_params(text));
        }
        let uri: Arc<str> = uri.into();
        let (queue, updated) = (Arc::downgrade(&self.queue), Arc::clone(&uri));
        let listener = move || {
            if let Some(queue) = queue.upgrade() {
                queue.waiting.lock().insert(Arc::clone(&updated));
                queue.added.notify_one();
            }
        };
        open.insert(uri, updates.subscribe(&own, Box::new(listener)));
        Ok(())
    }

    pub(super) fn unsubscribe(&self, uri: &str) {
        let ended = self.open.lock().remove(uri);
        self.queue.waiting.lock().shift_remove(uri);
        // Dropped outside the lock, because it calls its server.
        drop(ended);
    }

    /// The next resource that has changed. Cancel safe.
    pub(super) async fn next(&self) -> Arc<str> {
        loop {
            if let Some(uri) = self.queue.waiting.lock().shift_remove_index(0) {
                return uri;
            }
            self.queue.added.notified().await;
        }
    }
}

/// Announces updates until the client is gone.
pub(super) async fn send_updates(
    subscriptions: &ClientSubscriptions,
    meta: Option<&Value>,
    sink: &dyn ClientSink,
) {
    while sink.send(updated(&subscriptions.next().await, meta)).await {}
}

pub(super) fn updated(uri: &str, meta: Option<&Value>) -> Vec<u8> {
    let mut params = json!({ "uri": uri });
    if let Some(meta) = meta {
        params["_meta"] = meta.clone();
    }
    notification("notifications/resources/updated", params)
}
