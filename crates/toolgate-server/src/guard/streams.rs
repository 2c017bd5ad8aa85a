//! Answers without an end of their own: how many there may be, and when they are cut.

use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{Method, StatusCode, header};
use tracing::debug;

use super::body::Stream;
use super::room::{Place, Places, Shares};
use super::{Caller, Guard};
use crate::ServeSettings;
use crate::problem::Problem;

/// Streams of events that may be open at once, and those of one caller who may not use everything.
const EVENTS: (usize, usize) = (256, 64);
/// The same for streams of MCP: every client of the older revisions keeps one.
const LISTENERS: (usize, usize) = (1024, 256);

/// The streams that only watch. Those of MCP clients take nothing away from who watches the gateway.
pub(super) struct Streams {
    events: Shares,
    listeners: Shares,
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
        // `serve.token` has the number 1, the first of `serve.tokens` 2.
        let callers = settings.tokens.len() + 1;
        let shares = |(places, share)| Shares::new(places, share, callers);
        Self {
            events: shares(EVENTS),
            listeners: shares(LISTENERS),
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
        let (places, end) = if asker.is_get {
            match self.watched_by(&asker) {
                Ok(places) => (places, self.gateway.stopping()),
                Err(problem) => return (problem.into_response(), None),
            }
        } else {
            // It has begun to work: it is still under way.
            let places = asker.place.map(Places::from).unwrap_or_default();
            (places, self.gateway.calls())
        };
        let cut = Box::pin(end.clone().cancelled_owned());
        debug!(streams = self.streams.taken(), "a stream was opened");
        let stream = Stream {
            _places: places,
            cut,
        };
        (response, Some(stream))
    }

    fn watched_by(&self, asker: &Asker) -> Result<Places, Problem> {
        let shares = match asker.is_mcp {
            true => &self.streams.listeners,
            false => &self.streams.events,
        };
        shares
            .enter(asker.number, asker.is_full)
            .map_err(|most| {
                let detail = format!(
                    "there is no room for another stream ({most} may be open here); close one, or try again later"
                );
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(5)
            })
    }
}
