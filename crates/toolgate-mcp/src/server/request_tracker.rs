//! Reports HTTP requests to an observer that records traces.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::HeaderMap;
use tokio::time::Instant;
use toolgate_core::TraceContext;

use super::client_message::{ClientRequest, RequestParams};
use super::jsonrpc::RequestError;
use super::methods::MethodResult;

/// Is notified of every finished HTTP request, for example to record traces.
// A trait because the crate that records traces depends on this one.
pub trait RequestObserver: Send + Sync {
    /// Called once for each request, when it was answered or its client has disconnected.
    fn answered(&self, request: &FinishedRequest);
}

/// A finished HTTP request of an MCP client. Its tool call, if any, has
/// [`trace`](Self::trace) as its parent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FinishedRequest {
    pub method: String,
    pub tool: Option<String>,
    pub id: String,
    pub revision: Option<String>,
    pub trace: TraceContext,
    pub started_at: SystemTime,
    pub elapsed: Duration,
    /// A JSON-RPC error code, the kind of a tool error, or `cancelled`.
    pub error: Option<String>,
}

/// Reports its request when dropped, so that a client that disconnects is reported too.
pub(super) struct RequestTracker {
    observer: Arc<dyn RequestObserver>,
    request: FinishedRequest,
    started: Instant,
}

impl RequestTracker {
    /// Starts a span for the request, and makes its tool call a child of it.
    pub(super) fn start(
        observer: &Arc<dyn RequestObserver>,
        request: &mut ClientRequest,
        headers: &HeaderMap,
    ) -> Box<Self> {
        let (parent, state) = request.meta.trace();
        let trace = TraceContext::for_request(parent).with_state(state);
        request.meta.set_trace(trace.to_string(), None);
        let revision = headers.get("mcp-protocol-version");
        let revision = revision.and_then(|revision| revision.to_str().ok());
        Box::new(Self {
            observer: Arc::clone(observer),
            request: FinishedRequest {
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
                // Reported if the request is dropped before it has a result.
                error: Some("cancelled".to_owned()),
            },
            started: Instant::now(),
        })
    }

    pub(super) fn record_result(&mut self, result: &Result<MethodResult, RequestError>) {
        self.request.error = match result {
            Ok(result) => result.error_kind().map(str::to_owned),
            Err(error) => Some(error.code.to_string()),
        };
    }

    pub(super) fn record_early_answer(&mut self, error: Option<&RequestError>) {
        self.request.error = error.map(|error| error.code.to_string());
    }
}

impl Drop for RequestTracker {
    fn drop(&mut self) {
        self.request.elapsed = self.started.elapsed();
        self.observer.answered(&self.request);
    }
}
