//! Answers in pieces, and changes as they happen.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::unfold;
use http::{HeaderMap, Response, StatusCode};
use rmcp::model::{
    ProgressNotificationParam, RequestId, SubscriptionFilter, SubscriptionsListenResult,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::body::HttpBody;
use super::events::{EventId, EventLog, Reader, comment, event, priming};
use super::headers::{self, Accepts, LAST_EVENT, only};
use super::reply::{self, Refusal, answered};
use super::session::{InUse, Listening};
use super::{McpHttp, Shared, known_version};
use crate::server::listing::{Catalogue, Watch};
use crate::server::progress::{Reports, relayed};
use crate::server::service::Call;

/// Bytes of finished answers that are kept for clients of all sessions to come back for.
const MOST_KEPT: usize = 64 * 1024 * 1024;
/// The stream of what nobody asked for.
const UNASKED: u64 = 0;

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

fn notification(what: &str, params: &Value) -> Vec<u8> {
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
    _session: InUseStream,
}

/// Keeps a session from being taken for unused while a stream is open.
type InUseStream = Option<InUse>;

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

    /// Tells a session's client that the list of tools is another one, from the list on that it knows.
    fn changes(&self, session: InUse, listening: Listening, read: Option<u64>) -> HttpBody {
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
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return Err(Refusal::of_http(status, text));
        };
        let catalogue = &self.server.catalogue;
        let accepted = Catalogue::accepted(requested);
        let params = json!({
            "_meta": { "io.modelcontextprotocol/subscriptionId": id },
            "notifications": accepted,
        });
        let mut end = SubscriptionsListenResult::complete(id.clone());
        end.meta.set_server_info(catalogue.implementation());
        let mut end = Some(event(None, &answered(id, &end)));
        let changes = Changes {
            watch: catalogue.watch(),
            first: Some(event(
                None,
                &notification("subscriptions/acknowledged", &params),
            )),
            over: self.shared.life.ending.clone(),
            keep_alive: self.shared.options.keep_alive,
        };
        let (tells, id) = (accepted.tools_list_changed == Some(true), id.clone());
        let body = unfold((changes, listener), move |(mut changes, listener)| {
            let (end, id) = (changes.over.is_cancelled().then(|| end.take()), id.clone());
            async move {
                if let Some(end) = end {
                    return Some((end?, (changes, listener)));
                }
                loop {
                    let bytes = match changes.next().await {
                        Some(Change::Other(bytes)) => bytes,
                        Some(Change::OfTheList) if !tells => continue,
                        Some(Change::OfTheList) => event(None, &list_changed(Some(&id))),
                        // The end is told with the next look.
                        None => Bytes::new(),
                    };
                    return Some((bytes, (changes, listener)));
                }
            }
        });
        Ok(reply::events(HttpBody::events(body)))
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
