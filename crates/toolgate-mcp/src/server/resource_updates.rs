//! Tracks which resources one client subscribes to, and queues the updates to send to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indexmap::IndexMap;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use toolgate_core::text::escape;
use toolgate_core::{ContentMethod, ResourceUpdates, UpdateSubscription};

use super::jsonrpc::{RequestError, notification};
use super::methods::ClientSink;
use super::service::McpService;

// Subscriptions that one client may have.
const MAX_SUBSCRIPTIONS: usize = 10_000;
// Updates that wait together with what their servers add.
const MAX_WAITING_META: usize = 500;
// Updates that may wait for one client. Beyond that, updates of sub-resources become updates of the
// resource that is subscribed to.
const MAX_WAITING: usize = 10_000;

/// Ends all subscriptions when it is dropped.
#[derive(Default)]
pub(super) struct ClientSubscriptions {
    queue: Arc<UpdateQueue>,
    // By the URI as the client wrote it. `None` while nobody offers the resource to the client.
    open: Mutex<HashMap<Arc<str>, Option<AttachedSubscription>>>,
    // The manager's version that `open` was last compared with.
    followed: AtomicU64,
}

/// A subscription at the server that offers the resource.
struct AttachedSubscription {
    source: UpdateSource,
    _subscription: UpdateSubscription,
}

/// Who announces updates of a resource, and its URI there.
struct UpdateSource {
    updates: Arc<dyn ResourceUpdates>,
    own: String,
}

/// Updates that were not sent yet. Several updates of one resource are one.
#[derive(Default)]
struct UpdateQueue {
    // By the URI of what changed.
    waiting: Mutex<IndexMap<Arc<str>, WaitingUpdate>>,
    added: Notify,
}

struct WaitingUpdate {
    subscription: Arc<str>,
    // What the server adds, from the latest of several updates.
    meta: Option<Map<String, Value>>,
}

/// A resource that has changed.
pub(super) struct ResourceUpdate {
    uri: Arc<str>,
    meta: Option<Map<String, Value>>,
}

impl UpdateQueue {
    /// Adds the subscribed resource, or its sub-resource at `rest`.
    fn add(&self, subscription: &Arc<str>, rest: &str, meta: Option<&Map<String, Value>>) {
        let mut waiting = self.waiting.lock();
        // Nothing bounds the number of names of sub-resources.
        let changed = match rest.is_empty() || waiting.len() >= MAX_WAITING {
            true => Arc::clone(subscription),
            false => format!("{subscription}{rest}").into(),
        };
        let has_room = waiting.len() < MAX_WAITING_META;
        let update = WaitingUpdate {
            subscription: Arc::clone(subscription),
            meta: meta.filter(|_| has_room).cloned(),
        };
        waiting.insert(changed, update);
        drop(waiting);
        self.added.notify_one();
    }

    fn pop(&self) -> Option<(Arc<str>, WaitingUpdate)> {
        self.waiting.lock().shift_remove_index(0)
    }
}

impl ClientSubscriptions {
    /// Fails if nobody offers this resource to the client, or its server doesn't tell of updates.
    pub(super) fn subscribe(&self, service: &McpService, uri: &str) -> Result<(), RequestError> {
        let source = UpdateSource::find(service, uri)?;
        let mut open = self.open.lock();
        if open.contains_key(uri) {
            return Ok(());
        }
        if open.len() >= MAX_SUBSCRIPTIONS {
            let text = format!("a client may have {MAX_SUBSCRIPTIONS} subscriptions");
            return Err(RequestError::invalid_params(text));
        }
        let uri: Arc<str> = uri.into();
        let attached = source.attach(&uri, &self.queue);
        open.insert(uri, Some(attached));
        Ok(())
    }

    pub(super) fn unsubscribe(&self, uri: &str) {
        let ended = self.open.lock().remove(uri);
        // Dropped outside the lock, because it calls its server.
        drop(ended);
    }

    /// The next resource that has changed. Cancel safe.
    pub(super) async fn next(&self, service: &McpService) -> ResourceUpdate {
        let mut version = service.executor.manager().subscribe();
        loop {
            // Before anything is sent, so that a client that may no longer see a resource doesn't
            // hear of it.
            let current = *version.borrow_and_update();
            if self.followed.swap(current, Ordering::Relaxed) != current {
                self.follow(service);
            }
            while let Some((uri, WaitingUpdate { subscription, meta })) = self.queue.pop() {
                if matches!(self.open.lock().get(&subscription), Some(Some(_))) {
                    return ResourceUpdate { uri, meta };
                }
            }
            tokio::select! {
                () = self.queue.added.notified() => {}
                Ok(()) = version.changed() => {}
            }
        }
    }

    /// Moves subscriptions to the servers that offer their resources now: a server may have been
    /// reconfigured, removed or hidden, or may be back.
    fn follow(&self, service: &McpService) {
        let mut ended = Vec::new();
        let mut open = self.open.lock();
        for (uri, attached) in open.iter_mut() {
            let source = UpdateSource::find(service, uri).ok();
            let is_same = match (&attached, &source) {
                (Some(attached), Some(source)) => attached.source == *source,
                (attached, source) => attached.is_none() && source.is_none(),
            };
            if is_same {
                continue;
            }
            // The resource may be another one now.
            if source.is_some() {
                self.queue.add(uri, "", None);
            }
            let now = source.map(|source| source.attach(uri, &self.queue));
            ended.extend(std::mem::replace(attached, now));
        }
        drop(open);
        drop(ended);
    }
}

impl UpdateSource {
    fn find(service: &McpService, uri: &str) -> Result<Self, RequestError> {
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
        Ok(Self {
            updates: Arc::clone(updates),
            own: own.into_owned(),
        })
    }

    /// Adds `uri`, or its sub-resource, to the queue after every update.
    fn attach(self, uri: &Arc<str>, queue: &Arc<UpdateQueue>) -> AttachedSubscription {
        let (queue, uri) = (Arc::downgrade(queue), Arc::clone(uri));
        let listener = move |rest: &str, meta: Option<&Map<String, Value>>| {
            if let Some(queue) = queue.upgrade() {
                queue.add(&uri, rest, meta);
            }
        };
        AttachedSubscription {
            _subscription: self.updates.subscribe(&self.own, Box::new(listener)),
            source: self,
        }
    }
}

impl PartialEq for UpdateSource {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.updates), Arc::as_ptr(&other.updates))
            && self.own == other.own
    }
}

/// Announces updates until the client is gone.
pub(super) async fn send_updates(
    service: &McpService,
    subscriptions: &ClientSubscriptions,
    meta: Option<&Value>,
    sink: &dyn ClientSink,
) {
    while sink
        .send(subscriptions.next(service).await.to_message(meta))
        .await
    {}
}

impl ResourceUpdate {
    /// `own_meta` is ours, and wins over what the server adds.
    pub(super) fn to_message(&self, own_meta: Option<&Value>) -> Vec<u8> {
        let mut params = json!({ "uri": self.uri });
        let mut meta = self.meta.clone().unwrap_or_default();
        let own = own_meta.and_then(Value::as_object).into_iter().flatten();
        meta.extend(own.map(|(key, value)| (key.clone(), value.clone())));
        if !meta.is_empty() {
            params["_meta"] = meta.into();
        }
        notification("notifications/resources/updated", params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_that_wait_are_bounded_however_many_sub_resources_change() {
        let queue = UpdateQueue::default();
        let folder: Arc<str> = "toolgate://files/file:///a".into();
        for n in 0..3 * MAX_WAITING {
            queue.add(&folder, &format!("/{n}"), None);
            queue.add(&folder, "", None);
        }
        let waiting = queue.waiting.lock().len();
        assert!((2..=MAX_WAITING + 1).contains(&waiting), "{waiting}");
        let (changed, update) = queue.pop().unwrap();
        assert_eq!(&*changed, "toolgate://files/file:///a/0");
        assert_eq!(update.subscription, folder);
        assert_eq!(queue.pop().unwrap().0, folder);
    }
}
