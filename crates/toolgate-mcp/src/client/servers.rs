//! All servers: what the configuration says becomes what runs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_core::{Rank, Redactor, Source, ToolManager, escape};
use tracing::{info, warn};

use super::connect::Dialer;
use super::health::ServerHealth;
use super::link::Link;
use super::peer::Reach;
use super::questions::{Elicitor, Questions};

use super::seen::Seen;
use super::server::{Course, Order, Server};
use super::shelf::Shelf;
use super::status::{Board, Roster, ServerStatus};
use super::stdio::MAX_MESSAGE;
use super::stdio::guard::Guard;
use crate::retry::Starts;
use crate::{Readiness, RetryPolicy, ServerSettings};

/// Starts at the same time.
const STARTS_AT_ONCE: usize = 8;
/// How long an orderly end may take.
const STOP: Duration = Duration::from_secs(10);
/// Orders that may wait for one server; more are for the same thing.
const ORDERS: usize = 8;

/// The MCP servers of a configuration, supervised, their tools kept up to date in a [`ToolManager`]. Cheap to clone; when the
/// last clone is gone, all servers are ended.
#[derive(Clone)]
pub struct Servers {
    inner: Arc<Inner>,
}

/// What all servers have in common.
#[derive(Clone)]
#[non_exhaustive]
pub struct ServersOptions {
    /// When a server that does not connect is tried again.
    pub retry: RetryPolicy,
    /// Takes secrets out of what servers say.
    pub redactor: Redactor,
    /// Where the servers are configured, for a person to look.
    pub file: Option<PathBuf>,
    /// Ends the servers if this program is killed.
    pub guard: Guard,
    /// Answers what servers ask of a person; without one, such questions are declined.
    pub elicitor: Option<Arc<dyn Elicitor>>,
    /// Folders that servers may ask for.
    pub roots: Vec<PathBuf>,
    /// The largest message that is read from a server, in bytes.
    pub max_message: usize,
    /// The service that reports on these servers.
    pub health: ServerHealth,
}

/// What each server's task needs.
pub(super) struct Shared {
    pub(super) manager: Arc<ToolManager>,
    pub(super) options: ServersOptions,
    pub(super) reach: Arc<dyn Reach>,
    pub(super) slots: Arc<Semaphore>,
    pub(super) roster: Roster,
}

struct Inner {
    shared: Arc<Shared>,
    members: Mutex<Members>,
    all: CancellationToken,
    _end_with_the_last_handle: DropGuard,
}

#[derive(Default)]
struct Members {
    /// In the order of the configuration.
    list: Vec<Member>,
    /// Tasks on their way out, by server: the next one of the name waits for it.
    leaving: HashMap<String, JoinHandle<()>>,
}

struct Member {
    board: Arc<Board>,
    shelf: Arc<Shelf>,
    seen: Arc<Seen>,
    rank: Rank,
    /// None if it is disabled.
    life: Option<Life>,
}

struct Life {
    stop: CancellationToken,
    orders: mpsc::Sender<Order>,
    task: JoinHandle<()>,
}

impl ServersOptions {
    /// The usual ones.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Default for ServersOptions {
    fn default() -> Self {
        Self {
            retry: RetryPolicy::default(),
            redactor: Redactor::default(),
            file: None,
            guard: Guard::none(),
            elicitor: None,
            roots: Vec::new(),
            max_message: MAX_MESSAGE,
            health: ServerHealth::default(),
        }
    }
}

impl Servers {
    /// None yet: [`apply`](Self::apply) says which.
    pub fn new(manager: Arc<ToolManager>, options: ServersOptions) -> Self {
        let questions = Questions {
            elicitor: options.elicitor.clone(),
            roots: options.roots.clone(),
        };
        let (guard, redactor) = (options.guard.clone(), options.redactor.clone());
        let dialer = Dialer::new(guard, questions, redactor, options.max_message);
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
            options,
            roster,
            reach,
            slots: Arc::new(Semaphore::new(STARTS_AT_ONCE)),
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
    /// the others alone. Returns at once; call it inside of a tokio runtime.
    pub fn apply(&self, settings: Vec<ServerSettings>) {
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
                    let seen = changed.as_ref().map(|member| Arc::clone(&member.seen));
                    if let Some(changed) = changed {
                        changed.leave(&mut members.leaving);
                    }
                    let previous = match settings.disabled {
                        true => None,
                        false => members.leaving.remove(&name),
                    };
                    self.inner
                        .start(settings, rank, seen.unwrap_or_default(), previous)
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

    /// All servers as they are now, in the order of the configuration.
    pub fn status(&self) -> Vec<ServerStatus> {
        let boards = self.inner.shared.roster.boards();
        boards.iter().map(|board| board.status()).collect()
    }

    /// Counts changes of [`status`](Self::status); await its `changed`.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.inner.shared.roster.changed()
    }

    /// Returns when every server is connected or has failed its first round.
    pub async fn settled(&self) {
        self.until(|members| members.list.iter().all(|member| member.board.is_settled()))
            .await;
    }

    /// Returns when it is decided which tool this name finds, or that there is none.
    pub async fn settled_for(&self, name: &str) {
        self.until(|members| self.inner.is_decided(members, name))
            .await;
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

    /// Ends all servers in an orderly way, side by side; returns when nothing of them is left, or after ten seconds.
    pub async fn stop(&self) {
        let mut leaving = {
            let mut members = self.inner.members();
            let mut leaving = std::mem::take(&mut members.leaving);
            for member in &mut members.list {
                member.end(&mut leaving);
            }
            leaving
        };
        let ended = join_all(leaving.values_mut());
        if tokio::time::timeout(STOP, ended).await.is_err() {
            for (name, task) in leaving.iter().filter(|(_, task)| !task.is_finished()) {
                warn!(server = %escape(name), "MCP server did not end in time; it is left behind");
                task.abort();
            }
        }
    }

    async fn until(&self, is_so: impl Fn(&Members) -> bool) {
        let mut changed = self.inner.shared.roster.changed();
        let mut tools = self.inner.shared.manager.subscribe();
        while !is_so(&self.inner.members()) {
            tokio::select! {
                _ = changed.changed() => {}
                _ = tools.changed() => {}
            }
        }
    }
}

impl Inner {
    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(
        &self,
        settings: ServerSettings,
        rank: Rank,
        seen: Arc<Seen>,
        previous: Option<JoinHandle<()>>,
    ) -> Member {
        let disabled = settings.disabled;
        let shelf = Shelf::new(Arc::clone(&self.shared.manager), &settings.name, rank);
        let mut member = Member {
            board: self.shared.roster.board(settings),
            shelf: Arc::new(shelf),
            seen,
            rank,
            life: None,
        };
        if disabled {
            return member;
        }
        let stop = self.all.child_token();
        let (orders, receiver) = mpsc::channel(ORDERS);
        let server = Server {
            shared: Arc::clone(&self.shared),
            board: Arc::clone(&member.board),
            shelf: Arc::clone(&member.shelf),
            seen: Arc::clone(&member.seen),
            link: Link::new(),
            stop: stop.clone(),
            orders: receiver,
            starts: Starts::new(&self.shared.options.retry),
            course: Course::default(),
        };
        let task = tokio::spawn(server.run(previous));
        member.life = Some(Life { stop, orders, task });
        member
    }

    fn is_decided(&self, members: &Members, name: &str) -> bool {
        let mut unsettled = members
            .list
            .iter()
            .filter(|member| !member.board.is_settled())
            .peekable();
        if unsettled.peek().is_none() {
            return true;
        }
        let is_of = |member: &&Member| {
            let rest = name.strip_prefix(member.board.settings.name.as_str());
            rest.is_some_and(|rest| rest.starts_with("__"))
        };
        let mut named = members.list.iter().filter(is_of).peekable();
        if named.peek().is_some() && named.all(|member| member.board.is_settled()) {
            return true;
        }
        let tools = self.shared.manager.tools();
        let Some(tool) = tools.find(name).map(|tool| tool.definition()) else {
            return false;
        };
        // A name on a server may yet turn out to be that of two.
        if tool.name() != name {
            return false;
        }
        let rank = match tool.source() {
            Source::Mcp(server) => {
                let owner = members
                    .list
                    .iter()
                    .find(|member| member.board.settings.name == *server);
                owner.map_or(Rank::Local, |member| member.rank)
            }
            _ => Rank::Local,
        };
        unsettled.all(|member| member.rank > rank)
    }
}

impl Member {
    /// Disabled, or its task is there.
    fn is_alive(&self) -> bool {
        match &self.life {
            Some(life) => !life.task.is_finished() && !life.stop.is_cancelled(),
            None => self.board.settings.disabled,
        }
    }

    fn leave(mut self, leaving: &mut HashMap<String, JoinHandle<()>>) {
        self.end(leaving);
    }

    fn end(&mut self, leaving: &mut HashMap<String, JoinHandle<()>>) {
        if let Some(life) = self.life.take() {
            life.stop.cancel();
            leaving.insert(self.board.settings.name.clone(), life.task);
        }
    }
}

impl Readiness for Servers {
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.settled())
    }

    fn ready_for<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(self.settled_for(tool))
    }
}

#[cfg(test)]
mod tests;
