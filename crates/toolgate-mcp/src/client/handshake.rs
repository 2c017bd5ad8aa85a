//! The handshake: detects the server's era and negotiates the protocol revision.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate_core::text::escape;
use tracing::{debug, warn};

use super::message::RpcError;
use super::session::{ClientSession, SessionError, SessionRequest};
use super::transport::{FailureReason, UnreadableAnswer};
use crate::era::{LEGACY, LEGACY_REVISIONS, MODERN};
use crate::{EraSetting, ProtocolEra};

// The code with which modern servers refuse a revision.
const UNSUPPORTED_REVISION: i64 = -32022;

#[derive(Debug)]
pub(crate) enum HandshakeError {
    Session(SessionError),
    UnsupportedRevisions(String),
}

impl HandshakeError {
    /// The HTTP status with which the server refused, if it did.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Session(SessionError::Refused { status, .. }) => Some(status.0),
            _ => None,
        }
    }
}

impl From<SessionError> for HandshakeError {
    fn from(failure: SessionError) -> Self {
        Self::Session(failure)
    }
}

/// On stdio, `initialize` goes first, because many servers exit at any other first message.
pub(crate) async fn handshake_stdio(
    session: &Arc<ClientSession>,
    choice: EraSetting,
    capabilities: &Value,
) -> Result<ProtocolEra, HandshakeError> {
    if choice == EraSetting::Modern {
        return discover(session).await;
    }
    match initialize(session, capabilities).await {
        Err(HandshakeError::Session(SessionError::Rpc(error))) if choice == EraSetting::Auto => {
            debug!(
                code = error.code,
                "initialize was refused; trying server/discover"
            );
            discover(session)
                .await
                .map_err(|_| SessionError::Rpc(error).into())
        }
        other => other,
    }
}

/// On HTTP, the modern request goes first, because a legacy server rejects it at once.
pub(crate) async fn handshake_http(
    session: &Arc<ClientSession>,
    choice: EraSetting,
    capabilities: &Value,
    probe: Duration,
) -> Result<ProtocolEra, HandshakeError> {
    if choice == EraSetting::Modern {
        return discover(session).await;
    }
    if choice == EraSetting::Auto {
        match tokio::time::timeout(probe, discover(session)).await {
            Ok(Ok(era)) => return Ok(era),
            Ok(Err(error)) if rules_out_legacy(&error) => return Err(error),
            Ok(Err(_)) => debug!("server/discover failed; trying initialize"),
            Err(_) => debug!("no response to server/discover; trying initialize"),
        }
    }
    initialize(session, capabilities).await
}

// True if trying the other era can't help: access is denied, or the server is down.
fn rules_out_legacy(error: &HandshakeError) -> bool {
    matches!(error.status(), Some(401 | 403 | 429 | 500..=599))
        || matches!(
            error,
            HandshakeError::Session(SessionError::NotSent(_) | SessionError::Stopped(_))
        )
}

async fn initialize(
    session: &Arc<ClientSession>,
    capabilities: &Value,
) -> Result<ProtocolEra, HandshakeError> {
    let params = json!({ "protocolVersion": LEGACY, "capabilities": capabilities, "clientInfo": client_info() });
    let answer = session
        .request(SessionRequest::new("initialize", params))
        .await?;
    let mut revision = answer["protocolVersion"].as_str().unwrap_or_default();
    if !LEGACY_REVISIONS.contains(&revision) {
        let shown = escape(&revision.chars().take(40).collect::<String>());
        // Refusing would make the server unusable just because we don't know its revision.
        warn!(revision = %shown, "the server speaks an unknown protocol revision; continuing as if it were {LEGACY}");
        revision = LEGACY;
    }
    session.set_offer(&answer);
    session.set_protocol(ProtocolEra::Legacy, revision, Map::new());
    session
        .notify("notifications/initialized", json!({}))
        .await?;
    Ok(ProtocolEra::Legacy)
}

/// A server that refuses the revision lists those that it supports. If ours is among them, it is
/// asked once more, because only a modern server knows this error.
async fn discover(session: &Arc<ClientSession>) -> Result<ProtocolEra, HandshakeError> {
    match discover_once(session).await {
        Err(HandshakeError::Session(SessionError::Rpc(error)))
            if error.code == UNSUPPORTED_REVISION && supports_modern(&error.data["supported"]) =>
        {
            debug!("server/discover was refused for a revision that the server supports");
            discover_once(session).await
        }
        other => other,
    }
}

fn supports_modern(revisions: &Value) -> bool {
    let revisions = revisions.as_array();
    revisions.is_some_and(|revisions| revisions.contains(&Value::from(MODERN)))
}

async fn discover_once(session: &Arc<ClientSession>) -> Result<ProtocolEra, HandshakeError> {
    // A modern request says what its own client supports, so only our own abilities count here.
    let meta = modern_meta(&session.shared_capabilities());
    let params = json!({ "_meta": meta });
    let answer = session
        .request(SessionRequest::new("server/discover", params))
        .await?;
    let supported = &answer["supportedVersions"];
    if !supports_modern(supported) {
        let shown: String = supported.to_string().chars().take(200).collect();
        return Err(HandshakeError::UnsupportedRevisions(escape(&shown)));
    }
    session.set_offer(&answer);
    session.set_protocol(ProtocolEra::Modern, MODERN, meta);
    Ok(ProtocolEra::Modern)
}

fn modern_meta(capabilities: &Value) -> Map<String, Value> {
    let key = |name: &str| format!("io.modelcontextprotocol/{name}");
    Map::from_iter([
        (key("protocolVersion"), Value::from(MODERN)),
        (key("clientInfo"), client_info()),
        (key("clientCapabilities"), capabilities.clone()),
    ])
}

fn client_info() -> Value {
    json!({ "name": "toolgate", "version": env!("CARGO_PKG_VERSION") })
}

pub(crate) fn explain(error: &HandshakeError) -> FailureReason {
    let error = match error {
        HandshakeError::Session(error) => error,
        HandshakeError::UnsupportedRevisions(revisions) => {
            return format!(
                "it supports the protocol revisions {revisions}; this version supports {MODERN}, and revisions up to {LEGACY}"
            )
            .into();
        }
    };
    match error {
        SessionError::NotSent(reason) | SessionError::Interrupted(reason) => reason.clone(),
        SessionError::Stopped(end) => end.status.wrap("it stopped during the handshake (", ")"),
        SessionError::Refused { status, body } => match body {
            Some(body) => format!("{status}: {}", escape(body)).into(),
            None => status.to_string().into(),
        },
        SessionError::Rpc(RpcError { code, message, .. }) => {
            let message = escape(&message.chars().take(500).collect::<String>());
            format!("it refused the handshake: {message} (code {code})").into()
        }
        SessionError::Unreadable(unreadable) => {
            let text = "its response to the handshake could not be read";
            match unreadable {
                UnreadableAnswer::Broken(problem) => FailureReason::new(text, escape(problem), ""),
                UnreadableAnswer::TooLarge { .. } => text.into(),
            }
        }
    }
}

#[cfg(test)]
mod tests;
