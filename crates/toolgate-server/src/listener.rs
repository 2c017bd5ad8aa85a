//! Accepts connections, limits them, and closes them in an orderly way.

mod connection;
mod connection_watch;
pub(crate) mod head_scanner;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

pub(crate) use connection_watch::{BodyLimitError, ConnectionWatch};

use crate::Gateway;
use crate::guard::{ConnectionAddresses, RequestGuard};
use connection::{linger, serve_connection};
use connection_watch::{ConnectionReaper, TICK};

// How long calls may continue after the gateway was told to stop.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
// How long responses may take to be sent once their calls were cancelled.
const RESPONSE_GRACE: Duration = Duration::from_secs(1);
// How often running calls are polled during shutdown.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
// The pause after accepting a connection failed.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);
// The minimum interval between two such log lines.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);
// At most this many rejected connections get a 503 at a time; further ones are just closed.
const MAX_REJECTED: usize = 64;
// Limits connections whose caller is not known yet: half of all, within these bounds.
const MIN_UNKNOWN: usize = 64;
const MAX_UNKNOWN: usize = 1024;
const OVERLOADED_RESPONSE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Serves until `stop` is cancelled. Then requests in progress get five seconds, after which their
/// calls are cancelled. Returns once all connections are closed.
///
/// Invalid settings fail with [`io::ErrorKind::InvalidInput`].
pub async fn serve(
    gateway: Gateway,
    listener: TcpListener,
    stop: CancellationToken,
) -> io::Result<()> {
    let bind = listener.local_addr()?;
    let settings = &gateway.parts.settings;
    let problem = settings.problem();
    if let Some(problem) = problem.or_else(|| settings.problem_of_bind(bind)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    gateway.set_dashboard_url(dashboard_url(bind));
    let restored = gateway.clone();
    tokio::spawn(async move { restored.mcp.restore_tasks().await });
    let guard = RequestGuard::new(gateway.clone(), bind);
    let mut manager = ConnectionManager::new(gateway, guard);
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => manager.accept(stream, peer),
                Err(error) => manager.handle_accept_error(&error).await,
            },
            _ = tick.tick() => manager.reaper.tick(),
            Some(ended) = manager.open.join_next() => log_panic(ended),
            Some(ended) = manager.rejected.join_next() => log_panic(ended),
        }
    }
    drop(listener);
    manager.close().await;
    Ok(())
}

fn dashboard_url(bind: SocketAddr) -> String {
    let ip = bind.ip();
    match ip.is_loopback() || ip.is_unspecified() {
        true => format!("http://localhost:{}/", bind.port()),
        false => format!("http://{bind}/"),
    }
}

struct ConnectionManager {
    gateway: Gateway,
    guard: Arc<RequestGuard>,
    reaper: Arc<ConnectionReaper>,
    max_open: usize,
    open: JoinSet<()>,
    rejected: JoinSet<()>,
    reported_at: Option<Instant>,
}

impl ConnectionManager {
    fn new(gateway: Gateway, guard: RequestGuard) -> Self {
        Self {
            max_open: gateway.parts.settings.connections,
            guard: Arc::new(guard),
            gateway,
            reaper: Arc::default(),
            open: JoinSet::new(),
            rejected: JoinSet::new(),
            reported_at: None,
        }
    }

    /// Accepts a connection. At the limit, the one that has been idle longest is closed; if
    /// all are busy, the new one is rejected. Connections of unknown callers have a lower limit, so
    /// that half-sent requests can't fill the gateway or lock others out.
    fn accept(&mut self, stream: TcpStream, peer: SocketAddr) {
        let max_unknown = (self.max_open / 2).clamp(MIN_UNKNOWN, MAX_UNKNOWN);
        if self.reaper.unknown_count() >= max_unknown && !self.reaper.evict_unknown() {
            return self.reject(stream);
        }
        if self.reaper.count() >= self.max_open && !self.reaper.evict_idle() {
            return self.reject(stream);
        }
        let Ok(local) = stream.local_addr() else {
            return; // The peer has closed it already.
        };
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "can't set TCP_NODELAY");
        }
        let addresses = ConnectionAddresses {
            peer: peer.ip().to_canonical(),
            local: local.ip().to_canonical(),
        };
        let (guard, reaper) = (Arc::clone(&self.guard), Arc::clone(&self.reaper));
        let stop = self.gateway.stopping.clone();
        let (number, watch) = reaper.register();
        self.open.spawn(async move {
            let _slot = ConnectionSlot(&reaper, number);
            serve_connection(guard, stream, addresses, watch, stop).await;
        });
    }

    fn reject(&mut self, mut stream: TcpStream) {
        debug!("rejected a connection: the connection limit is reached");
        if self.rejected.len() < MAX_REJECTED {
            self.rejected.spawn(async move {
                if stream.write_all(OVERLOADED_RESPONSE).await.is_ok() {
                    linger(stream).await;
                }
            });
        }
    }

    /// Handles errors of the system, such as too many open files, and connections that broke
    /// before they were accepted.
    async fn handle_accept_error(&mut self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
        let kind = error.kind();
        if matches!(
            kind,
            ConnectionAborted | ConnectionRefused | ConnectionReset
        ) {
            return;
        }
        let reported = self.reported_at.map(|at| at.elapsed());
        if reported.is_none_or(|elapsed| elapsed >= REPORT_INTERVAL) {
            self.reported_at = Some(Instant::now());
            let open = self.reaper.count();
            warn!(%error, open, "can't accept new connections; if this persists, raise the open-file limit (`ulimit -n`)");
        }
        self.reaper.evict_idle();
        tokio::time::sleep(ACCEPT_BACKOFF).await;
    }

    async fn close(mut self) {
        self.gateway.stopping.cancel();
        self.rejected.abort_all();
        let running_requests = self.guard.running_requests();
        if running_requests > 0 {
            info!(
                requests = running_requests,
                "stopping; waiting for requests to finish"
            );
        }
        let gateway = self.gateway.clone();
        // A call over MCP may outlive its connection, so MCP is closed separately. The extra
        // intervals let the waits below end first and log the calls before they are cancelled.
        let grace = SHUTDOWN_GRACE + 2 * POLL_INTERVAL;
        let mcp = tokio::spawn(async move { gateway.mcp.close(grace).await });
        if self.wait_until_idle(SHUTDOWN_GRACE).await || self.leave_tasks().await {
            // No call is running any more; this completes `Gateway::closed`.
            self.gateway.calls.cancel();
            return drop(mcp.await);
        }
        let left = self.guard.running_requests();
        if left > 0 {
            let seconds = SHUTDOWN_GRACE.as_secs();
            warn!(
                requests = left,
                "requests still running {seconds} s after the gateway was told to stop; cancelling their calls"
            );
        }
        for (call, running) in self.gateway.parts.stats.running() {
            let tool = toolgate_core::text::escape(&running.tool);
            let ran_ms = running.since.elapsed().as_secs_f64() * 1000.0;
            warn!(%call, %tool, ran_ms, "call cancelled: the gateway is shutting down");
        }
        self.gateway.calls.cancel();
        if !self.wait_until_closed(RESPONSE_GRACE).await {
            debug!(
                connections = self.open.len(),
                "closing the remaining connections"
            );
        }
        self.open.shutdown().await;
        drop(mcp.await);
    }

    // Leaves calls to servers that go on with them as tasks, because the journal lets the next
    // gateway continue them. Returns true if no other call is running.
    async fn leave_tasks(&mut self) -> bool {
        if self.gateway.parts.journal.is_none() {
            return false;
        }
        self.gateway.parts.executor.leave_tasks();
        self.wait_until_idle(POLL_INTERVAL).await
    }

    // Returns true once all connections are closed and no call is running, or false on timeout.
    async fn wait_until_idle(&mut self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        let is_empty = self.wait_until_closed(timeout).await;
        let stats = self.gateway.parts.stats.clone();
        while is_empty && !stats.running().is_empty() {
            if Instant::now() >= end {
                return false;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        is_empty
    }

    async fn wait_until_closed(&mut self, timeout: Duration) -> bool {
        let all = async {
            while let Some(ended) = self.open.join_next().await {
                log_panic(ended);
            }
        };
        tokio::time::timeout(timeout, all).await.is_ok()
    }
}

/// A panic in a route is answered with an error, but a panic in the body of a
/// response ends its connection.
fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        let error = toolgate_core::text::escape(&error.to_string());
        error!(%error, "a connection task panicked; this is a bug, please report it");
    }
}

struct ConnectionSlot<'a>(&'a ConnectionReaper, u64);

impl Drop for ConnectionSlot<'_> {
    fn drop(&mut self) {
        self.0.unregister(self.1);
    }
}

#[cfg(test)]
mod tests;
