//! Announces changes of lists and resources, and what extensions say between
//! calls, to HTTP clients.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::stream::unfold;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::McpHttp;
use super::body::HttpBody;
use super::events::{EventId, event, keep_alive_comment, priming_event};
use super::session::SessionStream;
use super::table::SessionGuard;
use crate::server::list_watch::{ListChanges, ListWatch};
use crate::server::service::McpService;

// The number of a session's standalone stream, which belongs to no request.
pub(super) const STANDALONE_STREAM: u64 = 0;

impl McpHttp {
    /// Streams an event for each change since the lists that the session's client knows, for each
    /// update of a resource it watches, for what happens to its tasks, and for each notification of
    /// an extension. `read` is the last event that a reconnecting client received.
    pub(super) fn changes(
        &self,
        session: SessionGuard,
        stream: SessionStream,
        read: Option<u64>,
    ) -> HttpBody {
        let (known, announced) = session.known_lists();
        let missed = read.is_some_and(|read| read < announced);
        // The client reconnected before it saw the latest announcement. Which lists it was about is
        // not kept, so all are announced.
        let first = if missed {
            list_events(ListChanges::ALL, |is_last| is_last.then_some(announced))
        } else if session.accepts_priming() {
            priming_event(event_id(announced))
        } else {
            keep_alive_comment()
        };
        let changes = ChangeStream {
            service: Arc::clone(&self.service),
            watch: ListWatch::from_known(&self.service, known),
            first: Some(first),
            stop: stream.stop.clone(),
            keep_alive: self.state.options.keep_alive,
        };
        HttpBody::events(unfold(
            (changes, session, stream),
            move |(mut changes, session, stream)| async move {
                let bytes = changes.next(&session).await?;
                Some((bytes, (changes, session, stream)))
            },
        ))
    }
}

fn event_id(number: u64) -> EventId {
    EventId {
        stream: STANDALONE_STREAM,
        number,
    }
}

/// One event for each list that changed; `number` gives it an id, knowing whether it is the last.
fn list_events(changes: ListChanges, mut number: impl FnMut(bool) -> Option<u64>) -> Bytes {
    let mut messages = changes.notifications(&Value::Null).peekable();
    let mut events = BytesMut::new();
    while let Some(message) = messages.next() {
        let id = number(messages.peek().is_none()).map(event_id);
        events.extend_from_slice(&event(id, &message));
    }
    events.freeze()
}

struct ChangeStream {
    service: Arc<McpService>,
    watch: ListWatch,
    first: Option<Bytes>,
    stop: CancellationToken,
    keep_alive: Duration,
}

impl ChangeStream {
    async fn next(&mut self, session: &SessionGuard) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            changes = self.watch.changed() => {
                let lists = self.watch.seen.clone();
                Some(list_events(changes, |_| Some(session.announce_change(lists.clone()))))
            }
            update = session.subscriptions.next(&self.service) => Some(event(None, &update.to_message(None))),
            notice = session.notices.next() => Some(event(None, &notice)),
            notice = session.questions.next_extension_notice(&self.service) => Some(event(None, &notice)),
            () = tokio::time::sleep(self.keep_alive) => Some(keep_alive_comment()),
        }
    }
}
