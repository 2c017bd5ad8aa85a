//! Answers in pieces, and changes as they happen.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::unfold;
use http::{HeaderMap, Response, StatusCode};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::body::HttpBody;
use super::changes::{ListenerPermit, UNASKED};
use super::events::{EventId, EventLog, EventReader, comment, priming};
use super::headers::{self, LAST_EVENT, known_version, only};
use super::post::Requester;
use super::reply::{self, HttpError};
use super::table::SessionGuard;
use super::{HttpState, McpHttp};
use crate::server::client_message::ClientRequest;
use crate::server::jsonrpc::response;
use crate::server::methods::RequestContext;
use crate::server::request_tracker::RequestTracker;

/// Bytes of finished answers that are kept for clients of all sessions to come back for.
const MOST_KEPT: usize = 64 * 1024 * 1024;

impl HttpState {
    /// A session's call has ended: its answer stays for the client, unless too much stays already.
    pub(super) fn keep(&self, session: &SessionGuard) {
        if self.kept.load(Ordering::Relaxed) > MOST_KEPT {
            session.forget_streams();
        }
    }
}

/// An answer on its way to its client.
struct EventDelivery {
    reader: EventReader,
    keep_alive: Duration,
    first: Option<Bytes>,
    /// The call, as long as a client that hangs up can only be gone for good.
    stop: Option<CancellationToken>,
    /// A session with an open stream is in use; while the call runs, it is anyway.
    _session: Option<SessionGuard>,
}

impl EventDelivery {
    async fn next(&mut self) -> Option<Bytes> {
        let bytes = match self.first.take() {
            Some(first) => first,
            None => tokio::select! {
                event = self.reader.next() => event?,
                () = tokio::time::sleep(self.keep_alive) => return Some(comment()),
            },
        };
        if self.reader.log.stream.is_some() {
            // From here on the client knows a place to come back to.
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
    /// Answers a request in pieces. It runs in a task of its own: a client that does not read must not
    /// hold it up, and one of the older era may come back for the rest. In the newer one closing the
    /// connection cancels it.
    pub(super) fn stream(
        &self,
        request: ClientRequest,
        requester: Requester,
        mut tracker: Option<Box<RequestTracker>>,
        permit: Option<ListenerPermit>,
    ) -> Response<HttpBody> {
        let (state, service) = (Arc::clone(&self.state), Arc::clone(&self.service));
        let (id, lifecycle) = (request.id.clone(), requester.lifecycle());
        let (stop, running) = self.begin(&id, &requester);
        let log = match &requester {
            Requester::Session(session) => session.open_stream(&state.kept),
            _ => EventLog::new(None, Arc::clone(&state.kept)),
        };
        let is_primed = matches!(&requester, Requester::Session(session) if session.is_primed());
        let place = log.stream.filter(|_| is_primed);
        let delivery = EventDelivery {
            reader: log.read_from(0),
            keep_alive: state.options.keep_alive,
            first: place.map(|stream| priming(EventId { stream, number: 0 })),
            stop: Some(stop.clone()),
            _session: None,
        };
        let work = async move {
            let _until_the_end = (running, permit);
            let context = RequestContext {
                lifecycle,
                stop: &stop,
                ending: &state.lifetime.ending,
                sink: Some(&*log),
            };
            let result = service.dispatch(request, &context).await;
            if let Some(tracker) = &mut tracker {
                tracker.answered(&result);
            }
            drop(tracker);
            log.push(&response(&id, &result));
            log.end();
            if let Requester::Session(session) = &requester {
                state.keep(session);
            }
        };
        self.state.calls.spawn(work.in_current_span());
        delivery.into_response()
    }

    /// The stream of a session, or the rest of an answer the client has lost the connection to.
    pub(super) fn get(
        &self,
        headers: &HeaderMap,
        owner: u64,
    ) -> Result<Response<HttpBody>, HttpError> {
        if !headers::wants_events(headers) {
            let text = "Not Acceptable: accept text/event-stream";
            return Err(HttpError::of_http(StatusCode::NOT_ACCEPTABLE, text));
        }
        known_version(headers)?;
        let session = self.state.sessions.find(headers, owner)?;
        let last = only(headers, &LAST_EVENT).map_err(HttpError::bad_request)?;
        let last = last.filter(|last| !last.is_empty());
        let unknown = || HttpError::bad_request("Last-Event-ID names no event that is still kept");
        let place = match last {
            None => None,
            Some(last) => Some(EventId::parse(last).ok_or_else(unknown)?),
        };
        if let Some(place) = place.filter(|place| place.stream != UNASKED) {
            let log = session.stream(place.stream).ok_or_else(unknown)?;
            let delivery = EventDelivery {
                reader: log.read_from(place.number),
                keep_alive: self.state.options.keep_alive,
                first: None,
                stop: None,
                _session: Some(session),
            };
            return Ok(delivery.into_response());
        }
        let Some(stream) = session.listen(place.is_some()) else {
            let text = "Conflict: this session has an open stream already";
            return Err(HttpError::of_http(StatusCode::CONFLICT, text));
        };
        let body = self.changes(session, stream, place.map(|place| place.number));
        Ok(reply::events(body))
    }
}
