//! Connections: accepted, bounded, and ended in an orderly way.

mod connection;
pub(crate) mod head;
mod watch;

use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

pub(crate) use watch::{Fault, Watch};

use crate::Gateway;
use crate::guard::{Ends, Guard};
use connection::{converse, linger};
use watch::{Patrol, TICK};

/// How long calls may go on after the gateway was told to stop.
const GRACE: Duration = Duration::from_secs(5);
/// How long their answers may take to leave once they were cancelled.
const FAREWELL: Duration = Duration::from_secs(1);
/// How often it is looked whether calls are still running.
const LOOK: Duration = Duration::from_millis(50);
/// How long to leave a system alone that has no more connections to give.
const BACK_OFF: Duration = Duration::from_millis(100);
/// Such a system is reported this often.
const REPORT: Duration = Duration::from_secs(60);
/// Connections that are told at once that there is no room; with more they are only closed.
const TURNED_AWAY: usize = 64;
/// Connections on which nobody has shown yet that it may come in: half of all, within these bounds.
const STRANGERS: RangeInclusive<usize> = 64..=1024;
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Serves until `stop`, and then until every request has been answered: those under way have five seconds, after which
/// their calls are cancelled.
///
/// Settings that would let the wrong ones in are an error of the kind [`io::ErrorKind::InvalidInput`].
pub async fn serve(
    gateway: Gateway,
    listener: TcpListener,
    stop: CancellationToken,
) -> io::Result<()> {
    let bind = listener.local_addr()?;
    let settings = &gateway.parts().settings;
    if let Some(problem) = settings
        .problem()
        .or_else(|| settings.problem_of_bind(bind))
    {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    gateway.parts().approvals.set_url(dashboard_url(bind));
    let guard = Guard::new(gateway.clone(), bind);
    let mut hall = Hall::new(gateway, guard);
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => hall.welcome(stream, peer),
                Err(error) => hall.rest(&error).await,
            },
            _ = tick.tick() => hall.patrol.tick(),
            Some(ended) = hall.open.join_next() => tell_panic(ended),
            Some(ended) = hall.turned_away.join_next() => tell_panic(ended),
        }
    }
    drop(listener);
    hall.close().await;
    Ok(())
}

/// Where a browser on this machine finds the dashboard.
fn dashboard_url(bind: SocketAddr) -> String {
    let ip = bind.ip();
    match ip.is_loopback() || ip.is_unspecified() {
        true => format!("http://localhost:{}/", bind.port()),
        false => format!("http://{bind}/"),
    }
}

struct Hall {
    gateway: Gateway,
    guard: Arc<Guard>,
    patrol: Arc<Patrol>,
    most: usize,
    open: JoinSet<()>,
    turned_away: JoinSet<()>,
    reported: Option<Instant>,
}

impl Hall {
    fn new(gateway: Gateway, guard: Guard) -> Self {
        Self {
            most: gateway.parts().settings.connections,
            guard: Arc::new(guard),
            gateway,
            patrol: Arc::default(),
            open: JoinSet::new(),
            turned_away: JoinSet::new(),
            reported: None,
        }
    }

    /// Takes a connection in. If there is no room, the one that has waited longest for nothing must go; if all are at work,
    /// the new one is told to come back. Connections of those who are not known yet have fewer places, so that half
    /// heads neither fill the gateway nor keep others out.
    fn welcome(&mut self, stream: TcpStream, peer: SocketAddr) {
        let strangers = (self.most / 2).clamp(*STRANGERS.start(), *STRANGERS.end());
        if self.patrol.strangers() >= strangers && !self.patrol.evict_stranger() {
            return self.turn_away(stream);
        }
        if self.patrol.count() >= self.most && !self.patrol.make_room() {
            return self.turn_away(stream);
        }
        let Ok(reached) = stream.local_addr() else {
            return; // It is gone already.
        };
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "a connection broke");
        }
        let ends = Ends {
            peer: peer.ip().to_canonical(),
            reached: reached.ip().to_canonical(),
        };
        let (guard, patrol) = (Arc::clone(&self.guard), Arc::clone(&self.patrol));
        let stop = self.gateway.stopping().clone();
        let (number, watch) = patrol.join();
        self.open.spawn(async move {
            let _seat = Seat(&patrol, number);
            converse(guard, stream, ends, watch, stop).await;
        });
    }

    fn turn_away(&mut self, mut stream: TcpStream) {
        debug!("a connection was turned away: there is no room");
        if self.turned_away.len() < TURNED_AWAY {
            self.turned_away.spawn(async move {
                if stream.write_all(FULL).await.is_ok() {
                    linger(stream).await;
                }
            });
        }
    }

    /// The system has no more connections to give, or one broke before it was taken.
    async fn rest(&mut self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
        if matches!(
            error.kind(),
            ConnectionAborted | ConnectionRefused | ConnectionReset
        ) {
            return;
        }
        if self.reported.is_none_or(|at| at.elapsed() >= REPORT) {
            self.reported = Some(Instant::now());
            let open = self.patrol.count();
            warn!(%error, open, "no new connections can be accepted; raise the limit of open files if this stays");
        }
        self.patrol.make_room();
        tokio::time::sleep(BACK_OFF).await;
    }

    async fn close(mut self) {
        self.gateway.stopping().cancel();
        self.turned_away.abort_all();
        let under_way = self.guard.under_way();
        if under_way > 0 {
            info!(
                requests = under_way,
                "stopping; waiting for what is under way"
            );
        }
        let gateway = self.gateway.clone();
        // A call over MCP may go on without its connection.
        let mcp = tokio::spawn(async move { gateway.mcp().close(GRACE + LOOK).await });
        if self.settled(GRACE).await {
            self.gateway.calls().cancel();
            return drop(mcp.await);
        }
        let left = self.guard.under_way();
        if left > 0 {
            let seconds = GRACE.as_secs();
            warn!(
                requests = left,
                "still at work {seconds} s after the gateway was told to stop: what they run is cancelled"
            );
        }
        for (call, running) in self.gateway.parts().stats.running() {
            let tool = toolgate_core::escape(&running.tool);
            let ran_ms = running.since.elapsed().as_secs_f64() * 1000.0;
            warn!(%call, %tool, ran_ms, "cancelled: the gateway stops");
        }
        self.gateway.calls().cancel();
        if !self.emptied(FAREWELL).await {
            debug!(
                connections = self.open.len(),
                "connections that did not end are cut"
            );
        }
        self.open.shutdown().await;
        drop(mcp.await);
    }

    /// True if by then no connection is open and no call runs.
    async fn settled(&mut self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        let is_empty = self.emptied(patience).await;
        let stats = self.gateway.parts().stats.clone();
        while is_empty && !stats.running().is_empty() {
            if Instant::now() >= end {
                return false;
            }
            tokio::time::sleep(LOOK).await;
        }
        is_empty
    }

    async fn emptied(&mut self, patience: Duration) -> bool {
        let all = async {
            while let Some(ended) = self.open.join_next().await {
                tell_panic(ended);
            }
        };
        tokio::time::timeout(patience, all).await.is_ok()
    }
}

/// What panics inside of a route is answered; what panics in the body of an answer takes its connection along.
fn tell_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        let error = toolgate_core::escape(&error.to_string());
        error!(%error, "a connection was lost to a panic: a bug of this program");
    }
}

/// A connection's place among the others, until it is dropped.
struct Seat<'a>(&'a Patrol, u64);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

#[cfg(test)]
mod tests;
