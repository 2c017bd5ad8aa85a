//! What came back: a body, a stream, or a refusal. Bounded, and explained where it is not what it should be.

use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

use super::endpoint::Endpoint;
use crate::client::message::{Message, RpcError};
use crate::client::transport::{Lost, Status, TransportError};

/// An error is read this far, to see whether it is a message.
const ERROR_BODY: usize = 64 << 10;
/// A body that says why something was refused is shown this far.
const SHOWN: usize = 4 << 10;
const SHOWN_NAME: usize = 80;

pub(super) enum Content {
    Json,
    Events,
    /// Not what we can read: why, for a person.
    Unfit(String),
}

pub(super) enum Refusal {
    Answer(Message),
    /// The server does not know our session any more; it has not done what we asked.
    SessionLost,
    Error(TransportError),
}

pub(super) enum NoBody {
    TooLarge(Lost),
    Broken(reqwest::Error),
}

/// Looks at status and headers of a success.
pub(super) fn content(endpoint: &Endpoint, response: &Response) -> Content {
    let header = |name| {
        let value = response.headers().get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase())
    };
    let status = response.status().as_u16();
    if matches!(status, 202 | 204 | 205) {
        return Content::Unfit(format!(
            "the server answered the request with nothing (HTTP {status})"
        ));
    }
    if let Some(encoding) = header(CONTENT_ENCODING).filter(|encoding| encoding != "identity") {
        let encoding = endpoint.line(&encoding, SHOWN_NAME);
        return Content::Unfit(format!(
            "the server's answer is compressed ({encoding}), which was not asked for"
        ));
    }
    let Some(kind) = header(CONTENT_TYPE) else {
        return Content::Json;
    };
    match kind.split(';').next().unwrap_or_default().trim() {
        "application/json" => Content::Json,
        "text/event-stream" => Content::Events,
        other => Content::Unfit(format!(
            "the server answered with {}, not with MCP: check its 'url' in the configuration",
            endpoint.line(other, SHOWN_NAME)
        )),
    }
}

pub(super) async fn body(response: &mut Response, limit: usize) -> Result<Vec<u8>, NoBody> {
    let too_large = |bytes: u64| {
        let limit = limit as u64;
        NoBody::TooLarge(Lost::TooLarge { bytes, limit })
    };
    if let Some(bytes) = response
        .content_length()
        .filter(|bytes| *bytes > limit as u64)
    {
        return Err(too_large(bytes));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(NoBody::Broken)? {
        body.extend_from_slice(&chunk);
        if body.len() > limit {
            return Err(too_large(body.len() as u64));
        }
    }
    Ok(body)
}

/// Reads on to the end if that is near, so that the connection can be used again.
pub(super) async fn drain(mut response: Response) {
    const FURTHEST: usize = 64 << 10;
    const PATIENCE: std::time::Duration = std::time::Duration::from_millis(500);
    let rest = async {
        let mut read = 0;
        while let Ok(Some(chunk)) = response.chunk().await {
            read += chunk.len();
            if read > FURTHEST {
                return;
            }
        }
    };
    if tokio::time::timeout(PATIENCE, rest).await.is_err() {
        tracing::trace!("a response went on after its answer");
    }
}

/// Reads what a response without success has to say. `id`: of the request it answers.
pub(super) async fn refusal(
    endpoint: &Endpoint,
    mut response: Response,
    in_session: bool,
    id: Option<u64>,
) -> Refusal {
    let status = response.status().as_u16();
    let html =
        matches!(content(endpoint, &response), Content::Unfit(kind) if kind.contains("text/html"));
    let wait = wait(endpoint, response.headers());
    let body = beginning(&mut response, ERROR_BODY).await;
    let said = Message::parse(&body).ok();
    if let Some(refusal) = meaning(status, said, in_session, id) {
        return refusal;
    }
    let text = String::from_utf8_lossy(&body);
    let text = (!html && !text.trim().is_empty()).then(|| endpoint.line(text.trim(), SHOWN));
    let said: Vec<String> = wait.into_iter().chain(text).collect();
    Refusal::Error(TransportError::Refused {
        status: Status(status),
        body: (!said.is_empty()).then(|| said.join("; ")),
    })
}

/// What status and message mean together, if it is more than a refusal.
fn meaning(
    status: u16,
    said: Option<Message>,
    in_session: bool,
    id: Option<u64>,
) -> Option<Refusal> {
    // Who has to log in is told so, whatever the body says.
    if matches!(status, 401 | 403) {
        return None;
    }
    let said = match said {
        Some(Message::Response {
            id,
            answer: Err(error),
        }) => Some((id, error)),
        _ => None,
    };
    match (said, id) {
        (Some((theirs, error)), Some(ours)) if theirs == ours => Some(answer(ours, error)),
        // Whatever else the body says, and under whatever id.
        _ if in_session && status == 404 => Some(Refusal::SessionLost),
        // Servers that were started anew answer 400 as well, and say so in words only.
        (Some((_, error)), _) if in_session && is_session_lost(status, &error) => {
            Some(Refusal::SessionLost)
        }
        // Without an id, but it came back with our request.
        (Some((Value::Null, error)), Some(ours)) => Some(answer(ours, error)),
        _ => None,
    }
}

fn answer(id: u64, error: RpcError) -> Refusal {
    let id = Value::from(id);
    Refusal::Answer(Message::Response {
        id,
        answer: Err(error),
    })
}

fn is_session_lost(status: u16, error: &RpcError) -> bool {
    status == 400 && error.message.to_ascii_lowercase().contains("session")
}

/// How long the server wants us to wait, for a person.
fn wait(endpoint: &Endpoint, headers: &HeaderMap) -> Option<String> {
    let after = headers.get(RETRY_AFTER)?;
    let after = String::from_utf8_lossy(after.as_bytes());
    Some(match after.trim().parse::<u32>() {
        Ok(seconds) => format!("it asks to wait {seconds} s"),
        Err(_) => format!(
            "it asks to wait until {}",
            endpoint.line(after.trim(), SHOWN_NAME)
        ),
    })
}

/// As much as there is, up to `limit`; a silent server is not waited for long.
async fn beginning(response: &mut Response, limit: usize) -> Vec<u8> {
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = limit - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == limit {
                break;
            }
        }
    };
    if tokio::time::timeout(PATIENCE, reading).await.is_err() {
        tracing::debug!("the body of an error did not come to its end");
    }
    body
}
