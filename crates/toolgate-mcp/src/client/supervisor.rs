//! Supervises one server: connects it, keeps its tools up to date, and reconnects it when it ends.
//!
//! ```text
//!  attempt 1 ─▶ 2 ─▶ 3 ─▶ failed ─▶ slow retries, forever
//!     │         │    │                 │
//!     └─────────┴────┴──▶ connected ◀──┘
//!     ▲                       │
//!     └──────── died ─────────┘   at once the first time; if it ends again within a
//!                                 minute, its attempts go on counting
//! ```

mod shutdown;
mod transitions;

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

use super::catalog::ToolCatalog;
use super::connect::ConnectError;
use super::connection::{ConnectedServer, SupervisedConnection, ToolOffer};
use super::health_check::{HealthCheck, choose_health_tool};
use super::install_lock::InstallLock;
use super::link::ServerLink;
use super::pinning::ToolPins;
use super::servers::ServersContext;
use super::status::{ServerState, StatusBoard};
use super::tool_registration::ToolRegistration;
use super::transport::SessionEnd;
use crate::ServerSettings;
use crate::retry::{RetryPolicy, StartLimiter};

// How long a server must stay up before its earlier failures are forgotten.
const HEALTHY_UPTIME: Duration = Duration::from_secs(60);
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(10);
// Longer if a package manager may have to undo a download.
const DOWNLOAD_CLEANUP_TIMEOUT: Duration = Duration::from_secs(5 * 60 + 20);
const MIN_LISTING_INTERVAL: Duration = Duration::from_secs(1);
const LISTING_RETRY_DELAY: Duration = Duration::from_secs(30);
const LISTING_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_ERROR_TEXT: usize = 1000;

/// A reconnect request, answered with whether the server is connected in the end.
pub(super) type ReconnectRequest = oneshot::Sender<bool>;

pub(super) struct ServerSupervisor {
    pub(super) shared: Arc<ServersContext>,
    pub(super) board: Arc<StatusBoard>,
    pub(super) registration: Arc<ToolRegistration>,
    pub(super) pins: Arc<ToolPins>,
    pub(super) link: ServerLink,
    pub(super) stop: CancellationToken,
    pub(super) reconnect_requests: mpsc::Receiver<ReconnectRequest>,
    pub(super) starts: StartLimiter,
    pub(super) retry_state: RetryState,
    // The latest write to the catalog; the next one waits for it.
    pub(super) writing: Option<JoinHandle<()>>,
}

#[derive(Default)]
pub(super) struct RetryState {
    attempts: u32,
    // It has died, and has not been up for `HEALTHY_UPTIME` since.
    is_crash_looping: bool,
    is_failed: bool,
    is_reported: bool,
    is_permanent: bool,
    waiting_reconnects: Vec<ReconnectRequest>,
}

enum ConnectionLoss {
    Died(SessionEnd),
    ReconnectRequested(ReconnectRequest),
}

impl ServerSupervisor {
    /// Runs until stopped. A panic of this code restarts the server with the usual delays. After
    /// several panics the server stays down until a person reconnects it.
    pub(super) async fn run(mut self, previous: Option<JoinHandle<()>>) {
        if let Some(previous) = previous {
            drop(previous.await);
        }
        let stop = self.stop.clone();
        tokio::select! {
            biased;
            // Nothing was started, so there is nothing to clean up.
            () = stop.cancelled() => return self.shut_down_idle(),
            () = self.wait_until_needed() => {}
        }
        let mut panics = StartLimiter::new(&RetryPolicy::default());
        loop {
            let serving = AssertUnwindSafe(self.connect_and_serve()).catch_unwind();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Err(_) = serving => {}
            }
            panics.record();
            let too_often = panics.allowed_at() > Instant::now();
            self.handle_panic(too_often).await;
            if !too_often {
                self.mark_restarting();
                continue;
            }
            panics.reset();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(request) = self.reconnect_requests.recv() => self.handle_reconnect(request),
                else => break,
            }
        }
        self.shut_down().await;
    }

    async fn wait_until_needed(&mut self) {
        tokio::select! {
            () = self.link.wait_for_start_request() => {}
            Some(request) = self.reconnect_requests.recv() => self.handle_reconnect(request),
        }
        self.board.mark_starting();
    }

    async fn connect_and_serve(&mut self) -> Infallible {
        loop {
            match self.attempt().await {
                Err(error) => self.handle_connect_error(&error),
                Ok((connected, elapsed)) => {
                    let connection = Arc::clone(&connected.connection);
                    let since = Instant::now();
                    self.handle_connected(connected, elapsed);
                    let loss = self.serve(&*connection).await;
                    self.handle_loss(loss, since.elapsed(), &*connection).await;
                }
            }
        }
    }

    async fn attempt(&mut self) -> Result<(ConnectedServer, Duration), ConnectError> {
        self.retry_state.attempts += 1;
        self.wait_before_attempt().await;
        let attempt = self.retry_state.attempts;
        self.board.update(|facts| {
            facts.status.attempts = attempt;
            facts.next_try = None;
        });
        let first_start = self.board.is_first_start();
        let limit = self
            .settings()
            .start_limit(first_start, self.retry_state.is_failed);
        let cleanup = match self.settings().is_package_runner() {
            true => DOWNLOAD_CLEANUP_TIMEOUT,
            false => CLEANUP_TIMEOUT,
        };
        // Two processes that install the same package at once would corrupt it.
        let connector = Arc::clone(&self.shared.connector);
        connector.wait_for_exit(&self.settings().name).await;
        let install_lock = match first_start {
            true => self.install_lock().await,
            false => None,
        };
        self.starts.record();
        let began = Instant::now();
        let settings = &self.board.settings;
        let connecting = connector.connect(settings, &self.link, limit);
        let outcome = timeout(limit + cleanup, connecting).await;
        let connected = outcome.unwrap_or_else(|_| Err(timeout_error(limit)))?;
        if let Some(lock) = install_lock {
            lock.release();
        }
        Ok((connected, began.elapsed()))
    }

    async fn install_lock(&self) -> Option<InstallLock> {
        let package = self.settings().package_folder()?;
        let path = self.shared.options.catalog.install_lock(&package)?;
        let (server, connector) = (&self.settings().name, &self.shared.connector);
        Some(InstallLock::acquire(&path, server, connector).await)
    }

    /// Waits as long as the policy says, and longer if there were too many starts
    /// in the last minute.
    async fn wait_before_attempt(&mut self) {
        let (policy, attempt) = (self.shared.retry(), self.retry_state.attempts);
        self.starts.set_policy(&policy);
        let delay = match self.retry_state.is_failed {
            true if self.retry_state.is_permanent => policy.slowest_delay(),
            true => policy.slow_delay(attempt),
            false => policy.delay(attempt),
        };
        let name = &self.settings().name;
        let (attempts, delay_s) = (policy.attempts, delay.as_secs_f64());
        match self.retry_state.is_failed {
            true => debug!(server = %name, attempt, delay_s, "MCP connection attempt {attempt}"),
            false => {
                info!(server = %name, attempt, delay_s, "MCP connection attempt {attempt} of {attempts}");
            }
        }
        // Read before `now()`: without a limit it returns the current time, which must not count as
        // a later one.
        let allowed = self.starts.allowed_at();
        let mut at = Instant::now() + delay;
        if allowed > at {
            at = allowed;
            self.record_start_delay(at);
        }
        if at <= Instant::now() {
            return;
        }
        self.board.update(|facts| facts.next_try = Some(at));
        tokio::select! {
            () = sleep_until(at) => {}
            Some(request) = self.reconnect_requests.recv() => {
                self.handle_reconnect(request);
                self.retry_state.attempts = 1;
            }
        }
    }

    fn record_start_delay(&self, until: Instant) {
        let why = format!(
            "it was started {} times within a minute; the next attempt is in {} s",
            self.starts.max_starts(),
            (until - Instant::now()).as_secs_f64().ceil()
        );
        match self.retry_state.is_failed {
            // The failure was already logged as a warning.
            true => debug!(server = %self.settings().name, "MCP server start is delayed: {why}"),
            false => warn!(server = %self.settings().name, "MCP server start is delayed: {why}"),
        }
        self.board.update(|facts| {
            facts.status.error = Some(match facts.status.error.take() {
                Some(error) => format!("{error}; {why}"),
                None => why,
            });
        });
    }

    fn publish_tools(&mut self, offer: ToolOffer) {
        let verdict = self.pins.compare(&offer.listed);
        self.link.set_withheld(verdict.withheld.clone());
        let refused = offer.refused;
        let health_tool = choose_health_tool(self.settings(), &offer.tools);
        let content = offer.content.clone().offer(self.settings(), &self.link);
        let tools = self
            .registration
            .offer(offer.tools, verdict.withheld, content);
        self.board.update(|facts| {
            facts.status.tools = tools;
            facts.status.changes = verdict.changes;
            facts.status.refused = refused;
            facts.status.listed_at = Some(SystemTime::now());
            facts.health_tool = health_tool;
        });
        let (listed, content) = (offer.listed, offer.content);
        self.write_catalog(move |catalog, settings| {
            catalog.remember(settings, &listed, &content);
        });
    }

    // Queues a write to the catalog. Writes of one server run in order in the background;
    // shutdown waits for them.
    fn write_catalog(&mut self, work: impl FnOnce(&ToolCatalog, &ServerSettings) + Send + 'static) {
        let catalog = self.shared.options.catalog.clone();
        if !catalog.can_store(self.settings()) {
            return;
        }
        let board = Arc::clone(&self.board);
        let before = self.writing.take();
        self.writing = Some(self.shared.writes.spawn(async move {
            if let Some(before) = before {
                drop(before.await);
            }
            let work = move || work(&catalog, &board.settings);
            drop(tokio::task::spawn_blocking(work).await);
        }));
    }

    async fn serve(&mut self, connection: &dyn SupervisedConnection) -> ConnectionLoss {
        let mut listed = Instant::now();
        let mut due = None;
        let mut health = std::pin::pin!(self.health_check().run());
        loop {
            tokio::select! {
                end = connection.ended() => return ConnectionLoss::Died(end),
                Some(request) = self.reconnect_requests.recv() => return ConnectionLoss::ReconnectRequested(request),
                never = &mut health => match never {},
                // Coalesces a burst of changes: once a listing is due, further changes wait for it.
                () = connection.lists_changed(), if due.is_none_or(|due| due > listed + MIN_LISTING_INTERVAL) => due = Some(listed + MIN_LISTING_INTERVAL),
                () = sleep_until(due.unwrap_or(listed)), if due.is_some() => {
                    listed = Instant::now();
                    let offer = tokio::select! {
                        end = connection.ended() => return ConnectionLoss::Died(end),
                        offer = timeout(LISTING_TIMEOUT, connection.list_everything()) => offer,
                    };
                    let is_listed = self.handle_new_listing(offer.unwrap_or_else(|_| Err("no response in time".to_owned())));
                    due = (!is_listed).then(|| Instant::now() + LISTING_RETRY_DELAY);
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

    /// Returns false if the tools could not be listed.
    fn handle_new_listing(&mut self, offer: Result<ToolOffer, String>) -> bool {
        let name = self.settings().name.clone();
        match offer {
            Ok(offer) if offer.is_ttl_refresh => {
                debug!(server = %name, tools = offer.tools.len(), "MCP server was asked again for its lists");
                self.publish_tools(offer);
                true
            }
            Ok(offer) => {
                info!(server = %name, tools = offer.tools.len(), "MCP server changed its tools");
                self.publish_tools(offer);
                true
            }
            Err(reason) => {
                let reason = self.shared.options.redactor.line(&reason, MAX_ERROR_TEXT);
                warn!(server = %name, %reason, "MCP server announced changed tools but didn't list them; keeping the old ones");
                false
            }
        }
    }

    async fn handle_loss(
        &mut self,
        loss: ConnectionLoss,
        uptime: Duration,
        connection: &dyn SupervisedConnection,
    ) {
        self.mark_restarting();
        self.board.update(|facts| facts.connection = None);
        match loss {
            ConnectionLoss::ReconnectRequested(request) => self.handle_reconnect(request),
            ConnectionLoss::Died(end) => self.handle_exit(&end, uptime),
        }
        drop(timeout(CLEANUP_TIMEOUT, connection.close()).await);
    }

    fn mark_restarting(&mut self) {
        self.link.set_connecting();
        self.board
            .update(|facts| facts.status.state = ServerState::Restarting);
    }

    fn settings(&self) -> &ServerSettings {
        &self.board.settings
    }
}

fn timeout_error(limit: Duration) -> ConnectError {
    let seconds = limit.as_secs_f64();
    ConnectError::new(format!(
        "it did not connect within {seconds} s; for a slow server, raise 'startTimeout'"
    ))
}
