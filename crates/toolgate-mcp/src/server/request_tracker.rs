//! Requests of clients, told to whoever records traces.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::HeaderMap;
use tokio::time::Instant;
use toolgate_core::Trace;

use super::client_message::{ClientRequest, RequestParams};
use super::jsonrpc::RequestError;
use super::methods::MethodResult;

/// Hears of every request that came over HTTP, once it is answered.
// A trait because traces are recorded in a crate above this one.
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

/// A request under way. Its observer is told when this is dropped.
pub(super) struct RequestTracker {
    observer: Arc<dyn RequestObserver>,
    request: AnsweredRequest,
    started: Instant,
}

impl RequestTracker {
    /// What the request does from now on belongs to its span.
    pub(super) fn start(
        observer: &Arc<dyn RequestObserver>,
        request: &mut ClientRequest,
        headers: &HeaderMap,
    ) -> Box<Self> {
        let (parent, state) = request.meta.trace();
        let trace = Trace::around(parent).with_state(state);
        request.meta.set_trace(trace.to_string(), None);
        let revision = headers.get("mcp-protocol-version");
        let revision = revision.and_then(|revision| revision.to_str().ok());
        Box::new(Self {
            observer: Arc::clone(observer),
            request: AnsweredRequest {
                method: request.method().to_owned(),
                tool: match &request.params {
                    RequestParams::CallTool(call) => Some(call.name.clone()),
                    _ => None,
                },
                id: request.id.to_string(),
                revision: revision.map(str::to_owned),
                trace,
                started_at: SystemTime::now(),
                elapsed: Duration::ZERO,
                // Until it is answered.
                error: Some("cancelled".to_owned()),
            },
            started: Instant::now(),
        })
    }

    pub(super) fn answered(&mut self, result: &Result<MethodResult, RequestError>) {
        self.request.error = match result {
            Ok(result) => result.error_kind().map(str::to_owned),
            Err(error) => Some(error.code.to_string()),
        };
    }

    /// It is answered with a stream, or with an error of HTTP.
    pub(super) fn answered_early(&mut self, error: Option<&RequestError>) {
        self.request.error = error.map(|error| error.code.to_string());
    }
}

impl Drop for RequestTracker {
    fn drop(&mut self) {
        self.request.elapsed = self.started.elapsed();
        self.observer.answered(&self.request);
    }
}
