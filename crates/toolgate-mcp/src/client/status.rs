//! The current status of all servers.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde::{Serialize, Serializer};
use tokio::sync::watch;
use tokio::time::Instant;

use super::connection::{ServerConnector, SupervisedConnection};
use super::health_check::{HealthReport, HealthState};
use super::pinning::ToolChanges;
use super::sampling::SamplingUsage;
use super::tool;
use crate::{ProtocolEra, ServerSettings};

/// A snapshot of the status of one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServerStatus {
    pub name: String,
    /// The kind of transport: `stdio` or `http`.
    pub transport: &'static str,
    pub state: ServerState,
    pub era: Option<ProtocolEra>,
    /// The negotiated MCP revision, such as `2025-06-18`, once connected.
    pub protocol: Option<String>,
    /// Number of offered tools; withheld ones don't count.
    pub tools: usize,
    /// True if the tools are remembered from an earlier list and the server isn't connected.
    pub remembered: bool,
    /// When the tools were last listed.
    #[serde(skip)]
    pub listed_at: Option<SystemTime>,
    /// Why listed tools were skipped, one text for each.
    pub refused: Vec<String>,
    /// Duration of the latest successful attempt.
    #[serde(rename = "connected_in_ms", serialize_with = "milliseconds")]
    pub connected_in: Option<Duration>,
    /// Attempts since the last success.
    pub attempts: u32,
    /// How often it ended unexpectedly after it was connected.
    pub restarts: u64,
    /// Number of stdout lines that were not messages.
    #[serde(rename = "polluted")]
    pub stray_line_count: u64,
    /// The latest of these lines, redacted.
    #[serde(rename = "polluted_lines")]
    pub stray_lines: Vec<String>,
    /// The redacted tail of stderr.
    pub stderr: Vec<String>,
    pub error: Option<String>,
    #[serde(rename = "next_try_ms", serialize_with = "milliseconds")]
    pub next_try: Option<Duration>,
    pub pid: Option<u32>,
    /// The latest health report; `None` if not connected or not checked yet.
    pub health: Option<HealthReport>,
    /// Tools that differ from what a person agreed to.
    pub changes: Option<ToolChanges>,
    /// What it has used of the configured model; `None` if it may not.
    pub sampling: Option<SamplingUsage>,
}

impl ServerStatus {
    /// Why the server's health check failed; `None` if it didn't.
    pub fn degraded(&self) -> Option<&str> {
        let health = self.health.as_ref()?;
        let is_degraded = health.state == HealthState::Degraded;
        is_degraded.then(|| health.problem.as_deref().unwrap_or_default())
    }

    /// How many tools are withheld.
    pub fn withheld(&self) -> usize {
        self.changes.as_ref().map_or(0, ToolChanges::withheld)
    }
}

/// The state of a server's connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ServerState {
    Disabled,
    /// Not started, because it wasn't needed yet.
    #[default]
    Idle,
    Starting,
    Connected,
    /// Was connected and is being reconnected; calls wait.
    Restarting,
    /// A round of attempts has failed. It is retried slowly, unless it is blocked.
    Failed,
    /// Stopped on purpose; not retried.
    Stopped,
}

impl ServerState {
    // Connected, or may still connect soon.
    pub(crate) fn is_available(self) -> bool {
        matches!(
            self,
            Self::Idle | Self::Starting | Self::Connected | Self::Restarting
        )
    }
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

fn milliseconds<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let rounded = duration.map(|duration| (duration.as_secs_f64() * 1e6).round() / 1e3);
    rounded.serialize(serializer)
}

#[derive(Clone)]
pub(crate) struct ServerRoster {
    boards: Arc<Mutex<Vec<Arc<StatusBoard>>>>,
    connector: Arc<dyn ServerConnector>,
    version: watch::Sender<u64>,
}

/// The status of one server. Its task writes it; anyone may read it.
pub(crate) struct StatusBoard {
    pub(crate) settings: ServerSettings,
    facts: Mutex<ServerFacts>,
    connector: Arc<dyn ServerConnector>,
    version: watch::Sender<u64>,
}

#[derive(Default)]
pub(crate) struct ServerFacts {
    // Some fields are filled in by `StatusBoard::status`.
    pub(crate) status: ServerStatus,
    // It is connected, or its first round of attempts has failed.
    pub(crate) settled: bool,
    // Its tools aren't known, and it failed within the last hour.
    pub(crate) failed_recently: bool,
    pub(crate) failed_last_time: bool,
    pub(crate) cannot_start: bool,
    pub(crate) connection: Option<Arc<dyn SupervisedConnection>>,
    pub(crate) next_try: Option<Instant>,
    pub(crate) health_tool: Option<String>,
}

impl ServerRoster {
    pub(crate) fn new(connector: Arc<dyn ServerConnector>) -> Self {
        Self {
            boards: Arc::default(),
            connector,
            version: watch::Sender::new(0),
        }
    }

    /// Creates a board, which is visible once it is [`set`](Self::set).
    pub(crate) fn board(&self, settings: ServerSettings, state: ServerState) -> Arc<StatusBoard> {
        let facts = ServerFacts {
            settled: state == ServerState::Disabled,
            status: ServerStatus {
                name: settings.name.clone(),
                transport: settings.connection.kind(),
                state,
                ..ServerStatus::default()
            },
            ..ServerFacts::default()
        };
        Arc::new(StatusBoard {
            facts: Mutex::new(facts),
            settings,
            connector: Arc::clone(&self.connector),
            version: self.version.clone(),
        })
    }

    pub(crate) fn set(&self, boards: Vec<Arc<StatusBoard>>) {
        *self.boards.lock() = boards;
        self.version.send_modify(|version| *version += 1);
    }

    pub(crate) fn boards(&self) -> Vec<Arc<StatusBoard>> {
        self.boards.lock().clone()
    }

    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    pub(crate) fn other_available_servers(&self, name: &str) -> Vec<String> {
        let is_available = |board: &Arc<StatusBoard>| {
            let facts = board.facts.lock();
            facts.status.state.is_available() && facts.status.error.is_none()
        };
        let others = self.boards().into_iter();
        others
            .filter(|board| board.settings.name != name && is_available(board))
            .map(|board| board.settings.name.clone())
            .collect()
    }
}

impl StatusBoard {
    pub(crate) fn update(&self, change: impl FnOnce(&mut ServerFacts)) {
        change(&mut self.facts.lock());
        self.version.send_modify(|version| *version += 1);
    }

    pub(crate) fn mark_starting(&self) {
        if self.facts.lock().status.state == ServerState::Idle {
            self.update(|facts| facts.status.state = ServerState::Starting);
        }
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.facts.lock().settled
    }

    pub(crate) fn has_known_tools(&self) -> bool {
        self.facts.lock().status.listed_at.is_some()
    }

    pub(crate) fn is_worth_starting(&self) -> bool {
        let facts = self.facts.lock();
        facts.status.listed_at.is_none() && !facts.failed_recently
    }

    /// True if its package may have to be downloaded first: it is a package runner that has
    /// never connected, or that failed and whose package was deleted since, which is our advice
    /// for a half-written one.
    pub(crate) fn is_first_start(&self) -> bool {
        // Read the facts first: the folder check below must not run under the lock.
        let (is_seen, failed) = {
            let facts = self.facts.lock();
            (facts.status.listed_at.is_some(), facts.failed_last_time)
        };
        let settings = &self.settings;
        settings.is_package_runner() && (!is_seen || (failed && settings.package_is_missing()))
    }

    /// True if the name is `<server>__<tool>` with this server.
    pub(crate) fn is_named_by(&self, name: &str) -> bool {
        let rest = name.strip_prefix(self.settings.name.as_str());
        rest.is_some_and(|rest| rest.starts_with("__"))
    }

    /// True if it is starting, and its tools aren't known yet.
    pub(crate) fn is_first_listing_pending(&self) -> bool {
        let facts = self.facts.lock();
        let is_started = facts.status.state != ServerState::Idle && !facts.cannot_start;
        facts.status.listed_at.is_none() && !facts.settled && is_started
    }

    /// Like `is_first_listing_pending`, but false for servers that failed recently, because listing
    /// tools doesn't wait for them.
    pub(crate) fn is_expected(&self) -> bool {
        self.is_first_listing_pending() && !self.facts.lock().failed_recently
    }

    pub(crate) fn is_quick_to_start(&self) -> bool {
        let is_idle = self.facts.lock().status.state == ServerState::Idle;
        is_idle && self.is_worth_starting() && !self.is_first_start()
    }

    /// True if its tools aren't known, and waiting for them is worthwhile.
    pub(crate) fn may_have_unknown_tools(&self) -> bool {
        let facts = self.facts.lock();
        let is_given_up = facts.failed_recently && facts.status.state == ServerState::Idle;
        facts.status.listed_at.is_none() && !is_given_up
    }

    /// True if it is certain whether the server has a tool of this name: it is connected or has
    /// failed. A program that can't be started delays only lookups that name its server, so
    /// that they report why.
    pub(crate) fn is_decided_for(&self, name: &str) -> bool {
        let (is_settled, cannot_start) = {
            let facts = self.facts.lock();
            (facts.settled, facts.cannot_start)
        };
        is_settled || (cannot_start && !self.is_named_by(name))
    }

    /// True if it is starting and may still list a tool of this name.
    pub(crate) fn may_still_offer(&self, name: &str) -> bool {
        let is_idle = || self.facts.lock().status.state == ServerState::Idle;
        !self.is_settled() && !is_idle() && tool::may_be_offered(&self.settings, name)
    }

    /// True unless a first health report is still expected.
    pub(crate) fn is_health_known(&self) -> bool {
        let facts = self.facts.lock();
        let has_check = facts.status.state == ServerState::Connected && facts.health_tool.is_some();
        !has_check || facts.status.health.is_some()
    }

    pub(crate) fn health_tool(&self) -> Option<String> {
        self.facts.lock().health_tool.clone()
    }

    pub(crate) fn health(&self) -> Option<HealthReport> {
        self.facts.lock().status.health.clone()
    }

    pub(crate) fn has_changes(&self) -> bool {
        self.facts.lock().status.changes.is_some()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let output = self.connector.output(&self.settings.name);
        let facts = self.facts.lock();
        let is_connected = facts.status.state == ServerState::Connected;
        let next_try = facts.next_try;
        ServerStatus {
            remembered: !is_connected && facts.status.listed_at.is_some(),
            stray_line_count: output.stray_line_count,
            stray_lines: output.stray_lines,
            stderr: output.stderr,
            sampling: output.sampling,
            next_try: next_try.map(|at| at.saturating_duration_since(Instant::now())),
            pid: facts
                .connection
                .as_ref()
                .and_then(|connection| connection.pid()),
            // A report from an earlier connection says nothing about the current one.
            health: facts.status.health.clone().filter(|_| is_connected),
            ..facts.status.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_shown_in_lower_case() {
        assert_eq!(ServerState::Connected.to_string(), "connected");
    }
}
