//! Serves Wyoming clients: limits the connections and shuts down in order.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use super::listener::WyomingListener;
use super::{ServiceInfo, WyomingConnection, WyomingEvent};
use crate::EngineError;

const MAX_CONNECTIONS: usize = 64;
// Clients connect for each request, so an idle connection has no purpose.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);
const REJECT_TIMEOUT: Duration = Duration::from_millis(100);
// Without a pause, running out of file descriptors would busy-loop.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

pub(crate) trait WyomingService: Send + Sync {
    fn info(&self) -> ServiceInfo;

    /// Serves one client. The connection ends when it returns, and an error is sent to the client.
    fn serve_client<'a>(
        &'a self,
        client: &'a mut WyomingClient,
    ) -> BoxFuture<'a, Result<(), EngineError>>;
}

/// Why a listener could not be bound to its address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot listen on {at}: {why}")]
pub struct WyomingBindError {
    pub(super) at: String,
    pub(super) why: String,
}

impl WyomingListener {
    /// Accepts connections until `stop`. A failing one doesn't affect the others.
    pub(crate) async fn serve(self, service: Arc<dyn WyomingService>, stop: CancellationToken) {
        if !self.is_private() {
            let address = self.address();
            warn!(%address, "Wyoming has no passwords: anyone who can reach this address can use the service");
        }
        let mut open = JoinSet::new();
        let mut reported = None;
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.accept() => match accepted {
                    Ok(connection) if open.len() < MAX_CONNECTIONS => {
                        open.spawn(run_connection(connection, Arc::clone(&service), stop.clone()));
                    }
                    Ok(connection) => reject_connection(connection).await,
                    Err(problem) => pause_after_error(&problem, open.len(), &mut reported).await,
                },
                Some(ended) = open.join_next() => {
                    if let Err(problem) = ended {
                        error!(%problem, "a Wyoming connection panicked");
                    }
                }
            }
        }
        drop(self);
        let emptied = async { while open.join_next().await.is_some() {} };
        if timeout(SHUTDOWN_GRACE, emptied).await.is_err() {
            info!(
                connections = open.len(),
                "closed Wyoming connections that did not end"
            );
        }
    }
}

async fn reject_connection(mut connection: WyomingConnection) {
    debug!("rejected a Wyoming connection: too many are open");
    let full = WyomingEvent::Error {
        text: "too many connections; try again later".to_owned(),
        code: Some("overloaded".to_owned()),
    };
    // A new socket has buffer space for this. One that hasn't is not worth waiting for.
    drop(timeout(REJECT_TIMEOUT, connection.send(&full)).await);
}

// Either the system is out of file descriptors, or one connection broke before it was accepted.
async fn pause_after_error(problem: &io::Error, open: usize, reported: &mut Option<Instant>) {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset};
    if matches!(problem.kind(), ConnectionAborted | ConnectionReset) {
        return;
    }
    if reported.is_none_or(|at| at.elapsed() >= REPORT_INTERVAL) {
        *reported = Some(Instant::now());
        warn!(error = %problem, open, "can't accept Wyoming connections; if this persists, raise the open-file limit (`ulimit -n`)");
    }
    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
}

pub(crate) struct WyomingClient {
    connection: WyomingConnection,
    info: ServiceInfo,
    stop: CancellationToken,
}

impl WyomingClient {
    /// The next event for the service. `describe` and `ping` are answered here. `None` at the end:
    /// the client closed, was silent for a minute, or the server stops.
    pub(crate) async fn receive(&mut self) -> Result<Option<WyomingEvent>, EngineError> {
        loop {
            let event = tokio::select! {
                () = self.stop.cancelled() => return Ok(None),
                event = timeout(IDLE_TIMEOUT, self.connection.receive()) => event,
            };
            match event {
                Ok(Ok(Some(event))) => {
                    if let Some(event) = self.answer_standard(event).await? {
                        return Ok(Some(event));
                    }
                }
                Ok(end) => return end,
                Err(_) => return Ok(None),
            }
        }
    }

    /// Receives while the client waits for its answer. Pass the event to
    /// [`answer_standard`](Self::answer_standard). No idle limit, and the shutdown is left to the
    /// service. Cancel safe. `None` if the client has gone.
    pub(crate) async fn receive_while_busy(&mut self) -> Result<Option<WyomingEvent>, EngineError> {
        self.connection.receive().await
    }

    /// Answers `describe` and `ping`, and returns events for the service.
    pub(crate) async fn answer_standard(
        &mut self,
        event: WyomingEvent,
    ) -> Result<Option<WyomingEvent>, EngineError> {
        match event {
            WyomingEvent::Ping { text } => self.send(&WyomingEvent::Pong { text }).await?,
            WyomingEvent::Describe => {
                let info = WyomingEvent::Info(Box::new(self.info.clone()));
                self.send(&info).await?;
            }
            event => return Ok(Some(event)),
        }
        Ok(None)
    }

    pub(crate) async fn send(&mut self, event: &WyomingEvent) -> Result<(), EngineError> {
        self.connection.send(event).await
    }

    async fn send_error(&mut self, problem: &EngineError) {
        let (text, code) = match problem {
            EngineError::Protocol { why, .. } => (why.clone(), "protocol"),
            EngineError::TimedOut { .. } => ("the event took too long".to_owned(), "timeout"),
            _ => return,
        };
        let code = Some(code.to_owned());
        // The client may have gone.
        drop(self.send(&WyomingEvent::Error { text, code }).await);
    }
}

async fn run_connection(
    connection: WyomingConnection,
    service: Arc<dyn WyomingService>,
    stop: CancellationToken,
) {
    let mut client = WyomingClient {
        connection,
        info: service.info(),
        stop,
    };
    if let Err(problem) = service.serve_client(&mut client).await {
        debug!(%problem, "a Wyoming connection ended");
        client.send_error(&problem).await;
    }
    let WyomingClient {
        connection, stop, ..
    } = client;
    tokio::select! {
        () = connection.close() => {}
        () = stop.cancelled() => {}
    }
}

#[cfg(test)]
mod tests;
