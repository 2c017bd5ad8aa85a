//! MCP over HTTP: every message is a POST, answers come back in its body or as a stream of events.
//!
//! ```text
//!  Http ─ Wire (era, session) ─ Endpoint (one origin, never another) ─ Shared (clients)
//!    ├─ exchange   one task per request: answer, stream, taking it up again
//!    ├─ stream     what the server says on its own
//!    ├─ gate       calls wait until that can be heard
//!    └─ oldest     HTTP with one stream for all answers (2024-11-05)
//! ```

mod clients;
mod endpoint;
mod exchange;
mod gate;
mod headers;
mod oldest;
mod outlet;
mod response;
mod stream;
mod tasks;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::Response;
use tokio::time::timeout;

pub(crate) use clients::Shared;
use endpoint::Endpoint;
use outlet::Outlet;
use response::{Content, Refusal};
use tasks::Tasks;
use wire::{EXPIRED, Wire};

use super::message::Outgoing;
use super::transport::{Inbox, Transport, TransportError};
use crate::{Era, Headers};

/// For a message that gets no answer to be accepted.
const ACCEPTED: Duration = Duration::from_secs(30);
/// For a session to be ended on its server.
const FAREWELL: Duration = Duration::from_secs(2);

pub(crate) struct Http {
    wire: Arc<Wire>,
    tasks: Arc<Tasks>,
}

impl Http {
    /// Nothing is sent yet. Fails if address or headers can not be used.
    pub(crate) fn new(
        server: &str,
        url: &str,
        headers: &Headers,
        shared: Arc<Shared>,
        inbox: Arc<dyn Inbox>,
    ) -> Result<Arc<Self>, TransportError> {
        let endpoint = Endpoint::new(url, headers, shared)
            .map_err(|why| TransportError::NotSent(why.into()))?;
        let wire = Wire::new(server, endpoint, Outlet::new(inbox), None);
        Ok(Arc::new(Self {
            wire: Arc::new(wire),
            tasks: Arc::default(),
        }))
    }

    /// The form of 2024-11-05, for servers that refuse every POST: connects, and returns when the server has said where
    /// messages go.
    pub(crate) async fn old_sse(
        server: &str,
        url: &str,
        headers: &Headers,
        shared: Arc<Shared>,
        inbox: Arc<dyn Inbox>,
    ) -> Result<Arc<Self>, TransportError> {
        let endpoint = Endpoint::new(url, headers, shared)
            .map_err(|why| TransportError::NotSent(why.into()))?;
        let (stream, post_to) = oldest::connect(&endpoint).await?;
        let wire = Wire::new(server, endpoint, Outlet::new(inbox), Some(post_to));
        let wire = Arc::new(wire);
        let tasks = Arc::new(Tasks::default());
        let to = Arc::clone(&wire);
        tasks.spawn_stream(async move { stream.deliver(&to).await });
        Ok(Arc::new(Self { wire, tasks }))
    }

    /// A request goes its own way from here.
    fn ask(&self, id: u64, message: Outgoing) {
        let wire = Arc::clone(&self.wire);
        self.tasks
            .spawn(id, async move { exchange::run(&wire, id, message).await });
    }

    /// A message without an answer: done when the server has taken it.
    async fn tell(&self, message: Outgoing) -> Result<(), TransportError> {
        let method = message.method;
        if method == Some("notifications/cancelled") && self.wire.is_modern() {
            // There, to drop the connection of a request is to cancel it.
            return Ok(());
        }
        let (response, in_session) = self.wire.post(message).await.inspect_err(|trouble| {
            self.wire.outlet.after(trouble);
        })?;
        if !response.status().is_success() {
            return Err(self.not_taken(response, in_session).await);
        }
        // A stream would go on; there is nothing in it for us.
        if !matches!(
            response::content(&self.wire.endpoint, &response),
            Content::Events
        ) {
            response::drain(response).await;
        }
        if method == Some("notifications/initialized") && self.wire.post_to.is_none() {
            let wire = Arc::clone(&self.wire);
            wire.gate.close();
            self.tasks
                .spawn_stream(async move { stream::listen(&wire).await });
        }
        Ok(())
    }

    async fn not_taken(&self, response: Response, in_session: bool) -> TransportError {
        match response::refusal(&self.wire.endpoint, response, in_session, None).await {
            Refusal::Error(error) => error,
            Refusal::SessionLost | Refusal::Answer(_) => {
                self.wire.session_lost();
                TransportError::NotSent(EXPIRED.into())
            }
        }
    }
}

impl Transport for Http {
    fn send(&self, message: Outgoing) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(async move {
            // Listing the tools asks nothing back, and is on its way meanwhile.
            if message.method == Some("tools/call") {
                self.wire.gate.pass().await;
            }
            if !self.wire.outlet.is_open() {
                let reason = "the connection is closed";
                return Err(TransportError::NotSent(reason.into()));
            }
            match message.id {
                Some(id) => {
                    self.ask(id, message);
                    Ok(())
                }
                None => timeout(ACCEPTED, self.tell(message))
                    .await
                    .unwrap_or_else(|_| {
                        let reason =
                            format!("the server took no message within {} s", ACCEPTED.as_secs());
                        Err(TransportError::Interrupted(reason.into()))
                    }),
            }
        })
    }

    fn forget(&self, id: u64) {
        self.tasks.drop_request(id);
    }

    fn agreed(&self, era: Era, revision: &str) {
        self.wire.agreed(era, revision);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.tasks.stop().await;
            // Whoever is gone, or does not know us any more, needs no farewell.
            if self.wire.outlet.is_open()
                && timeout(FAREWELL, self.wire.end_session()).await.is_err()
            {
                tracing::debug!(server = %self.wire.server, "the session was not ended in time");
            }
            self.wire.outlet.closed("connection closed");
        })
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.tasks.abort();
    }
}

#[cfg(test)]
mod tests;
