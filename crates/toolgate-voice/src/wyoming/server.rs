//! Services of this program: connections taken in, bounded, and ended in an orderly way.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use super::listener::Listener;
use super::{Connection, Event, Info};
use crate::EngineError;

const MOST: usize = 64;
/// How long a client may be silent. Clients of these services connect for each request.
const IDLE: Duration = Duration::from_secs(60);
/// How long what is under way may take once the server was told to stop.
const GRACE: Duration = Duration::from_secs(1);
/// How long the one that is turned away is told so.
const TURN_AWAY: Duration = Duration::from_millis(100);
/// How long to leave a system alone that has no more connections to give.
const BACK_OFF: Duration = Duration::from_millis(100);
/// Such a system is reported this often.
const REPORT: Duration = Duration::from_secs(60);

pub(crate) trait Service: Send + Sync {
    fn info(&self) -> Info;

    /// Talks with one client. The connection ends with it; an error is told to the client.
    fn attend<'a>(&'a self, guest: &'a mut Guest) -> BoxFuture<'a, Result<(), EngineError>>;
}

/// Why there is no listener.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot listen on {at}: {why}")]
pub struct BindError {
    pub(super) at: String,
    pub(super) why: String,
}

impl Listener {
    /// Takes connections in until `stop`. What goes wrong with one is no matter for the others.
    pub(crate) async fn serve(self, service: Arc<dyn Service>, stop: CancellationToken) {
        if !self.is_private() {
            let address = self.address();
            warn!(%address, "Wyoming knows no passwords: everybody who reaches this address can use the service");
        }
        let mut open = JoinSet::new();
        let mut reported = None;
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.accept() => match accepted {
                    Ok(connection) if open.len() < MOST => {
                        open.spawn(host(connection, Arc::clone(&service), stop.clone()));
                    }
                    Ok(connection) => turn_away(connection).await,
                    Err(problem) => rest(&problem, open.len(), &mut reported).await,
                },
                Some(ended) = open.join_next() => {
                    if let Err(problem) = ended {
                        error!(%problem, "a Wyoming connection ended by a fault of this program");
                    }
                }
            }
        }
        drop(self);
        let emptied = async { while open.join_next().await.is_some() {} };
        if timeout(GRACE, emptied).await.is_err() {
            info!(
                connections = open.len(),
                "Wyoming connections that did not end are cut"
            );
        }
    }
}

async fn turn_away(mut connection: Connection) {
    debug!("a Wyoming connection was turned away: there is no room");
    let full = Event::Error {
        text: "too many connections; try again later".to_owned(),
        code: Some("overloaded".to_owned()),
    };
    // A new connection has room for this; one that has not is not waited for.
    drop(timeout(TURN_AWAY, connection.send(&full)).await);
}

/// The system has no more connections to give, or one broke before it was taken.
async fn rest(problem: &io::Error, open: usize, reported: &mut Option<Instant>) {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset};
    if matches!(problem.kind(), ConnectionAborted | ConnectionReset) {
        return;
    }
    if reported.is_none_or(|at| at.elapsed() >= REPORT) {
        *reported = Some(Instant::now());
        warn!(error = %problem, open, "no new Wyoming connections can be accepted; raise the limit of open files if this stays");
    }
    tokio::time::sleep(BACK_OFF).await;
}

#[derive(Debug)]
pub(crate) struct Guest {
    connection: Connection,
    info: Info,
    stop: CancellationToken,
}

impl Guest {
    /// The next event that is for the service: `describe` and `ping` have their answers. `None` is the end: the client has closed,
    /// was silent for a minute, or the server stops.
    pub(crate) async fn receive(&mut self) -> Result<Option<Event>, EngineError> {
        loop {
            let event = tokio::select! {
                () = self.stop.cancelled() => return Ok(None),
                event = timeout(IDLE, self.connection.receive()) => event,
            };
            match event {
                Ok(Ok(Some(event))) => {
                    if let Some(event) = self.sift(event).await? {
                        return Ok(Some(event));
                    }
                }
                Ok(end) => return end,
                Err(_) => return Ok(None),
            }
        }
    }

    /// What comes while the client waits for the service, for [`sift`](Self::sift). The client may be silent as long as it likes,
    /// and the server's stop is left to the service. May be dropped and called again. `None`: the client has closed, and wants
    /// nothing any more.
    pub(crate) async fn receive_while_busy(&mut self) -> Result<Option<Event>, EngineError> {
        self.connection.receive().await
    }

    /// Answers `describe` and `ping`; gives back what is for the service.
    pub(crate) async fn sift(&mut self, event: Event) -> Result<Option<Event>, EngineError> {
        match event {
            Event::Ping { text } => self.send(&Event::Pong { text }).await?,
            Event::Describe => {
                let info = Event::Info(Box::new(self.info.clone()));
                self.send(&info).await?;
            }
            event => return Ok(Some(event)),
        }
        Ok(None)
    }

    pub(crate) async fn send(&mut self, event: &Event) -> Result<(), EngineError> {
        self.connection.send(event).await
    }

    async fn tell(&mut self, problem: &EngineError) {
        let (text, code) = match problem {
            EngineError::Protocol { why, .. } => (why.clone(), "protocol"),
            EngineError::TimedOut { .. } => ("the event took too long".to_owned(), "timeout"),
            _ => return,
        };
        let code = Some(code.to_owned());
        // It may be gone by now.
        drop(self.send(&Event::Error { text, code }).await);
    }
}

async fn host(connection: Connection, service: Arc<dyn Service>, stop: CancellationToken) {
    let mut guest = Guest {
        connection,
        info: service.info(),
        stop,
    };
    if let Err(problem) = service.attend(&mut guest).await {
        debug!(%problem, "a Wyoming connection ended");
        guest.tell(&problem).await;
    }
    let Guest {
        connection, stop, ..
    } = guest;
    tokio::select! {
        () = connection.close() => {}
        () = stop.cancelled() => {}
    }
}

#[cfg(test)]
mod tests;
