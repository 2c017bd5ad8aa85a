//! Answers in pieces, and changes as they happen.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::unfold;
use http::{HeaderMap, Response, StatusCode};
use rmcp::model::{ProgressNotificationParam, RequestId};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::body::HttpBody;
use super::changes::UNASKED;
use super::era::known_version;
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
pub(super) async fn run(
    catalogue: &Catalogue,
    id: RequestId,
    call: Call,
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

/// An answer on its way to a client of the older era.
struct Delivery {
    reader: Reader,
    keep_alive: Duration,
    /// To be sent first.
    first: Option<Bytes>,
    /// As long as the client has no place to come back to, it can only be gone for good.
    not_resumable: Option<CancellationToken>,
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
        self.not_resumable = None;
        Some(bytes)
    }

    fn into_body(self) -> HttpBody {
        HttpBody::events(unfold(self, |mut delivery| async {
            let bytes = delivery.next().await?;
            Some((bytes, delivery))
        }))
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some(stop) = &self.not_resumable
            && !self.reader.log.is_over()
        {
            stop.cancel();
        }
    }
}

impl McpHttp {
    /// The body of the response that a call is answered with first.
    pub(super) fn first_reading(
        &self,
        log: &Arc<EventLog>,
        session: &InUse,
        stop: CancellationToken,
    ) -> HttpBody {
        let place = log.stream.filter(|_| session.is_primed());
        let delivery = Delivery {
            reader: log.read_from(0),
            keep_alive: self.shared.options.keep_alive,
            first: place.map(|stream| priming(EventId { stream, number: 0 })),
            not_resumable: Some(stop),
            _session: None,
        };
        delivery.into_body()
    }

    /// Answers a call of the newer era in pieces. The body runs it: closing the connection cancels it.
    pub(super) fn streamed(&self, id: RequestId, call: Call, modern: bool) -> Response<HttpBody> {
        let log = EventLog::new(None, Arc::clone(&self.shared.kept));
        let catalogue = Arc::clone(&self.server.catalogue);
        let stop = self.shared.life.calls.child_token();
        let reader = log.read_from(0);
        let running = Running {
            work: Some(Box::pin(async move {
                run(&catalogue, id, call, modern, &stop, &log).await;
            })),
            reader,
            keep_alive: self.shared.options.keep_alive,
            _under_way: self.shared.calls.token(),
        };
        reply::events(HttpBody::events(unfold(running, |mut running| async {
            let bytes = running.next().await?;
            Some((bytes, running))
        })))
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
                not_resumable: None,
                _session: Some(session),
            };
            return Ok(reply::events(delivery.into_body()));
        }
        let Some(listening) = session.listen(place.is_some()) else {
            let text = "Conflict: this session has an open stream already";
            return Err(Refusal::of_http(StatusCode::CONFLICT, text));
        };
        let body = self.changes(session, listening, place.map(|place| place.number));
        Ok(reply::events(body))
    }
}

/// A call that its own response runs.
struct Running {
    work: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    reader: Reader,
    keep_alive: Duration,
    _under_way: TaskTrackerToken,
}

impl Running {
    async fn next(&mut self) -> Option<Bytes> {
        let Some(work) = &mut self.work else {
            return self.reader.next().await;
        };
        tokio::select! {
            biased;
            event = self.reader.next() => return event,
            () = work => {}
            () = tokio::time::sleep(self.keep_alive) => return Some(comment()),
        }
        self.work = None;
        self.reader.next().await
    }
}
