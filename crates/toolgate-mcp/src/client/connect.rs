//! From settings to a connection that is ready for calls: transport, handshake, era.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use toolgate_core::escape;
use tracing::{debug, warn};

use super::message::RpcError;
use super::session::{Failure, Request, Session};
use super::transport::{End, Status};
use crate::era::{LEGACY, MODERN};
use crate::{Era, EraChoice, ServerSettings};

/// Revisions of the legacy era.
const LEGACY_REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY];

/// A connection after its handshake.
pub(crate) struct Connection {
    pub(crate) session: Arc<Session>,
    pub(crate) era: Era,
    /// The process, if there is one.
    pub(crate) pid: Option<u32>,
}

/// Makes connections; a trait, so that supervision is tested without processes.
pub(crate) trait Connect: Send + Sync + 'static {
    /// One attempt: start and handshake, within `patience`. A failed one leaves nothing behind.
    fn connect<'a>(
        &'a self,
        settings: &'a ServerSettings,
        patience: Duration,
    ) -> BoxFuture<'a, Result<Connection, ConnectError>>;
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct ConnectError {
    /// For a person, with what to do.
    pub(crate) reason: String,
    /// The tail of stderr, redacted.
    pub(crate) stderr: Vec<String>,
    /// Trying again will not help until something is changed: 401, 403, 404.
    pub(crate) hopeless: bool,
}

impl Connection {
    /// How the server is spoken to.
    pub(crate) fn era(&self) -> Era {
        self.era
    }

    /// Returns when the connection is over, however it ended.
    pub(crate) async fn ended(&self) -> End {
        self.session.ended().await
    }

    /// Returns when the server has said that its tools changed.
    pub(crate) async fn tools_changed(&self) {
        self.session.tools_changed().await;
    }

    /// The server as it was is gone, or about to be: returns when calls no longer reach it by this connection.
    pub(crate) async fn over(&self) {
        /// A request can fail by itself on a connection that is well.
        const SHORT: Duration = Duration::from_millis(200);
        drop(tokio::time::timeout(SHORT, self.ended()).await);
    }

    /// Ends the connection in an orderly way.
    pub(crate) async fn close(&self) {
        self.session.close().await;
    }
}

/// Why there was no agreement.
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
            debug!(%error, "initialize was refused; asking in the modern way");
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
    if choice != EraChoice::Legacy {
        match tokio::time::timeout(probe, discover(session, capabilities)).await {
            Ok(Ok(era)) => return Ok(era),
            Ok(Err(refusal)) if choice == EraChoice::Modern || is_final(&refusal) => {
                return Err(refusal);
            }
            Err(_) if choice == EraChoice::Modern => {
                return Err(Failure::Interrupted("no answer to server/discover".to_owned()).into());
            }
            Ok(Err(refusal)) => debug!(?refusal, "not of the modern era"),
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
    let revision = answer["protocolVersion"].as_str().unwrap_or_default();
    if !LEGACY_REVISIONS.contains(&revision) {
        let shown = escape(&revision.chars().take(40).collect::<String>());
        warn!(revision = %shown, "the server speaks a revision we do not know; going on as if it were {LEGACY}");
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

/// For a person.
pub(crate) fn explain(disagreement: &Disagreement) -> String {
    match disagreement {
        Disagreement::Revisions(theirs) => {
            format!(
                "it speaks the protocol revisions {theirs}; this version speaks {MODERN} and up to {LEGACY}"
            )
        }
        Disagreement::Failure(failure) => match failure {
            Failure::NotSent(reason) | Failure::Interrupted(reason) => reason.clone(),
            Failure::Stopped(end) => format!("it stopped during the handshake ({})", end.status),
            Failure::Refused { status, body } => match body {
                Some(body) => format!("{status}: {}", escape(body)),
                None => status.to_string(),
            },
            Failure::Rpc(RpcError { code, message, .. }) => {
                let message: String = message.chars().take(500).collect();
                format!(
                    "it refused the handshake: {} (code {code})",
                    escape(&message)
                )
            }
            Failure::Lost(_) => "its answer to the handshake could not be read".to_owned(),
        },
    }
}
