//! Responses. Whatever goes wrong is told as a JSON-RPC error too: it is what clients read.

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde::Serialize;
use tracing::warn;

use super::body::HttpBody;
use super::events::event;
use super::headers::Accepts;

/// Codes of our own, as other servers have them.
const SESSION_NOT_FOUND: ErrorCode = ErrorCode(-32001);
const REFUSED: ErrorCode = ErrorCode(-32000);

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// A refusal: the response's status, and what is wrong.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) error: ErrorData,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, error: ErrorData) -> Self {
        Self { status, error }
    }

    /// Of HTTP, not of MCP.
    pub(super) fn of_http(status: StatusCode, text: &'static str) -> Self {
        Self::new(status, ErrorData::new(REFUSED, text, None))
    }

    pub(super) fn bad_request(text: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            ErrorData::invalid_request(text, None),
        )
    }

    pub(super) fn mismatch(text: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            ErrorData::header_mismatch(text, None),
        )
    }

    pub(super) fn no_such_session() -> Self {
        let text = "Session not found: it has ended or never began; send initialize again";
        Self::new(
            StatusCode::NOT_FOUND,
            ErrorData::new(SESSION_NOT_FOUND, text, None),
        )
    }

    /// Later, if the client can do nothing but come back.
    pub(super) fn busy(text: &'static str) -> Self {
        Self::of_http(StatusCode::SERVICE_UNAVAILABLE, text)
    }

    pub(super) fn under(self, id: Option<&RequestId>) -> Response<HttpBody> {
        let mut response = with_json(self.status, failed(id, &self.error));
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// The message that answers a request.
pub(super) fn answered(id: &RequestId, result: &impl Serialize) -> Vec<u8> {
    let mut message = Vec::with_capacity(256);
    message.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    let written = serde_json::to_writer(&mut message, id).and_then(|()| {
        message.extend_from_slice(br#","result":"#);
        serde_json::to_writer(&mut message, result)
    });
    match written {
        Ok(()) => message.push(b'}'),
        Err(error) => {
            warn!(%error, "an answer can not be written as JSON");
            let error = ErrorData::internal_error("the answer can not be written as JSON", None);
            return failed(Some(id), &error);
        }
    }
    message
}

/// The message that says why there is no answer.
pub(super) fn failed(id: Option<&RequestId>, error: &ErrorData) -> Vec<u8> {
    let message = serde_json::json!({ "jsonrpc": "2.0", "id": id, "error": error });
    message.to_string().into_bytes()
}

/// A message in the form the client takes.
pub(super) fn message(accepts: Accepts, message: Vec<u8>) -> Response<HttpBody> {
    if accepts.json {
        with_json(StatusCode::OK, message)
    } else {
        events(HttpBody::whole(event(None, &message)))
    }
}

pub(super) fn with_json(status: StatusCode, message: Vec<u8>) -> Response<HttpBody> {
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
    // Proxies of a common make would hold events back.
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}

/// Without a body.
pub(super) fn empty(status: StatusCode) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::whole(""));
    *response.status_mut() = status;
    response
}

pub(super) fn method_not_allowed(allowed: &'static str) -> Response<HttpBody> {
    let text = "this method is not served here";
    let mut response = Refusal::of_http(StatusCode::METHOD_NOT_ALLOWED, text).under(None);
    let allowed = HeaderValue::from_static(allowed);
    response.headers_mut().insert(ALLOW, allowed);
    response
}
