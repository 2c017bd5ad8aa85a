//! All servers: what the configuration says becomes what runs.

mod agreements;
mod health_watch;
mod lookup;
mod member;
mod options;
mod prospects;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use toolgate_core::{Rank, ToolExecutor, ToolManager, escape};
use tracing::{info, warn};

use super::catalogue::RememberedFailure;
use super::connect::Dialer;
use super::link::Link;
use super::peer::Reach;
use super::pinning::ToolPins;
use super::questions::Questions;
use super::server::{Course, Server};
use super::shelf::Shelf;
use super::status::{Roster, ServerState, ServerStatus};
use crate::retry::Starts;
use crate::{RetryPolicy, ServerSettings};

use member::{Life, Member, Members};
pub use options::ServersOptions;

const STOP: Duration = Duration::from_secs(10);
/// The same while a package manager cleans up after a download that was interrupted. npm needs up to half a minute, and
/// whoever ends this program, such as systemd, may kill what is left of its children with it.
const STOP_DOWNLOAD: Duration = Duration::from_secs(60);
/// Orders that may wait for one server; more are for the same thing.
const ORDERS: usize = 8;

/// The MCP servers of a configuration, supervised, their tools kept up to date in a [`ToolManager`]. Cheap to clone; when the
/// last clone is gone, all servers are ended.
#[derive(Clone)]
pub struct Servers {
    inner: Arc<Inner>,
}

pub(super) struct Shared {
    pub(super) manager: Arc<ToolManager>,
    pub(super) options: ServersOptions,
    retry: ArcSwap<RetryPolicy>,
    pub(super) reach: Arc<dyn Reach>,
    pub(super) writes: TaskTracker,
    pub(super) roster: Roster,
    /// What asks health tools; none as long as nobody wants to know.
    pub(super) health_executor: watch::Sender<Option<ToolExecutor>>,
}

struct Inner {
    shared: Arc<Shared>,
    members: Mutex<Members>,
    all: CancellationToken,
    _end_with_the_last_handle: DropGuard,
}

impl Servers {
    /// None yet: [`apply`](Self::apply) says which.
    pub fn new(manager: Arc<ToolManager>, options: ServersOptions) -> Self {
        let questions = Questions {
            elicitor: options.elicitor.clone(),
            roots: options.roots.clone(),
        };
        let (guard, redactor) = (options.guard.clone(), options.redactor.clone());
        let (max_message, file) = (options.max_message, options.file.as_deref());
        let launcher = options.launcher.clone();
        let dialer = Dialer::new(guard, questions, redactor, max_message, file, launcher);
        Self::reaching(manager, options, Arc::new(dialer))
    }

    /// Servers whose connections are made by `reach`.
    pub(crate) fn reaching(
        manager: Arc<ToolManager>,
        options: ServersOptions,
        reach: Arc<dyn Reach>,
    ) -> Self {
        let all = CancellationToken::new();
        let roster = Roster::new(Arc::clone(&reach));
        options.health.reports_on(roster.clone());
        let shared = Arc::new(Shared {
            manager,
            retry: ArcSwap::from_pointee(options.retry),
            options,
            roster,
            reach,
            writes: TaskTracker::new(),
            health_executor: watch::Sender::new(None),
        });
        Self {
            inner: Arc::new(Inner {
                shared,
                members: Mutex::default(),
                _end_with_the_last_handle: all.clone().drop_guard(),
                all,
            }),
        }
    }

    /// Makes what runs the same as `settings`: starts new servers, stops those that are gone, restarts changed ones and leaves
    /// the others alone. The tools that a server had in an earlier run are there when this returns, before it is contacted.
    /// Returns at once; call it in a tokio runtime.
    pub fn apply(&self, settings: Vec<ServerSettings>) {
        let launcher = &self.inner.shared.options.launcher;
        launcher.hide_folders_of(&settings);
        let mut members = self.inner.members();
        let mut old: HashMap<String, Member> = members
            .list
            .drain(..)
            .map(|member| (member.board.settings.name.clone(), member))
            .collect();
        let mut list: Vec<Member> = Vec::with_capacity(settings.len());
        for settings in settings {
            let name = settings.name.clone();
            if list.iter().any(|member| member.board.settings.name == name) {
                warn!(server = %escape(&name), "MCP server configured twice: the first one counts");
                continue;
            }
            let rank = match settings.overrides {
                true => Rank::Override(list.len()),
                false => Rank::Server(list.len()),
            };
            let member = match old.remove(&name) {
                Some(mut same) if same.board.settings == settings && same.is_alive() => {
                    same.shelf.rank(rank);
                    same.rank = rank;
                    same
                }
                changed => {
                    let pins = changed.as_ref().map(|member| Arc::clone(&member.pins));
                    if let Some(changed) = changed {
                        // Handed over in one step, so that nobody else gets hold of a name in between.
                        if !settings.disabled {
                            changed.shelf.close();
                        }
                        changed.leave(&mut members.leaving);
                    }
                    let previous = match settings.disabled {
                        true => None,
                        false => members.leaving.remove(&name),
                    };
                    self.inner.start(settings, rank, pins.as_deref(), previous)
                }
            };
            list.push(member);
        }
        for gone in old.into_values() {
            info!(server = %escape(&gone.board.settings.name), "MCP server removed");
            gone.leave(&mut members.leaving);
        }
        members.leaving.retain(|_, task| !task.is_finished());
        members.list = list;
        let boards = members.list.iter().map(|member| Arc::clone(&member.board));
        self.inner.shared.roster.set(boards.collect());
    }

    /// Tries servers by these rules from now on; a wait that has begun ends as it was planned.
    pub fn set_retry(&self, retry: RetryPolicy) {
        self.inner.shared.retry.store(Arc::new(retry));
    }

    /// All servers as they are now, in the order of the configuration.
    pub fn status(&self) -> Vec<ServerStatus> {
        let boards = self.inner.shared.roster.boards();
        boards.iter().map(|board| board.status()).collect()
    }

    /// One server as it is now.
    pub fn status_of(&self, name: &str) -> Option<ServerStatus> {
        let boards = self.inner.shared.roster.boards();
        let board = boards.iter().find(|board| board.settings.name == name)?;
        Some(board.status())
    }

    /// Counts changes of [`status`](Self::status); await its `changed`.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.inner.shared.roster.changed()
    }

    /// Why a server whose tools aren't known couldn't be reached lately.
    pub fn failure(&self, name: &str) -> Option<RememberedFailure> {
        let members = self.inner.members();
        let mut all = members.list.iter();
        let member = all.find(|member| member.board.settings.name == name)?;
        let catalogue = &self.inner.shared.options.catalogue;
        catalogue.failure(&member.board.settings)
    }

    /// Connects a server anew. True if it is connected in the end; false if not, and if there is no such server.
    pub async fn reconnect(&self, name: &str) -> bool {
        let orders = {
            let members = self.inner.members();
            let member = members
                .list
                .iter()
                .find(|member| member.board.settings.name == name);
            member.and_then(|member| Some(member.life.as_ref()?.orders.clone()))
        };
        let Some(orders) = orders else {
            return false;
        };
        let (order, outcome) = oneshot::channel();
        orders.send(order).await.is_ok() && outcome.await.unwrap_or(false)
    }

    /// Ends all servers in an orderly way, side by side; returns when nothing of them is left, or after ten seconds, a minute
    /// where a download is interrupted. What takes longer goes on in the background, watched by the guard.
    pub async fn stop(&self) {
        let (mut leaving, downloads) = {
            let mut members = self.inner.members();
            let downloads: Vec<String> = members.downloads();
            let mut leaving = std::mem::take(&mut members.leaving);
            for member in &mut members.list {
                member.end(&mut leaving);
            }
            (leaving, downloads)
        };
        if timeout(STOP, self.ended(&mut leaving)).await.is_ok() {
            return;
        }
        let is_late = |name: &&String| leaving.get(*name).is_some_and(|task| !task.is_finished());
        let late: Vec<_> = downloads
            .iter()
            .filter(is_late)
            .map(|name| escape(name))
            .collect();
        if !late.is_empty() {
            let (server, seconds) = (late.join(", "), (STOP_DOWNLOAD - STOP).as_secs());
            warn!(%server, "MCP server was stopped in the middle of its download, which is taken back: waiting up to {seconds} s more");
            drop(timeout(STOP_DOWNLOAD - STOP, self.ended(&mut leaving)).await);
        }
        for (name, task) in leaving.iter().filter(|(_, task)| !task.is_finished()) {
            warn!(server = %escape(name), "MCP server did not end in time; it goes on to end in the background");
            task.abort();
        }
    }

    /// Returns when these are gone, and what they listed is written down.
    async fn ended(&self, leaving: &mut HashMap<String, JoinHandle<()>>) {
        let running = leaving.values_mut().filter(|task| !task.is_finished());
        join_all(running).await;
        let writes = &self.inner.shared.writes;
        writes.close();
        writes.wait().await;
        // They may be started again.
        writes.reopen();
    }
}

impl Shared {
    /// When a server that does not connect is tried again, as it is configured now.
    pub(super) fn retry(&self) -> RetryPolicy {
        **self.retry.load()
    }
}

impl Inner {
    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock()
    }

    fn start(
        &self,
        settings: ServerSettings,
        rank: Rank,
        pins_before: Option<&ToolPins>,
        previous: Option<JoinHandle<()>>,
    ) -> Member {
        let (disabled, blocked) = (settings.disabled, settings.blocked.clone());
        let (state, link) = match self.shared.options.on_demand {
            _ if disabled => (ServerState::Disabled, Link::new()),
            _ if blocked.is_some() => (ServerState::Failed, Link::new()),
            true => (ServerState::Idle, Link::idle()),
            false => (ServerState::Starting, Link::new()),
        };
        let options = &self.shared.options;
        let (catalogue, redactor) = (&options.catalogue, &options.redactor);
        let pins = ToolPins::new(&settings, catalogue, redactor, pins_before);
        let shelf = Shelf::new(Arc::clone(&self.shared.manager), &settings.name, rank);
        let mut member = Member {
            board: self.shared.roster.board(settings, state),
            shelf: Arc::new(shelf),
            pins: Arc::new(pins),
            rank,
            link,
            life: None,
        };
        if disabled {
            return member;
        }
        member.recall(&options.catalogue, &options.redactor);
        if let Some(reason) = blocked {
            member.block(&reason);
            return member;
        }
        let stop = self.all.child_token();
        let (orders, receiver) = mpsc::channel(ORDERS);
        let server = Server {
            shared: Arc::clone(&self.shared),
            board: Arc::clone(&member.board),
            shelf: Arc::clone(&member.shelf),
            pins: Arc::clone(&member.pins),
            link: member.link.clone(),
            stop: stop.clone(),
            orders: receiver,
            starts: Starts::new(&self.shared.retry()),
            course: Course::default(),
            writing: None,
        };
        let task = tokio::spawn(server.run(previous));
        member.life = Some(Life { stop, orders, task });
        member
    }
}

#[cfg(test)]
mod tests;
