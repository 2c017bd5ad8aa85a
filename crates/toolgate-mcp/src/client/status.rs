//! What is known of the servers at this moment.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Serialize, Serializer};
use tokio::sync::watch;
use tokio::time::Instant;

use super::peer::{Peer, Reach};
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
    /// How many tools it offers here.
    pub tools: usize,
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
        matches!(self, Self::Starting | Self::Connected | Self::Restarting)
    }
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disabled => "disabled",
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

/// See [`ServerStatus`].
pub(crate) struct Facts {
    pub(crate) state: ServerState,
    /// It is connected, or its first round is over.
    pub(crate) settled: bool,
    pub(crate) peer: Option<Arc<dyn Peer>>,
    pub(crate) era: Option<Era>,
    pub(crate) tools: usize,
    pub(crate) refused: Vec<String>,
    pub(crate) connected_in: Option<Duration>,
    pub(crate) attempts: u32,
    pub(crate) restarts: u64,
    pub(crate) error: Option<String>,
    pub(crate) next_try: Option<Instant>,
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
    pub(crate) fn board(&self, settings: ServerSettings) -> Arc<Board> {
        let state = match settings.disabled {
            true => ServerState::Disabled,
            false => ServerState::Starting,
        };
        Arc::new(Board {
            facts: Mutex::new(Facts::new(state)),
            settings,
            reach: Arc::clone(&self.reach),
            version: self.version.clone(),
        })
    }

    /// All there are from now on.
    pub(crate) fn set(&self, boards: Vec<Arc<Board>>) {
        *self.boards.lock().unwrap_or_else(PoisonError::into_inner) = boards;
        self.version.send_modify(|version| *version += 1);
    }

    pub(crate) fn boards(&self) -> Vec<Arc<Board>> {
        let boards = self.boards.lock().unwrap_or_else(PoisonError::into_inner);
        boards.clone()
    }

    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Servers besides this one that are up or may be in a moment.
    pub(crate) fn hopeful_besides(&self, name: &str) -> Vec<String> {
        let others = self.boards().into_iter();
        others
            .filter(|board| board.settings.name != name && board.facts().state.is_hopeful())
            .map(|board| board.settings.name.clone())
            .collect()
    }
}

impl Board {
    pub(crate) fn update(&self, change: impl FnOnce(&mut Facts)) {
        change(&mut self.facts());
        self.version.send_modify(|version| *version += 1);
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.facts().settled
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let vitals = self.reach.vitals(&self.settings.name);
        let facts = self.facts();
        ServerStatus {
            name: self.settings.name.clone(),
            transport: self.settings.connection.kind(),
            state: facts.state,
            era: facts.era,
            tools: facts.tools,
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
        }
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Facts {
    fn new(state: ServerState) -> Self {
        Self {
            state,
            settled: state == ServerState::Disabled,
            peer: None,
            era: None,
            tools: 0,
            refused: Vec::new(),
            connected_in: None,
            attempts: 0,
            restarts: 0,
            error: None,
            next_try: None,
        }
    }
}
