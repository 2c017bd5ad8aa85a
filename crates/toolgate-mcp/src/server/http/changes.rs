//! Changes of the tools, told as they happen.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::unfold;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::body::HttpBody;
use super::events::{EventId, comment, event, priming};
use super::session::SessionStream;
use super::table::SessionGuard;
use super::{HttpState, McpHttp};
use crate::server::methods::list_changed;
use crate::server::tool_list::ToolListWatch;

/// The number of a session's stream of what nobody asked for.
pub(super) const UNASKED: u64 = 0;

impl McpHttp {
    /// Tells a session's client that the list of tools is another one, from the list on that it knows.
    pub(super) fn changes(
        &self,
        session: SessionGuard,
        stream: SessionStream,
        read: Option<u64>,
    ) -> HttpBody {
        let (seen, told) = session.knows();
        let place = |number| EventId {
            stream: UNASKED,
            number,
        };
        let missed = read.is_some_and(|read| read < told);
        let first = if missed {
            event(Some(place(told)), &list_changed(Value::Null))
        } else if session.is_primed() {
            priming(place(told))
        } else {
            comment()
        };
        let changes = ChangeStream {
            watch: ToolListWatch::from_list(&self.service, seen),
            first: Some(first),
            over: stream.over.clone(),
            keep_alive: self.state.options.keep_alive,
        };
        HttpBody::events(unfold(
            (changes, session, stream),
            move |(mut changes, session, stream)| async move {
                let bytes = match changes.next().await? {
                    Change::Other(bytes) => bytes,
                    Change::OfTheList => {
                        let number = session.told(changes.watch.seen());
                        event(Some(place(number)), &list_changed(Value::Null))
                    }
                };
                Some((bytes, (changes, session, stream)))
            },
        ))
    }
}

struct ChangeStream {
    watch: ToolListWatch,
    first: Option<Bytes>,
    over: CancellationToken,
    keep_alive: Duration,
}

enum Change {
    OfTheList,
    Other(Bytes),
}

impl ChangeStream {
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

/// One of the clients that listen; there are no more than sessions.
pub(super) struct ListenerPermit(Arc<AtomicUsize>);

impl ListenerPermit {
    pub(super) fn take(state: &HttpState) -> Option<Self> {
        let before = state.listening.fetch_add(1, Ordering::Relaxed);
        let permit = Self(Arc::clone(&state.listening));
        (before < state.options.max_sessions).then_some(permit)
    }
}

impl Drop for ListenerPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
