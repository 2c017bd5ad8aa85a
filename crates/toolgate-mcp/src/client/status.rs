//! What is known of the servers at this moment.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use serde::{Serialize, Serializer};
use tokio::sync::watch;
use tokio::time::Instant;

use super::health_check::{HealthReport, HealthState};
use super::peer::{Peer, Reach};
use super::pinning::ToolChanges;
use crate::{Era, ServerSettings};

/// One server, as it is now.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Its name in the configuration.
    pub name: String,
    /// `stdio` or `http`.
    pub transport: &'static str,
    /// How it is.
    pub state: ServerState,
    /// How it is spoken to, if it is or was.
    pub era: Option<Era>,
    /// The revision of MCP that was agreed on, such as `2025-06-18`, if it is or was connected.
    pub protocol: Option<String>,
    /// How many tools it offers here.
    pub tools: usize,
    /// True if these are the tools it had when it was last asked, in this run or an earlier one.
    pub remembered: bool,
    /// When it last listed them.
    #[serde(skip)]
    pub listed_at: Option<SystemTime>,
    /// Tools that could not be taken, each with the reason.
    pub refused: Vec<String>,
    /// How long the latest successful attempt took.
    #[serde(rename = "connected_in_ms", serialize_with = "milliseconds")]
    pub connected_in: Option<Duration>,
    /// The number of the latest attempt since it was last well.
    pub attempts: u32,
    /// How often it ended after it had been connected.
    pub restarts: u64,
    /// Lines on its stdout that were no messages.
    pub polluted: u64,
    /// The latest of them.
    pub polluted_lines: Vec<String>,
    /// The end of its stderr.
    pub stderr: Vec<String>,
    /// What went wrong the last time, if it is not well.
    pub error: Option<String>,
    /// When it is tried again, from now.
    #[serde(rename = "next_try_ms", serialize_with = "milliseconds")]
    pub next_try: Option<Duration>,
    /// Its process.
    pub pid: Option<u32>,
    /// What its health tool said last, if it is connected and was asked.
    pub health: Option<HealthReport>,
    /// Its tools that aren't what a person agreed to.
    pub changes: Option<ToolChanges>,
}

impl ServerStatus {
    /// Why it can't do its work although it is connected; none if it can, or if nobody asked.
    pub fn degraded(&self) -> Option<&str> {
        let health = self.health.as_ref()?;
        let is_degraded = health.state == HealthState::Degraded;
        is_degraded.then(|| health.problem.as_deref().unwrap_or_default())
    }

    /// How many of its tools wait for a person's agreement.
    pub fn withheld(&self) -> usize {
        self.changes.as_ref().map_or(0, ToolChanges::withheld)
    }
}

/// How a server is.
///
/// ```
/// assert_eq!(toolgate_mcp::ServerState::Connected.to_string(), "connected");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ServerState {
    /// The configuration says not to start it.
    Disabled,
    /// It isn't started before somebody needs it.
    Idle,
    /// Its first attempts are under way.
    Starting,
    /// Its tools can be called.
    Connected,
    /// It was connected; calls wait while it is tried again.
    Restarting,
    /// It did not connect; it is tried again now and then.
    Failed,
    /// It was ended on purpose.
    Stopped,
}

impl ServerState {
    /// True if its tools are there, or may be in a moment.
    pub(crate) fn is_hopeful(self) -> bool {
        matches!(
            self,
            Self::Idle | Self::Starting | Self::Connected | Self::Restarting
        )
    }
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disabled => "disabled",
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Connected => "connected",
            Self::Restarting => "restarting",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        })
    }
}

fn milliseconds<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let rounded = duration.map(|duration| (duration.as_secs_f64() * 1e6).round() / 1e3);
    rounded.serialize(serializer)
}

/// All servers in the order of the configuration. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Roster {
    boards: Arc<Mutex<Vec<Arc<Board>>>>,
    reach: Arc<dyn Reach>,
    version: watch::Sender<u64>,
}

/// What one server's task writes and everybody reads.
pub(crate) struct Board {
    pub(crate) settings: ServerSettings,
    facts: Mutex<Facts>,
    reach: Arc<dyn Reach>,
    version: watch::Sender<u64>,
}

pub(crate) struct Facts {
    pub(crate) state: ServerState,
    /// It is connected, or its first round is over.
    pub(crate) settled: bool,
    /// When it listed its tools, in this run or in an earlier one. `None`: it has never been seen.
    pub(crate) listed_at: Option<SystemTime>,
    /// It has never been seen, and was tried in vain not long ago.
    pub(crate) failed_lately: bool,
    /// It didn't connect when it was last tried, in this run or in an earlier one.
    pub(crate) failed_last: bool,
    /// Its program could not even be started when that was last tried.
    pub(crate) cannot_start: bool,
    pub(crate) peer: Option<Arc<dyn Peer>>,
    pub(crate) era: Option<Era>,
    pub(crate) protocol: Option<String>,
    pub(crate) tools: usize,
    pub(crate) refused: Vec<String>,
    pub(crate) connected_in: Option<Duration>,
    pub(crate) attempts: u32,
    pub(crate) restarts: u64,
    pub(crate) error: Option<String>,
    pub(crate) next_try: Option<Instant>,
    /// The tool that is asked whether it can do its work, by its name on the server.
    pub(crate) health_tool: Option<String>,
    pub(crate) health: Option<HealthReport>,
    pub(crate) changes: Option<ToolChanges>,
}

impl Roster {
    pub(crate) fn new(reach: Arc<dyn Reach>) -> Self {
        Self {
            boards: Arc::default(),
            reach,
            version: watch::Sender::new(0),
        }
    }

    /// A new board; it shows once it is [`set`](Self::set).
    pub(crate) fn board(&self, settings: ServerSettings, state: ServerState) -> Arc<Board> {
        Arc::new(Board {
            facts: Mutex::new(Facts::new(state)),
            settings,
            reach: Arc::clone(&self.reach),
            version: self.version.clone(),
        })
    }

    pub(crate) fn set(&self, boards: Vec<Arc<Board>>) {
        *self.boards.lock() = boards;
        self.version.send_modify(|version| *version += 1);
    }

    pub(crate) fn boards(&self) -> Vec<Arc<Board>> {
        let boards = self.boards.lock();
        boards.clone()
    }

    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    pub(crate) fn hopeful_besides(&self, name: &str) -> Vec<String> {
        let is_hopeful = |board: &Arc<Board>| {
            let facts = board.facts();
            facts.state.is_hopeful() && facts.error.is_none()
        };
        let others = self.boards().into_iter();
        others
            .filter(|board| board.settings.name != name && is_hopeful(board))
            .map(|board| board.settings.name.clone())
            .collect()
    }
}

impl Board {
    pub(crate) fn update(&self, change: impl FnOnce(&mut Facts)) {
        change(&mut self.facts());
        self.version.send_modify(|version| *version += 1);
    }

    /// It is about to be started, if it wasn't.
    pub(crate) fn begin(&self) {
        if self.facts().state == ServerState::Idle {
            self.update(|facts| facts.state = ServerState::Starting);
        }
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.facts().settled
    }

    /// True if it has listed its tools, in this run or in an earlier one.
    pub(crate) fn is_seen(&self) -> bool {
        self.facts().listed_at.is_some()
    }

    /// True if its tools aren't known, and it has not been tried in vain of late.
    pub(crate) fn is_worth_a_start(&self) -> bool {
        let facts = self.facts();
        facts.listed_at.is_none() && !facts.failed_lately
    }

    /// True if it may be downloaded before it runs: a package runner that has never connected as it is configured, or that
    /// failed and whose package was deleted since, as we advise where it is half-written.
    pub(crate) fn is_first_start(&self) -> bool {
        let (is_seen, failed) = {
            let facts = self.facts();
            (facts.listed_at.is_some(), facts.failed_last)
        };
        let settings = &self.settings;
        settings.is_package_runner() && (!is_seen || (failed && settings.package_is_missing()))
    }

    /// True if `name` is `<server>__<tool>` for this server.
    pub(crate) fn is_named_by(&self, name: &str) -> bool {
        let rest = name.strip_prefix(self.settings.name.as_str());
        rest.is_some_and(|rest| rest.starts_with("__"))
    }

    /// True if it is being started, and may soon have tools that aren't known yet.
    pub(crate) fn is_coming(&self) -> bool {
        let facts = self.facts();
        let is_started = facts.state != ServerState::Idle && !facts.cannot_start;
        facts.listed_at.is_none() && !facts.settled && is_started
    }

    /// The same, but for those that were tried in vain not long ago: whoever only wants to list tools doesn't wait for them.
    pub(crate) fn is_expected(&self) -> bool {
        self.is_coming() && !self.facts().failed_lately
    }

    /// True if it isn't started, its tools aren't known, and nothing has to be downloaded first.
    pub(crate) fn is_quick_to_ask(&self) -> bool {
        let is_idle = self.facts().state == ServerState::Idle;
        is_idle && self.is_worth_a_start() && !self.is_first_start()
    }

    /// True if it may have a tool that nobody is known to have, and is worth waiting for.
    pub(crate) fn may_have_more(&self) -> bool {
        let facts = self.facts();
        let is_given_up = facts.failed_lately && facts.state == ServerState::Idle;
        facts.listed_at.is_none() && !is_given_up
    }

    /// True if it won't bring a tool of this name in a moment: it is connected or has failed. One that can't even be started
    /// holds up nobody but those who name it, and want to know why.
    pub(crate) fn is_decided_for(&self, name: &str) -> bool {
        let (is_settled, cannot_start) = {
            let facts = self.facts();
            (facts.settled, facts.cannot_start)
        };
        is_settled || (cannot_start && !self.is_named_by(name))
    }

    /// False while it is connected and its health tool has not answered yet.
    pub(crate) fn is_checked(&self) -> bool {
        let facts = self.facts();
        let is_asked = facts.state == ServerState::Connected && facts.health_tool.is_some();
        !is_asked || facts.health.is_some()
    }

    pub(crate) fn health_tool(&self) -> Option<String> {
        self.facts().health_tool.clone()
    }

    pub(crate) fn health(&self) -> Option<HealthReport> {
        self.facts().health.clone()
    }

    pub(crate) fn has_changes(&self) -> bool {
        self.facts().changes.is_some()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let vitals = self.reach.vitals(&self.settings.name);
        let facts = self.facts();
        ServerStatus {
            name: self.settings.name.clone(),
            transport: self.settings.connection.kind(),
            state: facts.state,
            era: facts.era,
            protocol: facts.protocol.clone(),
            tools: facts.tools,
            remembered: facts.state != ServerState::Connected && facts.listed_at.is_some(),
            listed_at: facts.listed_at,
            refused: facts.refused.clone(),
            connected_in: facts.connected_in,
            attempts: facts.attempts,
            restarts: facts.restarts,
            polluted: vitals.polluted,
            polluted_lines: vitals.polluted_lines,
            stderr: vitals.stderr,
            error: facts.error.clone(),
            next_try: facts
                .next_try
                .map(|at| at.saturating_duration_since(Instant::now())),
            pid: facts.peer.as_ref().and_then(|peer| peer.pid()),
            health: facts.reported().cloned(),
            changes: facts.changes.clone(),
        }
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock()
    }
}

impl Facts {
    fn new(state: ServerState) -> Self {
        Self {
            state,
            settled: state == ServerState::Disabled,
            listed_at: None,
            failed_lately: false,
            failed_last: false,
            cannot_start: false,
            peer: None,
            era: None,
            protocol: None,
            tools: 0,
            refused: Vec::new(),
            connected_in: None,
            attempts: 0,
            restarts: 0,
            error: None,
            next_try: None,
            health_tool: None,
            health: None,
            changes: None,
        }
    }

    /// What was said over an earlier connection says nothing about this one.
    fn reported(&self) -> Option<&HealthReport> {
        let health = self.health.as_ref();
        health.filter(|_| self.state == ServerState::Connected)
    }
}
