//! Requests of clients, told to whoever records traces. Where nobody does, it costs a look whether somebody does.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName};
use rmcp::model::{RequestId, RequestMetaObject};
use tokio::time::Instant;
use toolgate_core::Trace;

use super::listing::Catalogue;

const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// The trace that a request's headers name, in the words of the W3C.
///
/// ```
/// use toolgate_mcp::CallerTrace;
///
/// let mut headers = http::HeaderMap::new();
/// assert!(CallerTrace::of(&headers).is_none());
/// headers.insert("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse()?);
/// headers.append("tracestate", "a=1".parse()?);
/// headers.append("tracestate", "b=2".parse()?);
/// let trace = CallerTrace::of(&headers);
/// assert_eq!(trace.and_then(|trace| trace.state).as_deref(), Some("a=1,b=2"));
/// # Ok::<_, http::header::InvalidHeaderValue>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerTrace {
    /// `traceparent`, whatever it says.
    pub parent: String,
    /// `tracestate`, which may be spread over several headers.
    pub state: Option<String>,
}

impl CallerTrace {
    /// None if they name none.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let parent = headers.get(TRACE_PARENT)?.to_str().ok()?;
        let states = headers.get_all(TRACE_STATE).iter();
        let states: Result<Vec<&str>, _> = states.map(http::HeaderValue::to_str).collect();
        let states = states.ok().filter(|states| !states.is_empty());
        Some(Self {
            parent: parent.to_owned(),
            state: states.map(|states| states.join(",")),
        })
    }
}

/// Hears of every request that came over HTTP, once it is answered.
pub trait RequestObserver: Send + Sync {
    /// One was answered, or its client is gone.
    fn answered(&self, request: &AnsweredRequest);
}

/// A request of a client, when it is over. A call of it has [`trace`](Self::trace) as its parent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AnsweredRequest {
    /// Its method, as the client wrote it.
    pub method: String,
    /// The tool that was asked for.
    pub tool: Option<String>,
    /// The JSON-RPC id.
    pub id: String,
    /// The revision of the protocol that the client named, if it did.
    pub revision: Option<String>,
    /// Its place in a trace.
    pub trace: Trace,
    /// When it came.
    pub started_at: SystemTime,
    /// How long it took.
    pub elapsed: Duration,
    /// What went wrong: a JSON-RPC error code, or the kind of a call's error.
    pub error: Option<String>,
}

/// A request under way. It is told of when this is dropped.
pub(super) struct Watched {
    observer: Arc<dyn RequestObserver>,
    request: AnsweredRequest,
    started: Instant,
}

impl Watched {
    /// It is answered with a result.
    pub(super) fn succeeded(&mut self) {
        self.request.error = None;
    }

    /// It is answered with an error of this kind.
    pub(super) fn failed(&mut self, kind: impl Into<String>) {
        self.request.error = Some(kind.into());
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.request.elapsed = self.started.elapsed();
        self.observer.answered(&self.request);
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

impl Catalogue {
    /// Watches a request, if anybody wants to hear of it: what it does then belongs to its span. The client's own is what `_meta`
    /// says, else what the headers say.
    pub(super) fn watched(
        &self,
        (method, tool): (&str, Option<&str>),
        id: &RequestId,
        headers: &HeaderMap,
        meta: &mut RequestMetaObject,
    ) -> Option<Box<Watched>> {
        take_over(headers, meta);
        let observer = self.requests.get()?;
        let trace = Trace::around(meta.get_traceparent()).with_state(meta.get_tracestate());
        meta.set_traceparent(trace.to_string());
        let revision = headers.get("mcp-protocol-version");
        let revision = revision.and_then(|revision| revision.to_str().ok());
        Some(Box::new(Watched {
            observer: Arc::clone(observer),
            request: AnsweredRequest {
                method: method.to_owned(),
                tool: tool.map(str::to_owned),
                id: id.to_string(),
                revision: revision.map(str::to_owned),
                trace,
                started_at: SystemTime::now(),
                elapsed: Duration::ZERO,
                // Until it is answered.
                error: Some("cancelled".to_owned()),
            },
            started: Instant::now(),
        }))
    }
}

/// A client that knows HTTP better than MCP says its trace in headers.
fn take_over(headers: &HeaderMap, meta: &mut RequestMetaObject) {
    if headers.contains_key(TRACE_PARENT)
        && meta.get_traceparent().is_none()
        && let Some(CallerTrace { parent, state }) = CallerTrace::of(headers)
    {
        meta.set_traceparent(parent);
        if let Some(state) = state {
            meta.set_tracestate(state);
        }
    }
}
