//! What the routes work with.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::StatusCode;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_core::{Redactor, ToolExecutor};
use toolgate_journal::Journal;
use toolgate_mcp::{RequestObserver, ServerState, ServerStatus, Servers};
use toolgate_models::ModelSettings;

use crate::api::chat::Chats;
use crate::api::mcp::McpEndpoint;
use crate::api::{openapi, status};
use crate::guard::{self, Rooms, Tokens};
use crate::operator::OperatorKeys;
use crate::problem::Problem;
use crate::{Approvals, Feed, Metrics, ServeSettings, Stats};

/// How long `/readyz` waits for servers that have neither answered nor failed.
const FIRST_ATTEMPTS: Duration = Duration::from_secs(5);

/// What a program hands over to be served. The executor has [`Feed`], [`Stats`] and [`Metrics`] among its observers, and
/// [`Approvals`] as its approver.
pub struct Parts {
    /// Runs the calls.
    pub executor: ToolExecutor,
    /// The MCP servers behind it.
    pub servers: Servers,
    /// Shows calls as they happen.
    pub feed: Feed,
    /// Counts them for the dashboard.
    pub stats: Stats,
    /// Counts them for Prometheus.
    pub metrics: Metrics,
    /// Sends the requests of MCP clients as traces; the calls go to it as to any observer.
    pub traces: Option<Arc<dyn RequestObserver>>,
    /// Asks the person at the dashboard.
    pub approvals: Approvals,
    /// Knows what must not be shown.
    pub redactor: Redactor,
    /// The model of the chat.
    pub model: ModelSettings,
    /// What this process was started as, such as `toolgate serve`: its calls are shown as made by it.
    pub command: String,
    /// Where calls are recorded. None: the last ones are kept in memory.
    pub journal: Option<Journal>,
    /// Why they are not, though they should be.
    pub journal_problem: Option<String>,
    /// Where tools and servers that are added from outside are kept, if anywhere.
    pub workshop: Option<Arc<dyn Workshop>>,
    /// Who may come in, and how many.
    pub settings: ServeSettings,
}

/// Keeps what is added over HTTP: the program writes it to its configuration file.
pub trait Workshop: Send + Sync {
    /// Adds a definition to the section `tools`; the answer says where it is now.
    fn add_tool(&self, definition: &Value) -> Result<String, NotKept>;
    /// Adds a server by its URL, never a command.
    fn add_server(&self, name: &str, url: &str) -> Result<String, NotKept>;
}

/// Why a [`Workshop`] did not keep something, as a sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotKept {
    /// There is one of that name.
    Taken(String),
    /// Whatever else.
    Refused(String),
}

/// How the configuration file of a running gateway is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigurationState {
    /// Why it can't be used as it is now, so that the one before it stays in force.
    pub problem: Option<String>,
    /// Sections and keys that changed since the start, and take effect at the next one.
    pub restart_needed: Vec<String>,
}

/// Everything the routes work with. Cheap to clone.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    parts: Parts,
    started: Instant,
    stopping: CancellationToken,
    calls: CancellationToken,
    /// True once every server has had its first attempt, or time enough for it.
    settled: AtomicBool,
    configuration: Mutex<ConfigurationState>,
    tokens: Arc<ArcSwap<Tokens>>,
    operator: OperatorKeys,
    /// Requests that may be calls.
    requests: Rooms,
    /// Bytes that requests may take once they are parsed.
    memory: Rooms,
    chats: Chats,
    mcp: McpEndpoint,
    document: OnceLock<Bytes>,
}

impl Gateway {
    /// Ready to be served.
    pub fn new(parts: Parts) -> Self {
        let redactor = &parts.redactor;
        let journal = parts.journal.clone();
        parts.feed.equip(redactor, &parts.command, journal);
        let patience = parts.executor.rules().limits.approval;
        parts.approvals.equip(redactor.clone(), patience);
        let mcp = McpEndpoint::new(&parts);
        Self(Arc::new(Inner {
            mcp,
            started: Instant::now(),
            stopping: CancellationToken::new(),
            calls: CancellationToken::new(),
            settled: AtomicBool::new(false),
            configuration: Mutex::default(),
            tokens: Arc::new(ArcSwap::from_pointee(Tokens::new(&parts.settings))),
            operator: OperatorKeys::default(),
            requests: Rooms::new(parts.settings.concurrency, &parts.settings),
            memory: guard::budget(&parts.executor.rules().limits, &parts.settings),
            chats: Chats::default(),
            document: OnceLock::new(),
            parts,
        }))
    }

    /// The configuration was changed. How it is now is told wherever somebody asks how the gateway is.
    pub fn tell_configuration(&self, state: ConfigurationState) {
        *self.configuration() = state;
    }

    /// Lets in the tokens of these settings from now on, and no others: streams of those that are gone are cut. False, and
    /// nothing happens, where there were no tokens or would be none: whether one is needed is decided at the start.
    pub fn set_tokens(&self, settings: &ServeSettings) -> bool {
        let before = self.0.tokens.load();
        let after = before.followed_by(settings);
        if before.is_empty() || after.is_empty() {
            return before.is_empty() && after.is_empty();
        }
        let after = Arc::new(after);
        self.0.tokens.store(Arc::clone(&after));
        before.revoke_all_but(&after);
        true
    }

    /// Whoever opens the link `/?key=…` with this key is signed in as the operator, once. The key before it, if there is one,
    /// signs nobody in any more.
    pub fn accept_sign_in_key(&self, key: &str) {
        self.0.operator.accept_link(key);
    }

    /// Programs that send this key as a token are the operator's: they may see and do everything but approve calls.
    pub fn accept_command_key(&self, key: &str) {
        self.0.operator.accept_command_key(key);
    }

    pub(crate) fn operator(&self) -> &OperatorKeys {
        &self.0.operator
    }

    pub(crate) fn tokens(&self) -> &Arc<ArcSwap<Tokens>> {
        &self.0.tokens
    }

    pub(crate) fn configuration(&self) -> MutexGuard<'_, ConfigurationState> {
        let configuration = &self.0.configuration;
        configuration.lock()
    }

    /// Returns when no call runs any more, or those that do are told to end: [`serve`](crate::serve) has stopped, or is about to.
    pub fn over(&self) -> impl Future<Output = ()> + Send + 'static {
        self.0.calls.clone().cancelled_owned()
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.0.parts
    }

    pub(crate) fn executor(&self) -> &ToolExecutor {
        &self.0.parts.executor
    }

    pub(crate) fn document(&self) -> Bytes {
        let written = || openapi::written(status::token_needed(self));
        self.0.document.get_or_init(written).clone()
    }

    /// The places of requests that may be calls.
    pub(crate) fn requests(&self) -> &Rooms {
        &self.0.requests
    }

    /// Bytes that requests may take once they are parsed, as places.
    pub(crate) fn memory(&self) -> &Rooms {
        &self.0.memory
    }

    pub(crate) fn chats(&self) -> &Chats {
        &self.0.chats
    }

    pub(crate) fn mcp(&self) -> &McpEndpoint {
        &self.0.mcp
    }

    /// False until every server has had its first attempt, for [`FIRST_ATTEMPTS`] at most: the other tools work from the
    /// beginning, and one bad server keeps nobody away from them. A server that is connected anew later does not count.
    pub(crate) fn has_settled(&self) -> bool {
        let has_tried =
            |server: &ServerStatus| server.state != ServerState::Starting || server.error.is_some();
        if self.0.settled.load(Ordering::Relaxed) {
            return true;
        }
        let settled = self.0.started.elapsed() >= FIRST_ATTEMPTS
            || self.0.parts.servers.status().iter().all(has_tried);
        self.0.settled.fetch_or(settled, Ordering::Relaxed);
        settled
    }

    /// Has something kept by the program, away from the threads that answer: it writes a file.
    pub(crate) async fn keep(
        &self,
        what: impl FnOnce(&dyn Workshop) -> Result<String, NotKept> + Send + 'static,
    ) -> Result<String, Problem> {
        let Some(workshop) = self.0.parts.workshop.clone() else {
            return Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "there is no configuration file to keep it in; start the gateway with one",
            ));
        };
        let kept = tokio::task::spawn_blocking(move || what(&*workshop)).await;
        match kept {
            Ok(Ok(kept)) => Ok(kept),
            Ok(Err(NotKept::Taken(reason))) => Err(Problem::new(StatusCode::CONFLICT, reason)),
            Ok(Err(NotKept::Refused(reason))) => {
                Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, reason))
            }
            Err(_) => Err(Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "it could not be kept: something is wrong inside of the gateway; its log says what",
            )),
        }
    }

    pub(crate) fn started(&self) -> Instant {
        self.0.started
    }

    /// Cancelled when no new calls are taken any more.
    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    /// Cancelled when calls that still run must end: every call has it as its
    /// [`cancellation`](toolgate_core::ToolCall::cancellation).
    pub(crate) fn calls(&self) -> &CancellationToken {
        &self.0.calls
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_mcp::{Connection, Headers, ServerSettings};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_says_nothing_is_waited_for_five_seconds() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let gateway = crate::guard::tests::gateway(json!({}));
        let connection = Connection::Http {
            url: format!("http://{}/mcp", silent.local_addr().unwrap()),
            headers: Headers::default(),
        };
        let servers = &gateway.parts().servers;
        servers.apply(vec![ServerSettings::new("silent", connection)]);
        for (time, settled) in [(0, false), (4, false), (1, true)] {
            tokio::time::advance(Duration::from_secs(time)).await;
            assert_eq!(gateway.has_settled(), settled, "after {time} s more");
            assert_eq!(servers.status()[0].state, ServerState::Starting);
        }
    }
}
