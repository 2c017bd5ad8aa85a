//! The state that all routes share.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_core::{Redactor, ToolExecutor};
use toolgate_journal::Journal;
use toolgate_mcp::{RequestObserver, ServerState, ServerStatus, Servers};
use toolgate_models::ModelSettings;

use crate::api::chat::ChatRegistry;
use crate::api::mcp::McpEndpoint;
use crate::api::{openapi, status};
use crate::guard::{self, AccessTokens, CallerPermits};
use crate::notify::{NotificationChannel, Notifier};
use crate::operator::OperatorKeys;
use crate::problem::Problem;
use crate::{CallFeed, DashboardApprovals, DashboardQuestions, Metrics, ServeSettings, Stats};

// How long `/readyz` waits for servers that have neither connected nor failed.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Everything that a [`Gateway`] is made from.
///
/// The executor must have the feed, the statistics and the metrics among its observers, and the
/// approvals as its approver.
pub struct GatewayParts {
    pub executor: ToolExecutor,
    pub servers: Servers,
    pub feed: CallFeed,
    pub stats: Stats,
    pub metrics: Metrics,
    /// Exports the requests of MCP clients as traces. Calls reach it as an
    /// observer of the executor.
    pub traces: Option<Arc<dyn RequestObserver>>,
    pub approvals: DashboardApprovals,
    /// Handles the questions of servers, if their questions are asked at the dashboard.
    pub questions: DashboardQuestions,
    pub notifications: Notifications,
    pub redactor: Redactor,
    pub model: ModelSettings,
    /// The command of this process, such as `toolgate serve`. Its calls are
    /// recorded under this name.
    pub command: String,
    /// Records calls. `None` keeps the latest ones in memory.
    pub journal: Option<Journal>,
    /// Why the journal is missing, if calls should be recorded.
    pub journal_problem: Option<String>,
    /// Saves tools and servers that are added over HTTP, where there is a configuration file.
    pub config_writer: Option<Arc<dyn ConfigWriter>>,
    pub settings: ServeSettings,
}

/// The channels through which people learn that something waits for them at the dashboard.
#[derive(Clone, Default)]
pub struct Notifications {
    pub channels: Vec<Arc<dyn NotificationChannel>>,
    /// The address of the dashboard, for the links. Empty: the one that the gateway listens on.
    pub dashboard: String,
}

/// Saves tools and servers that are added over HTTP to the configuration file. Implemented
/// by the embedding program.
pub trait ConfigWriter: Send + Sync {
    /// Adds a definition to the section `tools`. Returns where it was saved, in words.
    fn add_tool(&self, definition: &Value) -> Result<String, ConfigWriteError>;
    fn add_server(&self, name: &str, url: &str) -> Result<String, ConfigWriteError>;
}

/// Why a tool or server was not saved, as a sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigWriteError {
    NameTaken(String),
    Refused(String),
}

/// The state of a running gateway's configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigurationState {
    /// Why the file can't be used, so that the previous configuration stays in force.
    pub problem: Option<String>,
    /// Changed sections and keys that take effect at the next start.
    pub restart_needed: Vec<String>,
}

/// The HTTP gateway: the state that all routes share. Cheap to clone.
#[derive(Clone)]
pub struct Gateway(Arc<GatewayState>);

#[doc(hidden)]
pub struct GatewayState {
    pub(crate) parts: GatewayParts,
    pub(crate) started: Instant,
    // Cancelled when no new calls are taken.
    pub(crate) stopping: CancellationToken,
    // Cancelled when running calls must end. Every call uses it as its cancellation.
    pub(crate) calls: CancellationToken,
    // True once every server was tried or `STARTUP_TIMEOUT` is over.
    is_started: AtomicBool,
    pub(crate) configuration: Mutex<ConfigurationState>,
    pub(crate) tokens: Arc<ArcSwap<AccessTokens>>,
    pub(crate) operator: OperatorKeys,
    // One permit for each request that may be a call.
    pub(crate) requests: CallerPermits,
    // One permit for each byte that parsed requests may take.
    pub(crate) memory: CallerPermits,
    pub(crate) chats: ChatRegistry,
    pub(crate) mcp: McpEndpoint,
    document: OnceLock<Bytes>,
}

impl Deref for Gateway {
    type Target = GatewayState;

    fn deref(&self) -> &GatewayState {
        &self.0
    }
}

impl Gateway {
    pub fn new(parts: GatewayParts) -> Self {
        let redactor = &parts.redactor;
        let journal = parts.journal.clone();
        parts.feed.configure(redactor, &parts.command, journal);
        let approval_timeout = parts.executor.rules().limits.approval_timeout;
        parts.approvals.set_redactor(redactor.clone());
        parts
            .questions
            .configure(redactor.clone(), approval_timeout);
        let channels = parts.notifications.channels.clone();
        if !channels.is_empty() {
            let notifier = Arc::new(Notifier::new(channels, redactor.clone()));
            parts.approvals.notify_with(Arc::clone(&notifier));
            parts.questions.notify_with(notifier);
        }
        let mcp = McpEndpoint::new(&parts);
        Self(Arc::new(GatewayState {
            mcp,
            started: Instant::now(),
            stopping: CancellationToken::new(),
            calls: CancellationToken::new(),
            is_started: AtomicBool::new(false),
            configuration: Mutex::default(),
            tokens: Arc::new(ArcSwap::from_pointee(AccessTokens::new(&parts.settings))),
            operator: OperatorKeys::default(),
            requests: CallerPermits::new(parts.settings.concurrency, &parts.settings),
            memory: guard::memory_budget(&parts.executor.rules().limits, &parts.settings),
            chats: ChatRegistry::default(),
            document: OnceLock::new(),
            parts,
        }))
    }

    /// Sets the state of the configuration file, which routes such as `/api/status` report.
    pub fn set_configuration_state(&self, state: ConfigurationState) {
        *self.configuration.lock() = state;
    }

    /// Replaces the valid tokens, and ends the streams of tokens that were removed. Returns false
    /// and does nothing if the first token would be added or the last one removed, because whether
    /// tokens are needed is decided at the start.
    pub fn set_tokens(&self, settings: &ServeSettings) -> bool {
        let before = self.tokens.load();
        let after = before.with_settings(settings);
        if before.is_empty() || after.is_empty() {
            return before.is_empty() && after.is_empty();
        }
        let after = Arc::new(after);
        self.tokens.store(Arc::clone(&after));
        before.revoke_all_but(&after);
        true
    }

    /// Tells people where the dashboard is, which listens at `url`.
    pub(crate) fn set_dashboard_url(&self, url: String) {
        let base = match &*self.parts.notifications.dashboard {
            "" => &url,
            given => given,
        };
        // What waits is shown above every view.
        let link = format!("{}/#/calls", base.trim_end_matches('/'));
        self.parts.approvals.set_link(link.clone());
        self.parts.questions.set_link(link);
        self.parts.approvals.set_url(url);
    }

    /// Lets the link `/?key=…` sign in the operator once. A new key replaces the previous one.
    pub fn accept_sign_in_key(&self, key: &str) {
        self.operator.accept_link(key);
    }

    /// Lets programs that send this key as a token act as the operator. They may do
    /// everything but approve calls.
    pub fn accept_command_key(&self, key: &str) {
        self.operator.accept_command_key(key);
    }

    /// Waits until no call runs any more, or the remaining ones are cancelled:
    /// [`serve`](crate::serve) has stopped or is about to.
    pub fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        self.calls.clone().cancelled_owned()
    }

    pub(crate) fn executor(&self) -> &ToolExecutor {
        &self.parts.executor
    }

    pub(crate) fn document(&self) -> Bytes {
        let written = || openapi::serialized(status::token_needed(self));
        self.document.get_or_init(written).clone()
    }

    /// True once the first attempt to connect each server has succeeded or failed, or after a few
    /// seconds, because one slow server must not make the gateway count as starting for long.
    /// Later reconnects don't count.
    pub(crate) fn has_started(&self) -> bool {
        if self.is_started.load(Ordering::Relaxed) {
            return true;
        }
        let has_tried =
            |server: &ServerStatus| server.state != ServerState::Starting || server.error.is_some();
        let is_started = self.started.elapsed() >= STARTUP_TIMEOUT
            || self.parts.servers.status().iter().all(has_tried);
        self.is_started.fetch_or(is_started, Ordering::Relaxed);
        is_started
    }

    pub(crate) async fn write_config(
        &self,
        write: impl FnOnce(&dyn ConfigWriter) -> Result<String, ConfigWriteError> + Send + 'static,
    ) -> Result<String, Problem> {
        let Some(writer) = self.parts.config_writer.clone() else {
            let detail = "the gateway has no configuration file to save it in; start it with one";
            return Err(Problem::unavailable(detail));
        };
        match tokio::task::spawn_blocking(move || write(&*writer)).await {
            Ok(Ok(saved)) => Ok(saved),
            Ok(Err(ConfigWriteError::NameTaken(reason))) => Err(Problem::conflict(reason)),
            Ok(Err(ConfigWriteError::Refused(reason))) => Err(Problem::unprocessable(reason)),
            Err(_) => Err(Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "saving failed because of an internal error; see the log of the gateway",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_mcp::{SecretHeaders, ServerConnection, ServerSettings};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_server_delays_readiness_for_five_seconds() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let gateway = crate::guard::tests::gateway(json!({}));
        let connection = ServerConnection::Http {
            url: format!("http://{}/mcp", silent.local_addr().unwrap()),
            headers: SecretHeaders::default(),
        };
        let servers = &gateway.parts.servers;
        servers.apply(vec![ServerSettings::new("silent", connection)]);
        for (time, is_started) in [(0, false), (4, false), (1, true)] {
            tokio::time::advance(Duration::from_secs(time)).await;
            assert_eq!(gateway.has_started(), is_started, "after {time} s more");
            assert_eq!(servers.status()[0].state, ServerState::Starting);
        }
    }
}
