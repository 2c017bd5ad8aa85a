//! Builds the guard's own responses: an envelope for a tool call, a problem otherwise.

use std::any::Any;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{Method, StatusCode, Uri, header};
use percent_encoding::percent_decode_str;
use serde_json::json;
use toolgate_core::{ToolCall, ToolError, ToolOutcome};
use tracing::error;

use crate::api::escaped_path;
use crate::problem::Problem;

/// Why a known caller has to try again later.
#[derive(Debug, Clone, Copy)]
pub(super) enum AdmissionError {
    Stopping,
    TooOften(u32),
    // Holds the number of permits.
    Full(usize),
}

pub(super) struct DeferredRefusal {
    refusal: AdmissionError,
    method: Method,
    uri: Uri,
}

impl AdmissionError {
    pub(super) fn into_response(self, parts: &Parts) -> Response {
        self.defer(parts).into_response()
    }

    pub(super) fn defer(self, parts: &Parts) -> DeferredRefusal {
        DeferredRefusal {
            refusal: self,
            method: parts.method.clone(),
            uri: parts.uri.clone(),
        }
    }

    /// The status, the seconds until the next try, and the reason.
    fn details(self) -> (StatusCode, u32, String) {
        let busy = StatusCode::SERVICE_UNAVAILABLE;
        match self {
            Self::Stopping => (busy, 1, "the gateway is stopping".to_owned()),
            Self::Full(permits) => {
                let running = format!("{permits} requests are already running, which is the limit");
                (busy, 1, format!("{running}; try again in 1 s"))
            }
            Self::TooOften(seconds) => {
                let reason = format!(
                    "serve.rate does not allow that many requests; try again in {seconds} s"
                );
                (StatusCode::TOO_MANY_REQUESTS, seconds, reason)
            }
        }
    }
}

impl DeferredRefusal {
    /// Logs a panic in a route and answers with an internal error, so that the connection survives.
    pub(super) fn panic_response(&self, panic: &(dyn Any + Send)) -> Response {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = toolgate_core::text::escape(text.unwrap_or("panic without a message"));
        let path = escaped_path(&self.uri);
        error!(%path, panic = %text, "a route panicked");
        let detail = "internal error; see the log of the gateway";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail).into_response()
    }

    pub(super) fn into_response(self) -> Response {
        let (status, seconds, reason) = self.refusal.details();
        let called = decoded_tool_in_path(self.uri.path()).filter(|_| self.method == Method::POST);
        let Some(tool) = called else {
            let problem = Problem::new(status, reason);
            return problem.retry_after(seconds).into_response();
        };
        let error = ToolError::unavailable(&tool, reason);
        let outcome = ToolOutcome::rejected(&ToolCall::new(tool, json!({})), error);
        (status, [(header::RETRY_AFTER, seconds)], Json(outcome)).into_response()
    }
}

/// The tool in the path of a call, still percent-encoded.
pub(super) fn tool_in_path(path: &str) -> Option<&str> {
    let name = path.strip_prefix("/api/tools/")?.strip_suffix("/call")?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

/// The tool in the path of a call, decoded as far as possible.
pub(crate) fn decoded_tool_in_path(path: &str) -> Option<String> {
    let name = tool_in_path(path)?;
    Some(percent_decode_str(name).decode_utf8_lossy().into_owned())
}

/// Turns plain-text errors of axum into problems. Leaves other responses unchanged.
pub(super) async fn as_problem(response: Response) -> Response {
    const MAX_DETAIL_BYTES: usize = 4096;
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_plain = kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if !is_plain || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let text = to_bytes(body, MAX_DETAIL_BYTES).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let detail = match (text.trim(), status) {
        ("", StatusCode::METHOD_NOT_ALLOWED) => {
            "this path does not support that method; /openapi.json lists the methods it supports"
        }
        ("", _) => "the request could not be answered",
        (text, _) => text,
    };
    let problem = Problem::new(status, toolgate_core::text::escape(detail)).into_response();
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
            assert_eq!(decoded_tool_in_path(path).as_deref(), tool, "{path}");
        }
    }
}
