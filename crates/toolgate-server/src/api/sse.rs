//! Answers that go on: server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::Event;
use axum::response::{IntoResponse, Response, Sse};
use futures::Stream;
use http::{HeaderName, HeaderValue, header};
use serde::Serialize;

/// A comment so often shows both ends that the other one is there.
pub(super) const BEAT: Duration = Duration::from_secs(15);

/// A response of these events. Nothing between here and the reader may collect or keep them.
pub(super) fn response<S>(events: S) -> Response
where
    S: Stream<Item = Result<Event, Infallible>> + Send + 'static,
{
    let mut response = Sse::new(events).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}

/// One event with JSON on one line.
pub(super) fn event(kind: &str, data: &impl Serialize) -> Event {
    let data = serde_json::to_string(data).unwrap_or_default();
    Event::default().event(kind).data(data)
}

/// Says nothing, so that the connection is known to live.
pub(super) fn beat() -> Event {
    Event::default().comment("")
}
