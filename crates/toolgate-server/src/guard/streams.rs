//! Answers without an end of their own: how many there may be, and when they are cut.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{Method, StatusCode, header};
use tracing::debug;

use super::body::Stream;
use super::evicting::EvictingPlaces;
use super::memory::MemoryLease;
use super::room::{Place, Rooms};
use super::{Caller, Guard};
use crate::ServeSettings;
use crate::problem::Problem;

/// Streams of events that may be open at once.
const EVENTS: usize = 256;
/// The same for streams of MCP: every client of the older revisions keeps one.
const LISTENERS: usize = 1024;

/// The streams that only watch. Those of MCP clients take nothing away from who watches the gateway.
pub(super) struct Streams {
    events: Rooms,
    /// The same where no token is needed: nobody can be told apart there.
    anonymous: EvictingPlaces,
    listeners: Rooms,
}

/// Who is answered, as far as it matters once the request is gone.
pub(super) struct Asker {
    number: u64,
    is_full: bool,
    is_get: bool,
    is_mcp: bool,
    /// The request's own.
    place: Option<Place>,
    memory: Option<Arc<MemoryLease>>,
}

impl Streams {
    pub(super) fn new(settings: &ServeSettings) -> Self {
        Self {
            events: Rooms::new(EVENTS, settings),
            anonymous: EvictingPlaces::new(EVENTS),
            listeners: Rooms::new(LISTENERS, settings),
        }
    }

    pub(super) fn taken(&self) -> usize {
        self.events.taken() + self.anonymous.taken() + self.listeners.taken()
    }
}

impl Asker {
    pub(super) fn of(caller: Option<&Caller>, parts: &Parts, place: Option<Place>) -> Self {
        Self {
            number: caller.map_or(0, |caller| caller.number),
            is_full: caller.is_some_and(|caller| caller.scope.is_everything()),
            is_get: parts.method == Method::GET,
            is_mcp: parts.uri.path() == "/mcp",
            place,
            memory: None,
        }
    }
}

impl Asker {
    /// What the request takes is free again when it is answered.
    pub(super) fn holds(&mut self, memory: Arc<MemoryLease>) {
        self.memory = Some(memory);
    }
}

impl Guard {
    /// A stream takes a place for as long as it lasts, and ends with the gateway: one that only watches at once, one that
    /// works when its calls do.
    pub(super) fn bounded(
        &self,
        response: Response,
        asker: Option<Asker>,
    ) -> (Response, Option<Stream>) {
        let kind = response.headers().get(header::CONTENT_TYPE);
        let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let Some(asker) = asker.filter(|_| is_stream) else {
            return (response, None);
        };
        let is_anonymous = asker.is_get && !asker.is_mcp && asker.number == 0;
        let anonymous = is_anonymous.then(|| self.streams.anonymous.enter());
        let (place, end) = if anonymous.is_some() {
            (None, self.gateway.stopping())
        } else if asker.is_get {
            match self.watched_by(&asker) {
                Ok(place) => (Some(place), self.gateway.stopping()),
                Err(problem) => return (problem.into_response(), None),
            }
        } else {
            // It has begun to work: it is still under way.
            (asker.place, self.gateway.calls())
        };
        let revoked = self.keys.tokens.load().revoked(asker.number);
        let end = end.clone();
        let evicted = anonymous.as_ref().map(|place| place.evicted().clone());
        let evicted = evicted.unwrap_or_default();
        let cut = Box::pin(async move {
            tokio::select! {
                () = end.cancelled() => {}
                () = revoked.cancelled() => {}
                () = evicted.cancelled() => {}
            }
        });
        debug!(streams = self.streams.taken(), "a stream was opened");
        let stream = Stream {
            _place: place,
            _anonymous: anonymous,
            _memory: asker.memory,
            cut,
        };
        (response, Some(stream))
    }

    fn watched_by(&self, asker: &Asker) -> Result<Place, Problem> {
        let rooms = match asker.is_mcp {
            true => &self.streams.listeners,
            false => &self.streams.events,
        };
        rooms
            .enter(asker.number, asker.is_full)
            .map_err(|most| {
                let detail = format!(
                    "there is no room for another stream ({most} may be open here); close one, or try again later"
                );
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(5)
            })
    }
}
