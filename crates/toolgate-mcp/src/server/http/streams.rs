//! Responses and subscriptions that are sent as a stream of events.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::unfold;
use http::{HeaderMap, Response, StatusCode};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::McpHttp;
use super::body::HttpBody;
use super::changes::STANDALONE_STREAM;
use super::events::{EventId, EventLog, EventReader, keep_alive_comment, priming_event};
use super::headers::{self, LAST_EVENT, check_known_version, single_value};
use super::post::Requester;
use super::reply::{self, HttpError};
use super::table::SessionGuard;
use crate::server::client_message::ClientRequest;
use crate::server::jsonrpc::response;
use crate::server::request_tracker::RequestTracker;

// Bytes of finished responses that all sessions together keep for resuming.
const MAX_KEPT_BYTES: usize = 64 * 1024 * 1024;

struct EventDelivery {
    reader: EventReader,
    keep_alive: Duration,
    first: Option<Bytes>,
    // Cancels the call on drop. Set while a client that disconnects couldn't resume.
    stop: Option<CancellationToken>,
    // Keeps the session in use while its stream is open.
    _session: Option<SessionGuard>,
}

impl EventDelivery {
    async fn next(&mut self) -> Option<Bytes> {
        let bytes = match self.first.take() {
            Some(first) => first,
            None => tokio::select! {
                event = self.reader.next() => event?,
                () = tokio::time::sleep(self.keep_alive) => return Some(keep_alive_comment()),
            },
        };
        if self.reader.log.stream.is_some() {
            // The client now has an event id to resume from, so disconnecting no longer cancels.
            self.stop = None;
        }
        Some(bytes)
    }

    fn into_response(self) -> Response<HttpBody> {
        reply::events(HttpBody::events(unfold(self, |mut delivery| async {
            let bytes = delivery.next().await?;
            Some((bytes, delivery))
        })))
    }
}

impl Drop for EventDelivery {
    fn drop(&mut self) {
        if let Some(stop) = &self.stop {
            stop.cancel();
        }
    }
}

impl McpHttp {
    /// Answers a request with a stream of events. The request runs in its own task, so that a
    /// client that doesn't read can't hold it up. In the older era a client may reconnect and read
    /// the rest. In the newer era closing the connection cancels the request.
    pub(super) fn stream(
        &self,
        request: ClientRequest,
        requester: Requester,
        owner: u64,
        mut tracker: Option<Box<RequestTracker>>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Response<HttpBody> {
        let (state, service) = (Arc::clone(&self.state), Arc::clone(&self.service));
        let id = request.id.clone();
        let (stop, running) = self.register(&id, &requester);
        let log = match &requester {
            Requester::Session(session) => session.open_stream(&state.kept_bytes),
            _ => EventLog::new(None, Arc::clone(&state.kept_bytes)),
        };
        let is_primed =
            matches!(&requester, Requester::Session(session) if session.accepts_priming());
        let primed = log.stream.filter(|_| is_primed);
        let delivery = EventDelivery {
            reader: log.read_from(0),
            keep_alive: state.options.keep_alive,
            first: primed.map(|stream| priming_event(EventId { stream, number: 0 })),
            stop: Some(stop.clone()),
            _session: None,
        };
        let work = async move {
            let _held_while_running = (running, permit);
            let context = requester.context(&state, owner, &stop, Some(&*log));
            let result = service.dispatch(request, &context).await;
            if let Some(tracker) = &mut tracker {
                tracker.record_result(&result);
            }
            drop(tracker);
            log.push(&response(&id, &result));
            log.end();
            // Finished responses are kept for resuming, unless all sessions together keep too much.
            if let Requester::Session(session) = &requester
                && state.kept_bytes.load(Ordering::Relaxed) > MAX_KEPT_BYTES
            {
                session.forget_streams();
            }
        };
        self.state.calls.spawn(work.in_current_span());
        delivery.into_response()
    }

    /// Opens the standalone stream of a session, or resumes a response.
    pub(super) fn get(
        &self,
        headers: &HeaderMap,
        owner: u64,
    ) -> Result<Response<HttpBody>, HttpError> {
        if !headers::wants_events(headers) {
            let text = "Not Acceptable: accept text/event-stream";
            return Err(HttpError::with_status(StatusCode::NOT_ACCEPTABLE, text));
        }
        check_known_version(headers)?;
        let session = self.state.sessions.find(headers, owner)?;
        let last = single_value(headers, &LAST_EVENT).map_err(HttpError::bad_request)?;
        let last = last.filter(|last| !last.is_empty());
        let unknown =
            || HttpError::bad_request("Last-Event-ID names an event that is no longer kept");
        let last = last.map(|last| EventId::parse(last).ok_or_else(unknown));
        let last = last.transpose()?;
        if let Some(last) = last.filter(|last| last.stream != STANDALONE_STREAM) {
            let log = session.stream(last.stream).ok_or_else(unknown)?;
            let delivery = EventDelivery {
                reader: log.read_from(last.number),
                keep_alive: self.state.options.keep_alive,
                first: None,
                stop: None,
                _session: Some(session),
            };
            return Ok(delivery.into_response());
        }
        let Some(stream) = session.listen(last.is_some()) else {
            let text = "Conflict: this session already has an open stream";
            return Err(HttpError::with_status(StatusCode::CONFLICT, text));
        };
        let body = self.changes(session, stream, last.map(|last| last.number));
        Ok(reply::events(body))
    }
}
