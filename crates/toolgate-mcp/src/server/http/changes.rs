//! Changes of the tools, told as they happen.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::unfold;
use http::{Response, StatusCode};
use rmcp::model::{RequestId, SubscriptionFilter, SubscriptionsListenResult};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::body::HttpBody;
use super::events::{EventId, comment, event, priming};
use super::headers::Accepts;
use super::reply::{self, Refusal, answered};
use super::session::Listening;
use super::streams::notification;
use super::table::InUse;
use super::{McpHttp, Shared};
use crate::server::listing::{Catalogue, Watch};

/// The number of a session's stream of what nobody asked for.
pub(super) const UNASKED: u64 = 0;

impl McpHttp {
    /// Tells a session's client that the list of tools is another one, from the list on that it knows.
    pub(super) fn changes(
        &self,
        session: InUse,
        listening: Listening,
        read: Option<u64>,
    ) -> HttpBody {
        let (seen, told) = session.knows();
        let place = |number| EventId {
            stream: UNASKED,
            number,
        };
        let missed = read.is_some_and(|read| read < told);
        let first = if missed {
            event(Some(place(told)), &list_changed(None))
        } else if session.is_primed() {
            priming(place(told))
        } else {
            comment()
        };
        let changes = Changes {
            watch: self.server.catalogue.watch_from(seen),
            first: Some(first),
            over: listening.over.clone(),
            keep_alive: self.shared.options.keep_alive,
        };
        HttpBody::events(unfold(
            (changes, session, listening),
            move |(mut changes, session, listening)| async move {
                let bytes = match changes.next().await? {
                    Change::Other(bytes) => bytes,
                    Change::OfTheList => {
                        let number = session.told(changes.watch.seen());
                        event(Some(place(number)), &list_changed(None))
                    }
                };
                Some((bytes, (changes, session, listening)))
            },
        ))
    }

    /// In 2026-07-28 changes are told to whoever listens, until the connection ends.
    pub(super) fn listen(
        &self,
        accepts: Accepts,
        id: &RequestId,
        requested: &SubscriptionFilter,
    ) -> Result<Response<HttpBody>, Refusal> {
        if !accepts.events {
            let text = "Not Acceptable: accept text/event-stream";
            return Err(Refusal::of_http(StatusCode::NOT_ACCEPTABLE, text));
        }
        let Some(listener) = Listener::new(&self.shared) else {
            let text = "too many clients listen; try again later";
            return Err(Refusal::busy(text));
        };
        let catalogue = &self.server.catalogue;
        let accepted = Catalogue::accepted(requested);
        let params = json!({
            "_meta": { "io.modelcontextprotocol/subscriptionId": id },
            "notifications": accepted,
        });
        let mut end = SubscriptionsListenResult::complete(id.clone());
        end.meta.set_server_info(catalogue.implementation());
        let end = event(None, &answered(id, &end));
        let acknowledged = notification("subscriptions/acknowledged", &params);
        let changes = Changes {
            watch: catalogue.watch(),
            first: Some(event(None, &acknowledged)),
            over: self.shared.life.ending.clone(),
            keep_alive: self.shared.options.keep_alive,
        };
        let tells = accepted.tools_list_changed == Some(true);
        let change = event(None, &list_changed(Some(id)));
        let state = (changes, Some(end), listener);
        let body = unfold(state, move |(mut changes, mut end, listener)| {
            let change = change.clone();
            async move {
                let bytes = loop {
                    match changes.next().await {
                        Some(Change::Other(bytes)) => break bytes,
                        Some(Change::OfTheList) if tells => break change,
                        Some(Change::OfTheList) => {}
                        None => break end.take()?,
                    }
                };
                Some((bytes, (changes, end, listener)))
            }
        });
        Ok(reply::events(HttpBody::events(body)))
    }
}

/// What happens on a stream of changes.
struct Changes {
    watch: Watch,
    first: Option<Bytes>,
    over: CancellationToken,
    keep_alive: Duration,
}

enum Change {
    OfTheList,
    Other(Bytes),
}

impl Changes {
    async fn next(&mut self) -> Option<Change> {
        if let Some(first) = self.first.take() {
            return Some(Change::Other(first));
        }
        tokio::select! {
            biased;
            () = self.over.cancelled() => None,
            () = self.watch.changed() => Some(Change::OfTheList),
            () = tokio::time::sleep(self.keep_alive) => Some(Change::Other(comment())),
        }
    }
}

fn list_changed(subscription: Option<&RequestId>) -> Vec<u8> {
    let params = subscription.map_or(
        Value::Null,
        |id| json!({ "_meta": { "io.modelcontextprotocol/subscriptionId": id } }),
    );
    notification("tools/list_changed", &params)
}

/// One of the clients that listen; there are no more than sessions.
struct Listener(Arc<AtomicUsize>);

impl Listener {
    fn new(shared: &Shared) -> Option<Self> {
        let before = shared.listening.fetch_add(1, Ordering::Relaxed);
        let listener = Self(Arc::clone(&shared.listening));
        (before < shared.options.max_sessions).then_some(listener)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
