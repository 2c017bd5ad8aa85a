//! Answers of the guard itself, in the words of the route: an envelope where a call was asked for, else a problem.

use std::any::Any;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, Uri, header};
use percent_encoding::percent_decode_str;
use serde_json::json;
use toolgate_core::{ToolCall, ToolError, ToolOutcome};
use tracing::error;

use crate::api::shown;
use crate::problem::Problem;

/// Why somebody who may come in must wait.
#[derive(Debug, Clone, Copy)]
pub(super) enum Refusal {
    Stopping,
    TooOften(u32),
    /// The number of places.
    Full(usize),
}

/// A refusal for later, when the request is no longer at hand.
pub(super) struct Later {
    refusal: Refusal,
    method: Method,
    uri: Uri,
}

impl Refusal {
    pub(super) fn answer(self, parts: &Parts) -> Response {
        self.later(parts).answer()
    }

    pub(super) fn later(self, parts: &Parts) -> Later {
        Later {
            refusal: self,
            method: parts.method.clone(),
            uri: parts.uri.clone(),
        }
    }

    fn status(self) -> StatusCode {
        match self {
            Self::Stopping | Self::Full(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooOften(_) => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    fn seconds(self) -> u32 {
        match self {
            Self::Stopping | Self::Full(_) => 1,
            Self::TooOften(seconds) => seconds,
        }
    }

    fn reason(self) -> String {
        match self {
            Self::Stopping => "the gateway is stopping".to_owned(),
            Self::TooOften(seconds) => {
                format!("that is more often than serve.rate allows; try again in {seconds} s")
            }
            Self::Full(places) => format!(
                "{places} requests are under way already, which is the limit; try again in 1 s"
            ),
        }
    }
}

impl Later {
    /// A route that panics costs one answer, never the connection.
    pub(super) fn panicked(&self, panic: &(dyn Any + Send)) -> Response {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = toolgate_core::escape(text.unwrap_or("panic without a message"));
        let path = shown(&self.uri);
        error!(%path, panic = %text, "a route panicked");
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "something is wrong inside of the gateway; its log says what",
        )
        .into_response()
    }

    pub(super) fn answer(self) -> Response {
        let reason = self.refusal.reason();
        let (status, seconds) = (self.refusal.status(), self.refusal.seconds());
        let called = called(self.uri.path()).filter(|_| self.method == Method::POST);
        let Some(tool) = called.map(decoded) else {
            return Problem::new(status, reason)
                .retry_after(seconds)
                .into_response();
        };
        let error = ToolError::unavailable(&tool, reason);
        let outcome = ToolOutcome::refused(&ToolCall::new(tool, json!({})), error);
        let mut response = (status, Json(outcome)).into_response();
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        response
    }
}

/// The tool in the path of a call, as it stands there.
pub(super) fn called(path: &str) -> Option<&str> {
    let name = path.strip_prefix("/api/tools/")?.strip_suffix("/call")?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

/// The same, decoded as far as it can be.
pub(crate) fn called_tool(path: &str) -> Option<String> {
    called(path).map(decoded)
}

fn decoded(name: &str) -> String {
    percent_decode_str(name).decode_utf8_lossy().into_owned()
}

/// What axum itself refuses, it refuses in plain text or without a word; here every error is a problem.
pub(super) async fn as_problem(response: Response) -> Response {
    const SENTENCE: usize = 4096;
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_plain = kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if !is_plain || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let text = to_bytes(body, SENTENCE).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let detail = match (text.trim(), status) {
        ("", StatusCode::METHOD_NOT_ALLOWED) => {
            "this path does not know that method; /openapi.json says which ones it knows"
        }
        ("", _) => "the request could not be answered",
        (text, _) => text,
    };
    let problem = Problem::new(status, toolgate_core::escape(detail)).into_response();
    let (problem, body) = problem.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.extend(problem.headers);
    parts.extensions.extend(problem.extensions);
    Response::from_parts(parts, Body::new(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_of_a_call_is_read_from_its_path() {
        let table = [
            ("/api/tools/echo/call", Some("echo")),
            ("/api/tools/a%20b%2Fc/call", Some("a b/c")),
            ("/api/tools/100%/call", Some("100%")),
            ("/api/tools/%zz/call", Some("%zz")),
            ("/api/tools//call", None),
            ("/api/tools/a/b/call", None),
            ("/api/tools/echo", None),
            ("/api/tools/call", None),
        ];
        for (path, tool) in table {
            assert_eq!(called_tool(path).as_deref(), tool, "{path}");
        }
    }
}
