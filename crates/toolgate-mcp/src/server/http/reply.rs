//! HTTP responses. Errors carry a JSON-RPC error too, because that is what clients read.

use std::borrow::Cow;

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use super::body::HttpBody;
use super::events::event;
use super::headers::AcceptedTypes;
use crate::server::jsonrpc::{RequestError, RequestId, error_response};

// MCP doesn't define these codes; other servers use the same.
const SESSION_NOT_FOUND: i32 = -32001;
const SERVER_ERROR: i32 = -32000;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

#[derive(Debug)]
pub(super) struct HttpError {
    status: StatusCode,
    pub(super) error: RequestError,
}

impl HttpError {
    pub(super) fn new(status: StatusCode, error: RequestError) -> Self {
        Self { status, error }
    }

    // For errors that HTTP defines and MCP doesn't.
    pub(super) fn with_status(status: StatusCode, text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(status, RequestError::new(SERVER_ERROR, text))
    }

    pub(super) fn bad_request(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, RequestError::invalid_request(text))
    }

    pub(super) fn header_mismatch(text: impl Into<Cow<'static, str>>) -> Self {
        let error = RequestError::new(RequestError::HEADER_MISMATCH, text);
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    pub(super) fn session_not_found() -> Self {
        let text = "Session not found: it has ended or never existed; send initialize again";
        let error = RequestError::new(SESSION_NOT_FOUND, text);
        Self::new(StatusCode::NOT_FOUND, error)
    }

    // The response also gets `Retry-After`.
    pub(super) fn busy(text: &'static str) -> Self {
        Self::with_status(StatusCode::SERVICE_UNAVAILABLE, text)
    }

    pub(super) fn into_response(self, id: Option<&RequestId>) -> Response<HttpBody> {
        let mut response = with_json(self.status, error_response(id, &self.error));
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

pub(super) fn message(accepts: AcceptedTypes, message: Vec<u8>) -> Response<HttpBody> {
    if accepts.json {
        with_json(StatusCode::OK, message)
    } else {
        events(HttpBody::whole(event(None, &message)))
    }
}

fn with_json(status: StatusCode, message: Vec<u8>) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::whole(message));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

pub(super) fn events(body: HttpBody) -> Response<HttpBody> {
    const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENT_STREAM);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // nginx and others buffer event streams unless told not to.
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}

/// Reuses the request's header map for the response. It has room for all headers that are added
/// later; growing a new map costs more than all header checks.
pub(super) fn reuse_header_map(
    mut map: HeaderMap,
    mut response: Response<HttpBody>,
) -> Response<HttpBody> {
    map.clear();
    map.extend(std::mem::take(response.headers_mut()));
    *response.headers_mut() = map;
    response
}

pub(super) fn empty(status: StatusCode) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::whole(""));
    *response.status_mut() = status;
    response
}

pub(super) fn method_not_allowed(allowed: &'static str) -> Response<HttpBody> {
    let text = "this method is not served here";
    let mut response =
        HttpError::with_status(StatusCode::METHOD_NOT_ALLOWED, text).into_response(None);
    let allowed = HeaderValue::from_static(allowed);
    response.headers_mut().insert(ALLOW, allowed);
    response
}
