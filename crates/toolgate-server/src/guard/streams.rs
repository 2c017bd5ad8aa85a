//! Limits event streams, which are responses without an end, and ends them on shutdown.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::header;
use tracing::debug;

use super::RequestGuard;
use super::body::StreamLease;
use super::caller_permits::{CallerPermit, CallerPermits};
use super::evicting_permits::EvictingPermits;
use super::memory::MemoryLease;
use crate::ServeSettings;
use crate::problem::Problem;

// Event streams that may be open at once.
const MAX_EVENT_STREAMS: usize = 256;
// Streams of MCP clients. Every client of the older revisions keeps one.
const MAX_MCP_STREAMS: usize = 1024;

/// Separate limits, so that MCP clients can't take the streams of people who watch the gateway.
pub(super) struct StreamLimits {
    events: CallerPermits,
    // Used if no token is needed, because callers can't be distinguished then.
    anonymous: EvictingPermits,
    mcp: CallerPermits,
}

pub(super) struct StreamRequester {
    pub(super) number: u64,
    pub(super) is_unrestricted: bool,
    pub(super) is_get: bool,
    pub(super) is_mcp: bool,
    pub(super) permit: Option<CallerPermit>,
    // Held until the request is answered.
    pub(super) memory: Arc<MemoryLease>,
}

impl StreamLimits {
    pub(super) fn new(settings: &ServeSettings) -> Self {
        Self {
            events: CallerPermits::new(MAX_EVENT_STREAMS, settings),
            anonymous: EvictingPermits::new(MAX_EVENT_STREAMS),
            mcp: CallerPermits::new(MAX_MCP_STREAMS, settings),
        }
    }

    pub(super) fn taken(&self) -> usize {
        self.events.taken() + self.anonymous.taken() + self.mcp.taken()
    }
}

impl RequestGuard {
    /// Makes a stream hold a permit while it lasts, and end when the gateway stops: at once if it
    /// only watches, or together with the running calls if it is the response to a call.
    pub(super) fn limit_stream(
        &self,
        response: Response,
        requester: Option<StreamRequester>,
    ) -> (Response, Option<StreamLease>) {
        let kind = response.headers().get(header::CONTENT_TYPE);
        let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let Some(requester) = requester.filter(|_| is_stream) else {
            return (response, None);
        };
        let is_anonymous = requester.is_get && !requester.is_mcp && requester.number == 0;
        let anonymous = is_anonymous.then(|| self.streams.anonymous.acquire());
        let (permit, stop) = if anonymous.is_some() {
            (None, &self.gateway.stopping)
        } else if requester.is_get {
            match self.acquire_stream_permit(&requester) {
                Ok(permit) => (Some(permit), &self.gateway.stopping),
                Err(problem) => return (problem.into_response(), None),
            }
        } else {
            // The response to a call keeps the permit of its request.
            (requester.permit, &self.gateway.calls)
        };
        let revoked = self.auth.tokens.load().revoked(requester.number);
        let stop = stop.clone();
        let evicted = anonymous.as_ref().map(|permit| permit.evicted.clone());
        let evicted = evicted.unwrap_or_default();
        let end = Box::pin(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = revoked.cancelled() => {}
                () = evicted.cancelled() => {}
            }
        });
        debug!(streams = self.streams.taken(), "a stream was opened");
        let stream = StreamLease {
            _permit: permit,
            _anonymous: anonymous,
            _memory: requester.memory,
            end,
        };
        (response, Some(stream))
    }

    fn acquire_stream_permit(&self, requester: &StreamRequester) -> Result<CallerPermit, Problem> {
        let permits = match requester.is_mcp {
            true => &self.streams.mcp,
            false => &self.streams.events,
        };
        let permit = permits.acquire(requester.number, requester.is_unrestricted);
        permit.map_err(|most| {
            let detail = format!(
                "too many streams are open (the limit here is {most}); close one, or try again later"
            );
            Problem::unavailable(detail).retry_after(5)
        })
    }
}
