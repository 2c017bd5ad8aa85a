//! Tracks which of a server's resources clients subscribe to, across reconnects.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::watch;
use toolgate_core::{ResourceUpdates, UpdateListener, UpdateSubscription};

// Bounds of the search for parents of a URI.
const MAX_SUBRESOURCE: usize = 8 << 10;
const MAX_PARENTS: usize = 64;

/// Listeners by the server's own URIs.
pub(crate) struct ResourceSubscriptions {
    // Itself, for the guards that end a subscription.
    this: Weak<Self>,
    state: Mutex<SubscriptionState>,
    // Counts changes of the set of URIs.
    version: watch::Sender<u64>,
}

#[derive(Default)]
struct SubscriptionState {
    listeners: HashMap<Arc<str>, Vec<(u64, Arc<UpdateListener>)>>,
    last: u64,
}

struct SubscriptionGuard {
    subscriptions: Weak<ResourceSubscriptions>,
    uri: Arc<str>,
    number: u64,
}

impl ResourceSubscriptions {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            state: Mutex::default(),
            version: watch::Sender::new(0),
        })
    }

    /// Tells everybody who subscribed to this URI, or to one of which it is a sub-resource.
    pub(crate) fn announce(&self, uri: &str, meta: Option<&Map<String, Value>>) {
        let listeners: Vec<(Arc<UpdateListener>, &str)> = {
            let state = self.state.lock();
            let subscribed = parents(uri).filter_map(|(parent, rest)| {
                let listeners = state.listeners.get(parent)?;
                Some(listeners.iter().map(move |(_, it)| (Arc::clone(it), rest)))
            });
            subscribed.flatten().collect()
        };
        // Outside the lock, because a listener may end its subscription.
        for (listener, rest) in listeners {
            listener(rest, meta);
        }
    }

    /// Notifies all subscribers, because changes may have been missed while the server was away.
    pub(crate) fn announce_all(&self) {
        for uri in self.uris() {
            self.announce(&uri, None);
        }
    }

    pub(crate) fn uris(&self) -> BTreeSet<Arc<str>> {
        self.state.lock().listeners.keys().cloned().collect()
    }

    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }
}

/// The URI and those of which it may be a sub-resource, each with the rest of the path.
fn parents(uri: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_short = uri.len() <= MAX_SUBRESOURCE;
    let slashes = uri.rmatch_indices('/').filter(move |_| is_short);
    // A folder may be written with its slash or without.
    let parents = slashes.flat_map(|(at, _)| [at + 1, at]);
    let parents = parents.filter(|at| *at < uri.len()).take(MAX_PARENTS);
    std::iter::once(uri.len())
        .chain(parents)
        .map(|at| uri.split_at(at))
}

impl ResourceUpdates for ResourceSubscriptions {
    fn subscribe(&self, uri: &str, listener: UpdateListener) -> UpdateSubscription {
        let mut state = self.state.lock();
        state.last += 1;
        let number = state.last;
        let uri = match state.listeners.get_key_value(uri) {
            Some((known, _)) => Arc::clone(known),
            None => Arc::from(uri),
        };
        let listeners = state.listeners.entry(Arc::clone(&uri)).or_default();
        listeners.push((number, Arc::new(listener)));
        let is_first = listeners.len() == 1;
        drop(state);
        if is_first {
            self.version.send_modify(|version| *version += 1);
        }
        Box::new(SubscriptionGuard {
            subscriptions: Weak::clone(&self.this),
            uri,
            number,
        })
    }
}

impl Drop for SubscriptionGuard {
    fn drop(&mut self) {
        let Some(subscriptions) = self.subscriptions.upgrade() else {
            return;
        };
        let mut state = subscriptions.state.lock();
        let Some(listeners) = state.listeners.get_mut(&self.uri) else {
            return;
        };
        listeners.retain(|(number, _)| *number != self.number);
        let is_last = listeners.is_empty();
        if is_last {
            state.listeners.remove(&self.uri);
        }
        drop(state);
        if is_last {
            subscriptions.version.send_modify(|version| *version += 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn listeners_are_notified_until_they_are_dropped() {
        let subscriptions = ResourceSubscriptions::new();
        let updates = Arc::new(AtomicUsize::new(0));
        let listener = || {
            let updates = Arc::clone(&updates);
            Box::new(move |_: &str, _: Option<&Map<String, Value>>| {
                updates.fetch_add(1, Ordering::Relaxed);
            }) as UpdateListener
        };
        let version = subscriptions.changed();
        let first = subscriptions.subscribe("a:1", listener());
        let second = subscriptions.subscribe("a:1", listener());
        let other = subscriptions.subscribe("a:2", listener());
        assert_eq!(subscriptions.uris().len(), 2);
        assert_eq!(*version.borrow(), 2);
        subscriptions.announce("a:1", None);
        assert_eq!(updates.load(Ordering::Relaxed), 2);
        drop(first);
        subscriptions.announce("a:1", None);
        subscriptions.announce("a:3", None);
        assert_eq!(updates.load(Ordering::Relaxed), 3);
        subscriptions.announce_all();
        assert_eq!(updates.load(Ordering::Relaxed), 5);
        drop((second, other));
        assert!(subscriptions.uris().is_empty());
        assert_eq!(*version.borrow(), 4);
    }

    #[test]
    fn updates_in_a_folder_reach_its_subscribers() {
        let subscriptions = ResourceSubscriptions::new();
        let updates: Arc<Mutex<Vec<String>>> = Arc::default();
        let subscribe = |uri: &'static str| {
            let updates = Arc::clone(&updates);
            let listener = move |rest: &str, _: Option<&Map<String, Value>>| {
                updates.lock().push(format!("{uri}|{rest}"));
            };
            subscriptions.subscribe(uri, Box::new(listener))
        };
        let _all = ["f:///a", "f:///a/", "f:///a/b", "f:///ab"].map(subscribe);
        let endless = format!("f:///a/{}", "/".repeat(MAX_SUBRESOURCE));
        for (changed, expected) in [
            ("f:///a/b", &["f:///a/b|", "f:///a/|b", "f:///a|/b"][..]),
            ("f:///a/c/d", &["f:///a/|c/d", "f:///a|/c/d"]),
            ("f:///a/", &["f:///a/|", "f:///a|/"]),
            ("f:///a", &["f:///a|"]),
            ("f:///abc", &[]),
            ("f:///", &[]),
            (&endless, &[]),
        ] {
            subscriptions.announce(changed, None);
            assert_eq!(
                *std::mem::take(&mut *updates.lock()),
                *expected,
                "{changed:.20}"
            );
        }
    }
}
