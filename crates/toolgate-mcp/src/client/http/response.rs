//! Reads and classifies HTTP responses: a JSON body, a stream of events, or a refusal.

use std::time::Duration;

use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use serde_json::Value;
use tokio::time::timeout;

use super::endpoint::ServerEndpoint;
use crate::client::message::{RpcError, RpcMessage};
use crate::client::transport::{HttpStatus, TransportError, UnreadableAnswer};

const MAX_ERROR_BODY: usize = 64 << 10;
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_DRAINED: usize = 64 << 10;
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
const MAX_SHOWN: usize = 4 << 10;
const MAX_SHOWN_NAME: usize = 80;

pub(super) enum ResponseContent {
    Json,
    Events,
    /// Neither JSON nor a stream, with the reason for a person.
    Unusable(String),
}

pub(super) enum HttpRefusal {
    Answer(RpcMessage),
    /// The server has forgotten our session, and has not executed the request.
    SessionLost,
    Error(TransportError),
}

pub(super) enum ResponseBodyError {
    TooLarge(UnreadableAnswer),
    Broken(reqwest::Error),
}

pub(super) fn classify_content(endpoint: &ServerEndpoint, response: &Response) -> ResponseContent {
    let header = |name| {
        let value = response.headers().get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase())
    };
    let status = response.status().as_u16();
    if matches!(status, 202 | 204 | 205) {
        return ResponseContent::Unusable(format!(
            "the server sent an empty response (HTTP {status})"
        ));
    }
    if let Some(encoding) = header(CONTENT_ENCODING).filter(|encoding| encoding != "identity") {
        let encoding = endpoint.redact_line(&encoding, MAX_SHOWN_NAME);
        return ResponseContent::Unusable(format!(
            "the server sent a compressed response ({encoding}), which we did not accept"
        ));
    }
    let Some(kind) = header(CONTENT_TYPE) else {
        return ResponseContent::Json;
    };
    match kind.split(';').next().unwrap_or_default().trim() {
        "application/json" => ResponseContent::Json,
        "text/event-stream" => ResponseContent::Events,
        other => ResponseContent::Unusable(format!(
            "the server sent {} instead of MCP: check its 'url' in the configuration",
            endpoint.redact_line(other, MAX_SHOWN_NAME)
        )),
    }
}

pub(super) async fn read_body(
    response: &mut Response,
    limit: usize,
) -> Result<Vec<u8>, ResponseBodyError> {
    let too_large = |bytes: u64| {
        let limit = limit as u64;
        ResponseBodyError::TooLarge(UnreadableAnswer::TooLarge { bytes, limit })
    };
    if let Some(bytes) = response
        .content_length()
        .filter(|bytes| *bytes > limit as u64)
    {
        return Err(too_large(bytes));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(ResponseBodyError::Broken)? {
        body.extend_from_slice(&chunk);
        if body.len() > limit {
            return Err(too_large(body.len() as u64));
        }
    }
    Ok(body)
}

/// Reads the rest of the body if it is short, so that the connection can be reused.
pub(super) async fn drain(mut response: Response) {
    read_start(&mut response, MAX_DRAINED, DRAIN_TIMEOUT).await;
}

pub(super) async fn classify_refusal(
    endpoint: &ServerEndpoint,
    mut response: Response,
    in_session: bool,
    id: Option<u64>,
) -> HttpRefusal {
    let status = response.status().as_u16();
    let is_html = matches!(classify_content(endpoint, &response), ResponseContent::Unusable(kind) if kind.contains("text/html"));
    let wait = retry_after_text(endpoint, response.headers());
    let body = read_start(&mut response, MAX_ERROR_BODY, ERROR_BODY_TIMEOUT).await;
    let message = RpcMessage::parse(&body).ok();
    if let Some(refusal) = interpret_refusal(status, message, in_session, id) {
        return refusal;
    }
    let text = String::from_utf8_lossy(&body);
    let text =
        (!is_html && !text.trim().is_empty()).then(|| endpoint.redact_line(text.trim(), MAX_SHOWN));
    let details: Vec<String> = wait.into_iter().chain(text).collect();
    HttpRefusal::Error(TransportError::Refused {
        status: HttpStatus(status),
        body: (!details.is_empty()).then(|| details.join("; ")),
    })
}

// Interprets status and message together. `None` if the response is a plain refusal.
fn interpret_refusal(
    status: u16,
    message: Option<RpcMessage>,
    in_session: bool,
    id: Option<u64>,
) -> Option<HttpRefusal> {
    // Always reported as a missing login, whatever the body says.
    if matches!(status, 401 | 403) {
        return None;
    }
    let rpc_error = match message {
        Some(RpcMessage::Response {
            id,
            answer: Err(error),
        }) => Some((id, error)),
        _ => None,
    };
    match (rpc_error, id) {
        (Some((theirs, error)), Some(ours)) if theirs == ours => {
            Some(rpc_error_answer(ours, error))
        }
        // With a session, 404 means that the session is lost, whatever the body says.
        _ if in_session && status == 404 => Some(HttpRefusal::SessionLost),
        // Some restarted servers answer 400 instead, and mention the session only in the text.
        (Some((_, error)), _) if in_session && is_session_lost(status, &error) => {
            Some(HttpRefusal::SessionLost)
        }
        // It has no id, but it is the response to our POST.
        (Some((Value::Null, error)), Some(ours)) => Some(rpc_error_answer(ours, error)),
        _ => None,
    }
}

fn rpc_error_answer(id: u64, error: RpcError) -> HttpRefusal {
    let id = Value::from(id);
    HttpRefusal::Answer(RpcMessage::Response {
        id,
        answer: Err(error),
    })
}

fn is_session_lost(status: u16, error: &RpcError) -> bool {
    status == 400 && error.message.to_ascii_lowercase().contains("session")
}

fn retry_after_text(endpoint: &ServerEndpoint, headers: &HeaderMap) -> Option<String> {
    let after = headers.get(RETRY_AFTER)?;
    let after = String::from_utf8_lossy(after.as_bytes());
    Some(match after.trim().parse::<u32>() {
        Ok(seconds) => format!("it asks for a retry after {seconds} s"),
        Err(_) => format!(
            "it asks for a retry after {}",
            endpoint.redact_line(after.trim(), MAX_SHOWN_NAME)
        ),
    })
}

// Reads up to `limit` bytes of the body, or as many as arrive in time.
async fn read_start(response: &mut Response, limit: usize, time: Duration) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let left = limit - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(left)]);
            if body.len() == limit {
                break;
            }
        }
    };
    if timeout(time, reading).await.is_err() {
        tracing::debug!("the body of a response did not end in time");
    }
    body
}
