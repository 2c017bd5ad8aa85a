//! Builds responses that stream server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::Event;
use axum::response::{IntoResponse, Response, Sse};
use futures::Stream;
use http::{HeaderName, HeaderValue, header};
use serde::Serialize;

/// A comment is sent at this interval, so that both sides notice if the other is gone.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

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

pub(super) fn event(kind: &str, data: &impl Serialize) -> Event {
    let data = serde_json::to_string(data).unwrap_or_default();
    Event::default().event(kind).data(data)
}

pub(super) fn keep_alive() -> Event {
    Event::default().comment("")
}
