//! Announces changes of the tool list to HTTP clients.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::unfold;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::McpHttp;
use super::body::HttpBody;
use super::events::{EventId, event, keep_alive_comment, priming_event};
use super::session::SessionStream;
use super::table::SessionGuard;
use crate::server::methods::list_changed;
use crate::server::tool_list::ToolListWatch;

// The number of a session's standalone stream, which belongs to no request.
pub(super) const STANDALONE_STREAM: u64 = 0;

impl McpHttp {
    /// Streams an event for each change since the list that the session's client knows. `read` is
    /// the last event that a reconnecting client received.
    pub(super) fn changes(
        &self,
        session: SessionGuard,
        stream: SessionStream,
        read: Option<u64>,
    ) -> HttpBody {
        let (known, announced) = session.known_list();
        let id = |number| EventId {
            stream: STANDALONE_STREAM,
            number,
        };
        let missed = read.is_some_and(|read| read < announced);
        // The client reconnected before it saw the latest announcement, so it is sent again.
        let first = if missed {
            event(Some(id(announced)), &list_changed(Value::Null))
        } else if session.accepts_priming() {
            priming_event(id(announced))
        } else {
            keep_alive_comment()
        };
        let changes = ChangeStream {
            watch: ToolListWatch::from_list(&self.service, known),
            first: Some(first),
            stop: stream.stop.clone(),
            keep_alive: self.state.options.keep_alive,
        };
        HttpBody::events(unfold(
            (changes, session, stream),
            move |(mut changes, session, stream)| async move {
                let bytes = match changes.next().await? {
                    ChangeStreamItem::Raw(bytes) => bytes,
                    ChangeStreamItem::ListChanged => {
                        let number = session.announce_change(Arc::clone(&changes.watch.seen));
                        event(Some(id(number)), &list_changed(Value::Null))
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
    stop: CancellationToken,
    keep_alive: Duration,
}

enum ChangeStreamItem {
    ListChanged,
    // An event or comment that is sent as it is.
    Raw(Bytes),
}

impl ChangeStream {
    async fn next(&mut self) -> Option<ChangeStreamItem> {
        if let Some(first) = self.first.take() {
            return Some(ChangeStreamItem::Raw(first));
        }
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            () = self.watch.changed() => Some(ChangeStreamItem::ListChanged),
            () = tokio::time::sleep(self.keep_alive) => Some(ChangeStreamItem::Raw(keep_alive_comment())),
        }
    }
}
