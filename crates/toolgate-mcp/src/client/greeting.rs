//! The handshake: which era the server is of, and what both sides agree on.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate_core::escape;
use tracing::{debug, warn};

use super::message::RpcError;
use super::session::{Failure, Request, Session};
use super::transport::{Reason, Status};
use crate::era::{LEGACY, LEGACY_REVISIONS, MODERN};
use crate::{Era, EraChoice};

#[derive(Debug)]
pub(crate) enum Disagreement {
    /// The connection, not the protocol.
    Failure(Failure),
    /// The server speaks revisions we do not.
    Revisions(String),
}

impl From<Failure> for Disagreement {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// On stdio `initialize` goes first: many servers exit at any other first message.
pub(crate) async fn greet_process(
    session: &Arc<Session>,
    choice: EraChoice,
    capabilities: &Value,
) -> Result<Era, Disagreement> {
    if choice == EraChoice::Modern {
        return discover(session, capabilities).await;
    }
    match initialize(session, capabilities).await {
        Err(Disagreement::Failure(Failure::Rpc(error))) if choice == EraChoice::Auto => {
            debug!(
                code = error.code,
                "initialize was refused; asking in the modern way"
            );
            discover(session, capabilities)
                .await
                .map_err(|_| Failure::Rpc(error).into())
        }
        other => other,
    }
}

/// On HTTP the modern request goes first: a server of the other era says no at once.
pub(crate) async fn greet_http(
    session: &Arc<Session>,
    choice: EraChoice,
    capabilities: &Value,
    probe: Duration,
) -> Result<Era, Disagreement> {
    if choice == EraChoice::Modern {
        return discover(session, capabilities).await;
    }
    if choice == EraChoice::Auto {
        match tokio::time::timeout(probe, discover(session, capabilities)).await {
            Ok(Ok(era)) => return Ok(era),
            Ok(Err(refusal)) if is_final(&refusal) => return Err(refusal),
            Ok(Err(_)) => debug!("not of the modern era"),
            Err(_) => debug!("no answer to server/discover"),
        }
    }
    initialize(session, capabilities).await
}

/// A login is missing, or nobody is there: another era would not help.
fn is_final(refusal: &Disagreement) -> bool {
    matches!(
        refusal,
        Disagreement::Failure(
            Failure::Refused {
                status: Status(401 | 403 | 429 | 500..=599),
                ..
            } | Failure::NotSent(_)
                | Failure::Stopped(_)
        )
    )
}

async fn initialize(session: &Arc<Session>, capabilities: &Value) -> Result<Era, Disagreement> {
    let params = json!({ "protocolVersion": LEGACY, "capabilities": capabilities, "clientInfo": client_info() });
    let answer = session.request(Request::new("initialize", params)).await?;
    let mut revision = answer["protocolVersion"].as_str().unwrap_or_default();
    if !LEGACY_REVISIONS.contains(&revision) {
        let shown = escape(&revision.chars().take(40).collect::<String>());
        warn!(revision = %shown, "the server speaks a revision we do not know; going on as if it were {LEGACY}");
        revision = LEGACY;
    }
    session.agree(Era::Legacy, revision, Map::new());
    session
        .notify("notifications/initialized", json!({}))
        .await?;
    Ok(Era::Legacy)
}

async fn discover(session: &Arc<Session>, capabilities: &Value) -> Result<Era, Disagreement> {
    let meta = modern_meta(capabilities);
    let params = json!({ "_meta": meta });
    let answer = session
        .request(Request::new("server/discover", params))
        .await?;
    let supported = answer["supportedVersions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if !supported.contains(&Value::from(MODERN)) {
        let shown: String = Value::from(supported)
            .to_string()
            .chars()
            .take(200)
            .collect();
        return Err(Disagreement::Revisions(escape(&shown)));
    }
    session.agree(Era::Modern, MODERN, meta);
    Ok(Era::Modern)
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

pub(crate) fn explain(disagreement: &Disagreement) -> Reason {
    match disagreement {
        Disagreement::Revisions(theirs) => {
            format!(
                "it speaks the protocol revisions {theirs}; this version speaks {MODERN} and up to {LEGACY}"
            )
            .into()
        }
        Disagreement::Failure(failure) => match failure {
            Failure::NotSent(reason) | Failure::Interrupted(reason) => reason.clone(),
            Failure::Stopped(end) => end.status.within("it stopped during the handshake (", ")"),
            Failure::Refused { status, body } => match body {
                Some(body) => format!("{status}: {}", escape(body)).into(),
                None => status.to_string().into(),
            },
            Failure::Rpc(RpcError { code, message, .. }) => {
                let message: String = message.chars().take(500).collect();
                format!(
                    "it refused the handshake: {} (code {code})",
                    escape(&message)
                )
                .into()
            }
            Failure::Lost(_) => "its answer to the handshake could not be read".into(),
        },
    }
}

#[cfg(test)]
mod tests;
