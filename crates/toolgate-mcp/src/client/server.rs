//! The life of one server: connecting, being there, dying, coming back.
//!
//! ```text
//!  attempt 1 ─▶ 2 ─▶ 3 ─▶ failed ─▶ slow retries, for ever
//!     │         │    │                 │
//!     └─────────┴────┴──▶ connected ◀──┘
//!     ▲                       │
//!     └──────── died ─────────┘   at once the first time; a server that was not well for a minute goes on counting
//! ```

mod ends;
mod turns;

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::catalogue::Catalogue;
use super::connect::ConnectError;
use super::health_check::{HealthCheck, health_tool};
use super::install_lock::InstallLock;
use super::link::Link;
use super::peer::{Offer, Peer, Reached};
use super::pinning::ToolPins;
use super::servers::Shared;
use super::shelf::Shelf;
use super::status::{Board, ServerState};
use super::transport::End;
use crate::ServerSettings;
use crate::retry::{RetryPolicy, Starts};

/// So long a server must stay up before its earlier failures are forgotten.
const HEALTHY: Duration = Duration::from_secs(60);
/// What an attempt may take to clean up after itself, besides its patience.
const CLEANUP: Duration = Duration::from_secs(10);
/// The same where a download may have to be taken back.
const CLEANUP_OF_DOWNLOAD: Duration = Duration::from_secs(5 * 60 + 20);
/// Lists are asked for no more often than this.
const BETWEEN_LISTINGS: Duration = Duration::from_secs(1);
/// After a list that did not come, it is asked for again.
const AFTER_NO_LIST: Duration = Duration::from_secs(30);
const LISTING: Duration = Duration::from_secs(30);
/// The longest error text that is shown.
const LONGEST: usize = 1000;

/// Answered with whether the server is connected in the end.
pub(super) type Order = oneshot::Sender<bool>;

pub(super) struct Server {
    pub(super) shared: Arc<Shared>,
    pub(super) board: Arc<Board>,
    pub(super) shelf: Arc<Shelf>,
    pub(super) pins: Arc<ToolPins>,
    pub(super) link: Link,
    pub(super) stop: CancellationToken,
    pub(super) orders: mpsc::Receiver<Order>,
    pub(super) starts: Starts,
    pub(super) course: Course,
    /// What is being written to the catalogue.
    pub(super) writing: Option<JoinHandle<()>>,
}

/// Where it stands between well and given up.
#[derive(Default)]
pub(super) struct Course {
    /// Attempts since it was last well.
    used: u32,
    /// It has died, and was not well for long enough since.
    dying: bool,
    /// The round has failed: retries are slow and quiet.
    failed: bool,
    /// The block has been shown.
    told: bool,
    hopeless: bool,
    waiting: Vec<Order>,
}

enum Loss {
    Died(End),
    Ordered(Order),
}

impl Server {
    /// Runs until it is stopped. A panic ends the server, not the task: it is started again, with the wait of any other retry.
    /// If that happens again and again it stays down until a person orders a reconnect.
    pub(super) async fn run(mut self, previous: Option<JoinHandle<()>>) {
        if let Some(previous) = previous {
            drop(previous.await);
        }
        let stop = self.stop.clone();
        tokio::select! {
            biased;
            // Nothing was started, so there is nothing to take back.
            () = stop.cancelled() => return self.stopped_idle(),
            () = self.needed() => {}
        }
        let mut panics = Starts::new(&RetryPolicy::default());
        loop {
            let life = AssertUnwindSafe(self.live()).catch_unwind();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Err(_) = life => {}
            }
            panics.count();
            let too_often = panics.allowed_at() > Instant::now();
            self.panicked(too_often).await;
            if !too_often {
                self.restarts();
                continue;
            }
            panics.forget();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(order) = self.orders.recv() => self.ordered(order),
                else => break,
            }
        }
        self.end().await;
    }

    async fn needed(&mut self) {
        tokio::select! {
            () = self.link.wanted() => {}
            Some(order) = self.orders.recv() => self.ordered(order),
        }
        self.board.begin();
    }

    async fn live(&mut self) -> Infallible {
        loop {
            match self.attempt().await {
                Err(error) => self.refused(&error),
                Ok((reached, took)) => {
                    let peer = Arc::clone(&reached.peer);
                    let since = Instant::now();
                    self.connected(reached, took);
                    let loss = self.serve(&*peer).await;
                    self.lost(loss, since.elapsed(), &*peer).await;
                }
            }
        }
    }

    async fn attempt(&mut self) -> Result<(Reached, Duration), ConnectError> {
        self.course.used += 1;
        self.wait().await;
        let attempt = self.course.used;
        self.board.update(|facts| {
            facts.attempts = attempt;
            facts.next_try = None;
        });
        let first_start = self.board.is_first_start();
        let patience = self.settings().start_limit(first_start, self.course.failed);
        let cleanup = match self.settings().is_package_runner() {
            true => CLEANUP_OF_DOWNLOAD,
            false => CLEANUP,
        };
        // Two that install the same package at once break it.
        self.shared.reach.cleared(&self.settings().name).await;
        let install_lock = match first_start {
            true => self.install_lock().await,
            false => None,
        };
        self.starts.count();
        let began = Instant::now();
        let settings = &self.board.settings;
        let reach = self.shared.reach.reach(settings, &self.link, patience);
        let answer = timeout(patience + cleanup, reach).await;
        let reached = answer.unwrap_or_else(|_| Err(overdue(patience)))?;
        if let Some(lock) = install_lock {
            lock.finish();
        }
        Ok((reached, began.elapsed()))
    }

    async fn install_lock(&self) -> Option<InstallLock> {
        let package = self.settings().package_folder()?;
        let path = self.shared.options.catalogue.install_lock(&package)?;
        let (server, reach) = (&self.settings().name, &self.shared.reach);
        Some(InstallLock::acquire(&path, server, reach).await)
    }

    /// The delay of the policy, and what the starts of the last minute add to it.
    async fn wait(&mut self) {
        let (policy, attempt) = (self.shared.retry(), self.course.used);
        self.starts.allow(&policy);
        let delay = match self.course.failed {
            true if self.course.hopeless => policy.slowest_delay(),
            true => policy.slow_delay(attempt),
            false => policy.delay(attempt),
        };
        let name = &self.settings().name;
        let (of, delay_s) = (policy.attempts, delay.as_secs_f64());
        match self.course.failed {
            true => debug!(server = %name, attempt, delay_s, "MCP connection attempt {attempt}"),
            false => {
                info!(server = %name, attempt, delay_s, "MCP connection attempt {attempt} of {of}");
            }
        }
        // Asked first: a moment later it would seem to lie ahead.
        let allowed = self.starts.allowed_at();
        let mut at = Instant::now() + delay;
        if allowed > at {
            at = allowed;
            self.hold_back(at);
        }
        if at <= Instant::now() {
            return;
        }
        self.board.update(|facts| facts.next_try = Some(at));
        tokio::select! {
            () = sleep_until(at) => {}
            Some(order) = self.orders.recv() => {
                self.ordered(order);
                self.course.used = 1;
            }
        }
    }

    fn hold_back(&self, until: Instant) {
        let why = format!(
            "it was started {} times within a minute; the next try is in {} s",
            self.starts.most(),
            (until - Instant::now()).as_secs_f64().ceil()
        );
        match self.course.failed {
            // It has been told that it is lost.
            true => debug!(server = %self.settings().name, "MCP server is held back: {why}"),
            false => warn!(server = %self.settings().name, "MCP server is held back: {why}"),
        }
        self.board.update(|facts| {
            facts.error = Some(match facts.error.take() {
                Some(error) => format!("{error}; {why}"),
                None => why,
            });
        });
    }

    fn offer(&mut self, offer: Offer) {
        let verdict = self.pins.compare(&offer.listed);
        self.link.withhold(verdict.withheld.clone());
        let refused = offer.refused;
        let health_tool = health_tool(self.settings(), &offer.tools);
        let tools = self.shelf.offer(offer.tools, verdict.withheld);
        self.board.update(|facts| {
            facts.tools = tools;
            facts.changes = verdict.changes;
            facts.refused = refused;
            facts.listed_at = Some(SystemTime::now());
            facts.health_tool = health_tool;
        });
        let listed = offer.listed;
        self.write(move |catalogue, settings| catalogue.remember(settings, &listed));
    }

    /// Writes to the catalogue, one after the other and beside everything else; the end of all servers waits for it.
    fn write(&mut self, work: impl FnOnce(&Catalogue, &ServerSettings) + Send + 'static) {
        let catalogue = self.shared.options.catalogue.clone();
        if !catalogue.remembers(self.settings()) {
            return;
        }
        let board = Arc::clone(&self.board);
        let before = self.writing.take();
        self.writing = Some(self.shared.writes.spawn(async move {
            if let Some(before) = before {
                drop(before.await);
            }
            let work = move || work(&catalogue, &board.settings);
            drop(tokio::task::spawn_blocking(work).await);
        }));
    }

    async fn serve(&mut self, peer: &dyn Peer) -> Loss {
        let mut listed = Instant::now();
        let mut due = None;
        let mut health = std::pin::pin!(self.health_check().run());
        loop {
            tokio::select! {
                end = peer.ended() => return Loss::Died(end),
                Some(order) = self.orders.recv() => return Loss::Ordered(order),
                never = &mut health => match never {},
                // A storm of changes is one change: nobody listens until the list is asked for.
                () = peer.tools_changed(), if due.is_none_or(|due| due > listed + BETWEEN_LISTINGS) => due = Some(listed + BETWEEN_LISTINGS),
                () = sleep_until(due.unwrap_or(listed)), if due.is_some() => {
                    listed = Instant::now();
                    let offer = tokio::select! {
                        end = peer.ended() => return Loss::Died(end),
                        offer = timeout(LISTING, peer.offer()) => offer,
                    };
                    let known = self.listed_again(offer.unwrap_or_else(|_| Err("no answer in time".to_owned())));
                    due = (!known).then(|| Instant::now() + AFTER_NO_LIST);
                }
            }
        }
    }

    fn health_check(&self) -> HealthCheck {
        HealthCheck {
            board: Arc::clone(&self.board),
            executor: self.shared.health_executor.subscribe(),
            redactor: self.shared.options.redactor.clone(),
        }
    }

    /// True if the tools are known again.
    fn listed_again(&mut self, offer: Result<Offer, String>) -> bool {
        let name = self.settings().name.clone();
        match offer {
            Ok(offer) => {
                info!(server = %name, tools = offer.tools.len(), "MCP server changed its tools");
                self.offer(offer);
                true
            }
            Err(reason) => {
                let reason = self.shared.options.redactor.line(&reason, LONGEST);
                warn!(server = %name, %reason, "MCP server changed its tools, but does not list them; the old ones stay");
                false
            }
        }
    }

    async fn lost(&mut self, loss: Loss, lived: Duration, peer: &dyn Peer) {
        self.restarts();
        self.board.update(|facts| facts.peer = None);
        match loss {
            Loss::Ordered(order) => self.ordered(order),
            Loss::Died(end) => self.died(&end, lived),
        }
        drop(timeout(CLEANUP, peer.close()).await);
    }

    fn restarts(&mut self) {
        self.link.connecting();
        self.board
            .update(|facts| facts.state = ServerState::Restarting);
    }

    fn settings(&self) -> &ServerSettings {
        &self.board.settings
    }
}

fn overdue(patience: Duration) -> ConnectError {
    ConnectError {
        reason: format!(
            "it was not connected within {} s; a slow server needs a longer 'startTimeout'",
            patience.as_secs_f64()
        )
        .into(),
        stderr: Vec::new(),
        hopeless: false,
        not_started: false,
    }
}
