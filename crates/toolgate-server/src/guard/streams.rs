//! Answers without an end of their own: how many there may be, and when they are cut.

use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{Method, StatusCode, header};
use tracing::debug;

use super::body::Stream;
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
}

impl Streams {
    pub(super) fn new(settings: &ServeSettings) -> Self {
        Self {
            events: Rooms::new(EVENTS, settings),
            listeners: Rooms::new(LISTENERS, settings),
        }
    }

    pub(super) fn taken(&self) -> usize {
        self.events.taken() + self.listeners.taken()
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
        }
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
        let (place, end) = if asker.is_get {
            match self.watched_by(&asker) {
                Ok(place) => (Some(place), self.gateway.stopping()),
                Err(problem) => return (problem.into_response(), None),
            }
        } else {
            // It has begun to work: it is still under way.
            (asker.place, self.gateway.calls())
        };
        let cut = Box::pin(end.clone().cancelled_owned());
        debug!(streams = self.streams.taken(), "a stream was opened");
        let stream = Stream { _place: place, cut };
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
