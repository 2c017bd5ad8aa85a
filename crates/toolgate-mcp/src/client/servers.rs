//! Starts, stops and restarts MCP servers so that they match the configuration.

mod agreements;
mod health_watch;
mod lookup;
mod managed_server;
mod options;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use toolgate_core::text::escape;
use toolgate_core::{ListRefresher, ToolExecutor, ToolManager, ToolRank};
use tracing::{info, warn};

use super::catalog::RememberedFailure;
use super::connect::ServerDialer;
use super::connection::ServerConnector;
use super::link::ServerLink;
use super::pinning::ToolPins;
use super::status::{ServerRoster, ServerState, ServerStatus};
use super::supervisor::{RetryState, ServerSupervisor};
use super::tool_registration::ToolRegistration;
use crate::retry::StartLimiter;
use crate::{RetryPolicy, ServerSettings};

use managed_server::{ManagedServer, ManagedServers, ServerTask};
pub use options::ServersOptions;

const STOP_TIMEOUT: Duration = Duration::from_secs(10);
// Longer while a package manager cleans up an interrupted download: npm needs up to half a minute,
// and a service manager such as systemd may kill it when this program ends.
const DOWNLOAD_STOP_TIMEOUT: Duration = Duration::from_secs(60);
// Reconnect requests that may wait per server. More would have the same effect.
const MAX_PENDING_RECONNECTS: usize = 8;

/// Supervises the MCP servers of a configuration and keeps their tools up to date in a
/// [`ToolManager`]. Cheap to clone; dropping the last clone ends all servers.
#[derive(Clone)]
pub struct Servers {
    inner: Arc<ServersInner>,
}

pub(super) struct ServersContext {
    pub(super) manager: Arc<ToolManager>,
    pub(super) options: ServersOptions,
    retry: ArcSwap<RetryPolicy>,
    pub(super) connector: Arc<dyn ServerConnector>,
    pub(super) writes: TaskTracker,
    pub(super) roster: ServerRoster,
    pub(super) health_executor: watch::Sender<Option<ToolExecutor>>,
}

struct ServersInner {
    shared: Arc<ServersContext>,
    members: Mutex<ManagedServers>,
    shutdown: CancellationToken,
    _shutdown_on_last_drop: DropGuard,
}

impl Servers {
    /// Starts without servers; [`apply`](Self::apply) adds them.
    pub fn new(manager: Arc<ToolManager>, options: ServersOptions) -> Self {
        let dialer = ServerDialer::new(&options);
        Self::with_connector(manager, options, Arc::new(dialer))
    }

    pub(crate) fn with_connector(
        manager: Arc<ToolManager>,
        options: ServersOptions,
        connector: Arc<dyn ServerConnector>,
    ) -> Self {
        let shutdown = CancellationToken::new();
        let roster = ServerRoster::new(Arc::clone(&connector));
        options.health.attach(roster.clone());
        let shared = Arc::new(ServersContext {
            manager,
            retry: ArcSwap::from_pointee(options.retry),
            options,
            roster,
            connector,
            writes: TaskTracker::new(),
            health_executor: watch::Sender::new(None),
        });
        let inner = Arc::new(ServersInner {
            shared,
            members: Mutex::default(),
            _shutdown_on_last_drop: shutdown.clone().drop_guard(),
            shutdown,
        });
        let refresher: Weak<ServersInner> = Arc::downgrade(&inner);
        inner.shared.manager.add_refresher(refresher);
        Self { inner }
    }

    /// Makes the running servers match `settings`: starts new ones, stops removed ones, restarts
    /// changed ones and leaves the others alone. Tools remembered from an earlier run are
    /// available when this returns, before any server is contacted. Doesn't block; must be called
    /// in a tokio runtime.
    pub fn apply(&self, settings: Vec<ServerSettings>) {
        let launcher = &self.inner.shared.options.launcher;
        // Before any server starts, so that none of them can read the folders of the others.
        launcher.hide_folders_of(&settings);
        let mut members = self.inner.members.lock();
        let mut old: HashMap<String, ManagedServer> = members
            .list
            .drain(..)
            .map(|member| (member.name().to_owned(), member))
            .collect();
        let mut list: Vec<ManagedServer> = Vec::with_capacity(settings.len());
        for settings in settings {
            let name = settings.name.clone();
            if list.iter().any(|member| member.name() == name) {
                warn!(server = %escape(&name), "MCP server is configured twice; using the first entry");
                continue;
            }
            let rank = match settings.overrides {
                true => ToolRank::Override(list.len()),
                false => ToolRank::Server(list.len()),
            };
            let member = match old.remove(&name) {
                Some(mut same) if same.board.settings == settings && same.is_alive() => {
                    same.registration.set_rank(rank);
                    same.rank = rank;
                    same
                }
                changed => {
                    let pins = changed.as_ref().map(|member| Arc::clone(&member.pins));
                    if let Some(changed) = changed {
                        // Keep the old tools registered until the new ones replace them, so that no
                        // other server can take a name in between.
                        if !settings.disabled {
                            changed.registration.close();
                        }
                        changed.remove(&mut members.stopping);
                    }
                    let previous = match settings.disabled {
                        true => None,
                        false => members.stopping.remove(&name),
                    };
                    self.inner.start(settings, rank, pins.as_deref(), previous)
                }
            };
            list.push(member);
        }
        for removed in old.into_values() {
            info!(server = %escape(removed.name()), "MCP server removed");
            removed.remove(&mut members.stopping);
        }
        // Drop the handles of finished tasks, which would pile up with every reconfiguration.
        members.stopping.retain(|_, task| !task.is_finished());
        members.list = list;
        let boards = members.list.iter().map(|member| Arc::clone(&member.board));
        self.inner.shared.roster.set(boards.collect());
    }

    /// Sets the retry policy for future attempts; a wait that has begun is not changed.
    pub fn set_retry(&self, retry: RetryPolicy) {
        self.inner.shared.retry.store(Arc::new(retry));
    }

    pub fn status(&self) -> Vec<ServerStatus> {
        let boards = self.inner.shared.roster.boards();
        boards.iter().map(|board| board.status()).collect()
    }

    pub fn server_status(&self, name: &str) -> Option<ServerStatus> {
        let boards = self.inner.shared.roster.boards();
        let board = boards.iter().find(|board| board.settings.name == name)?;
        Some(board.status())
    }

    /// Subscribes to a counter that increases with every change of [`status`](Self::status).
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.inner.shared.roster.changed()
    }

    /// The latest connection failure of a server whose tools aren't known.
    pub fn last_failure(&self, name: &str) -> Option<RememberedFailure> {
        let members = self.inner.members.lock();
        let settings = &members.find(name)?.board.settings;
        self.inner.shared.options.catalog.last_failure(settings)
    }

    /// Reconnects a server. Returns true if it is connected then, and false if the attempts failed
    /// or there is no such server.
    pub async fn reconnect(&self, name: &str) -> bool {
        let requests = {
            let members = self.inner.members.lock();
            let task = members.find(name).and_then(|member| member.task.as_ref());
            task.map(|task| task.reconnect_requests.clone())
        };
        let Some(requests) = requests else {
            return false;
        };
        let (request, outcome) = oneshot::channel();
        requests.send(request).await.is_ok() && outcome.await.unwrap_or(false)
    }

    /// Shuts all servers down concurrently. Returns once they have ended, but after ten seconds at
    /// the latest, or a minute if a download is interrupted. Slower servers end in the background,
    /// watched by the watcher process.
    pub async fn stop(&self) {
        let (mut stopping, downloads) = {
            let mut members = self.inner.members.lock();
            let downloads =
                members.names(|board| board.settings.is_package_runner() && !board.is_settled());
            let mut stopping = std::mem::take(&mut members.stopping);
            for member in &mut members.list {
                member.stop(&mut stopping);
            }
            (stopping, downloads)
        };
        let stopped = timeout(STOP_TIMEOUT, self.wait_for_tasks(&mut stopping)).await;
        if stopped.is_ok() {
            return;
        }
        let is_late = |name: &&String| stopping.get(*name).is_some_and(|task| !task.is_finished());
        let late = downloads.iter().filter(is_late).map(|name| escape(name));
        let server = late.collect::<Vec<_>>().join(", ");
        if !server.is_empty() {
            let rest = DOWNLOAD_STOP_TIMEOUT - STOP_TIMEOUT;
            let seconds = rest.as_secs();
            warn!(%server, "MCP server was stopped during its download; waiting up to {seconds} s for the cleanup");
            drop(timeout(rest, self.wait_for_tasks(&mut stopping)).await);
        }
        for (name, task) in stopping.iter().filter(|(_, task)| !task.is_finished()) {
            warn!(server = %escape(name), "MCP server did not stop in time; it continues to shut down in the background");
            task.abort();
        }
    }

    async fn wait_for_tasks(&self, stopping: &mut HashMap<String, JoinHandle<()>>) {
        let running = stopping.values_mut().filter(|task| !task.is_finished());
        join_all(running).await;
        let writes = &self.inner.shared.writes;
        writes.close();
        writes.wait().await;
        // Servers may be started again after a stop.
        writes.reopen();
    }
}

impl ServersContext {
    pub(super) fn retry(&self) -> RetryPolicy {
        **self.retry.load()
    }
}

impl ListRefresher for ServersInner {
    /// What is listed again is offered once it is there: nobody waits for a slow server.
    fn refresh(&self) -> BoxFuture<'_, ()> {
        for member in &self.members.lock().list {
            member.link.list_again_if_stale();
        }
        Box::pin(async {})
    }
}

impl ServersInner {
    fn start(
        &self,
        settings: ServerSettings,
        rank: ToolRank,
        pins_before: Option<&ToolPins>,
        previous: Option<JoinHandle<()>>,
    ) -> ManagedServer {
        let (disabled, blocked) = (settings.disabled, settings.blocked.clone());
        let (state, link) = match self.shared.options.on_demand {
            _ if disabled => (ServerState::Disabled, ServerLink::new()),
            _ if blocked.is_some() => (ServerState::Failed, ServerLink::new()),
            true => (ServerState::Idle, ServerLink::new_idle()),
            false => (ServerState::Starting, ServerLink::new()),
        };
        let options = &self.shared.options;
        let (catalog, redactor) = (&options.catalog, &options.redactor);
        let pins = ToolPins::new(&settings, catalog, redactor, pins_before);
        let manager = Arc::clone(&self.shared.manager);
        let registration = ToolRegistration::new(manager, &settings.name, rank);
        let mut member = ManagedServer {
            board: self.shared.roster.board(settings, state),
            registration: Arc::new(registration),
            pins: Arc::new(pins),
            rank,
            link,
            task: None,
        };
        if disabled {
            return member;
        }
        member.restore_tools(&options.catalog, &options.redactor);
        if let Some(reason) = blocked {
            member.block(&reason);
            return member;
        }
        let stop = self.shutdown.child_token();
        let (reconnect_sender, receiver) = mpsc::channel(MAX_PENDING_RECONNECTS);
        let server = ServerSupervisor {
            shared: Arc::clone(&self.shared),
            board: Arc::clone(&member.board),
            registration: Arc::clone(&member.registration),
            pins: Arc::clone(&member.pins),
            link: member.link.clone(),
            stop: stop.clone(),
            reconnect_requests: receiver,
            starts: StartLimiter::new(&self.shared.retry()),
            retry_state: RetryState::default(),
            writing: None,
        };
        let task = tokio::spawn(server.run(previous));
        member.task = Some(ServerTask {
            stop,
            reconnect_requests: reconnect_sender,
            task,
        });
        member
    }
}

#[cfg(test)]
mod tests;
