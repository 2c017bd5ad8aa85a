//! Streamed responses and subscriptions.

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
use crate::server::methods::RequestContext;
use crate::server::request_tracker::RequestTracker;

// Bytes of finished responses kept for clients of all sessions to resume.
const MAX_KEPT: usize = 64 * 1024 * 1024;

struct EventDelivery {
    reader: EventReader,
    keep_alive: Duration,
    first: Option<Bytes>,
    // Cancels the call, as long as a client that disconnects can't resume.
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
            // From here on the client has an event id to resume from, so hanging
            // up no longer cancels.
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
    /// Answers a request with a stream. It runs in its own task: a client that doesn't read must
    /// not hold it up, and a client of the older era may reconnect for the rest. In the newer era
    /// closing the connection cancels it.
    pub(super) fn stream(
        &self,
        request: ClientRequest,
        requester: Requester,
        mut tracker: Option<Box<RequestTracker>>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Response<HttpBody> {
        let (state, service) = (Arc::clone(&self.state), Arc::clone(&self.service));
        let (id, lifecycle) = (request.id.clone(), requester.lifecycle());
        let (stop, running) = self.begin(&id, &requester);
        let log = match &requester {
            Requester::Session(session) => session.open_stream(&state.kept_bytes),
            _ => EventLog::new(None, Arc::clone(&state.kept_bytes)),
        };
        let is_primed = matches!(&requester, Requester::Session(session) if session.is_primed());
        let primed = log.stream.filter(|_| is_primed);
        let delivery = EventDelivery {
            reader: log.read_from(0),
            keep_alive: state.options.keep_alive,
            first: primed.map(|stream| priming_event(EventId { stream, number: 0 })),
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
                tracker.record_result(&result);
            }
            drop(tracker);
            log.push(&response(&id, &result));
            log.end();
            // The response is kept unless too much is kept already.
            if let Requester::Session(session) = &requester
                && state.kept_bytes.load(Ordering::Relaxed) > MAX_KEPT
            {
                session.forget_streams();
            }
        };
        self.state.calls.spawn(work.in_current_span());
        delivery.into_response()
    }

    pub(super) fn get(
        &self,
        headers: &HeaderMap,
        owner: u64,
    ) -> Result<Response<HttpBody>, HttpError> {
        if !headers::wants_events(headers) {
            let text = "Not Acceptable: accept text/event-stream";
            return Err(HttpError::refused(StatusCode::NOT_ACCEPTABLE, text));
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
            return Err(HttpError::refused(StatusCode::CONFLICT, text));
        };
        let body = self.changes(session, stream, last.map(|last| last.number));
        Ok(reply::events(body))
    }
}
