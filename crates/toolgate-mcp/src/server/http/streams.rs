//! Answers in pieces, and changes as they happen.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::unfold;
use http::{HeaderMap, Response, StatusCode};
use rmcp::model::{ProgressNotificationParam, RequestId};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::body::HttpBody;
use super::changes::UNASKED;
use super::era::{Asker, known_version};
use super::events::{EventId, EventLog, Reader, comment, priming};
use super::headers::{self, LAST_EVENT, only};
use super::reply::{self, Refusal, answered};
use super::table::InUse;
use super::{McpHttp, Shared};
use crate::server::listing::Catalogue;
use crate::server::progress::{Reports, relayed};
use crate::server::service::Call;

/// Bytes of finished answers that are kept for clients of all sessions to come back for.
const MOST_KEPT: usize = 64 * 1024 * 1024;

/// Runs a call: its reports and its answer go into the log.
async fn run(
    catalogue: &Catalogue,
    id: RequestId,
    call: Box<Call>,
    modern: bool,
    stop: &CancellationToken,
    log: &EventLog,
) {
    let token = call.meta.get_progress_token();
    let reports = Arc::new(Reports::default());
    let wanted = token.is_some().then_some(&reports);
    let working = catalogue.call(call, modern, stop, wanted);
    let result = match token {
        None => working.await,
        Some(token) => {
            let tell = |told: ProgressNotificationParam| {
                log.push(&notification("progress", &json!(told)));
                std::future::ready(true)
            };
            relayed(working, &reports, token, tell).await
        }
    };
    log.push(&answered(&id, &result));
    log.end();
}

pub(super) fn notification(what: &str, params: &Value) -> Vec<u8> {
    let method = format!("notifications/{what}");
    let mut message = json!({ "jsonrpc": "2.0", "method": method });
    if !params.is_null() {
        message["params"] = params.clone();
    }
    message.to_string().into_bytes()
}

impl Shared {
    /// A session's call has ended: its answer stays for the client, unless too much stays already.
    pub(super) fn keep(&self, session: &InUse) {
        if self.kept.load(Ordering::Relaxed) > MOST_KEPT {
            session.forget_streams();
        }
    }
}

/// An answer on its way to its client.
struct Delivery {
    reader: Reader,
    keep_alive: Duration,
    /// To be sent first.
    first: Option<Bytes>,
    /// The call, as long as a client that hangs up can only be gone for good.
    stop: Option<CancellationToken>,
    /// A session with an open stream is in use; while the call runs, it is anyway.
    _session: Option<InUse>,
}

impl Delivery {
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

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some(stop) = &self.stop {
            stop.cancel();
        }
    }
}

impl McpHttp {
    /// Answers a call in pieces. It runs in a task of its own: a client that does not read must not hold it up, and one of the
    /// older era may come back for the rest. In the newer one closing the connection cancels the call.
    pub(super) fn streamed(
        &self,
        id: RequestId,
        call: Box<Call>,
        asker: Asker,
    ) -> Response<HttpBody> {
        let (shared, catalogue) = (Arc::clone(&self.shared), Arc::clone(&self.server.catalogue));
        let (log, stop, session, modern) = match asker {
            Asker::Alone(modern) => {
                let log = EventLog::new(None, Arc::clone(&shared.kept));
                (log, shared.life.calls.child_token(), None, modern)
            }
            Asker::Session(session) => {
                let begun = session.begin(id.clone());
                let (log, stop) = (session.open_stream(&shared.kept), begun.stop.clone());
                (log, stop, Some((session, begun)), false)
            }
        };
        let is_primed = |(session, _): &(InUse, _)| session.is_primed();
        let place = log
            .stream
            .filter(|_| session.as_ref().is_some_and(is_primed));
        let delivery = Delivery {
            reader: log.read_from(0),
            keep_alive: shared.options.keep_alive,
            first: place.map(|stream| priming(EventId { stream, number: 0 })),
            stop: Some(stop.clone()),
            _session: None,
        };
        let work = async move {
            run(&catalogue, id, call, modern, &stop, &log).await;
            if let Some((session, _begun)) = session {
                shared.keep(&session);
            }
        };
        self.shared.calls.spawn(work.in_current_span());
        delivery.into_response()
    }

    /// The stream of a session, or the rest of an answer the client has lost the connection to.
    pub(super) fn get(
        &self,
        headers: &HeaderMap,
        owner: u64,
    ) -> Result<Response<HttpBody>, Refusal> {
        if !headers::wants_events(headers) {
            let text = "Not Acceptable: accept text/event-stream";
            return Err(Refusal::of_http(StatusCode::NOT_ACCEPTABLE, text));
        }
        known_version(headers)?;
        let session = self.shared.sessions.find(headers, owner)?;
        let last = only(headers, &LAST_EVENT).map_err(Refusal::bad_request)?;
        let last = last.filter(|last| !last.is_empty());
        let unknown = || Refusal::bad_request("Last-Event-ID names no event that is still kept");
        let place = match last {
            None => None,
            Some(last) => Some(EventId::parse(last).ok_or_else(unknown)?),
        };
        if let Some(place) = place.filter(|place| place.stream != UNASKED) {
            let log = session.stream(place.stream).ok_or_else(unknown)?;
            let delivery = Delivery {
                reader: log.read_from(place.number),
                keep_alive: self.shared.options.keep_alive,
                first: None,
                stop: None,
                _session: Some(session),
            };
            return Ok(delivery.into_response());
        }
        let Some(listening) = session.listen(place.is_some()) else {
            let text = "Conflict: this session has an open stream already";
            return Err(Refusal::of_http(StatusCode::CONFLICT, text));
        };
        let body = self.changes(session, listening, place.map(|place| place.number));
        Ok(reply::events(body))
    }
}
