//! MCP over HTTP: each message is a POST, and its response is a JSON body or an event stream.

mod call_gate;
mod clients;
mod closable_inbox;
mod endpoint;
mod exchange;
mod headers;
mod legacy_sse;
mod response;
mod stream;
mod tasks;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::Response;
use tokio::time::timeout;

pub(crate) use clients::HttpClients;
use closable_inbox::ClosableInbox;
use endpoint::ServerEndpoint;
use response::{HttpRefusal, ResponseContent};
use tasks::RequestTasks;
use wire::{HttpWire, SESSION_EXPIRED};

use super::message::OutgoingMessage;
use super::transport::{Transport, TransportError, TransportInbox};
use crate::{ProtocolEra, SecretHeaders};

const ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);
const END_SESSION_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) struct HttpTransport {
    wire: Arc<HttpWire>,
    tasks: Arc<RequestTasks>,
}

impl HttpTransport {
    /// Creates a transport without sending anything. Fails if the address or the
    /// headers can't be used.
    pub(crate) fn new(
        server: &str,
        url: &str,
        headers: &SecretHeaders,
        shared: Arc<HttpClients>,
        inbox: Arc<dyn TransportInbox>,
    ) -> Result<Arc<Self>, TransportError> {
        let endpoint = ServerEndpoint::new(url, headers, shared)
            .map_err(|why| TransportError::NotSent(why.into()))?;
        let wire = HttpWire::new(server, endpoint, ClosableInbox::new(inbox), None);
        Ok(Arc::new(Self {
            wire: Arc::new(wire),
            tasks: Arc::default(),
        }))
    }

    /// Connects with the transport of 2024-11-05, for servers that reject every POST. Returns once
    /// the server has sent the address for messages.
    pub(crate) async fn connect_legacy_sse(
        server: &str,
        url: &str,
        headers: &SecretHeaders,
        shared: Arc<HttpClients>,
        inbox: Arc<dyn TransportInbox>,
    ) -> Result<Arc<Self>, TransportError> {
        let endpoint = ServerEndpoint::new(url, headers, shared)
            .map_err(|why| TransportError::NotSent(why.into()))?;
        let (stream, message_url) = legacy_sse::connect(&endpoint).await?;
        let wire = HttpWire::new(
            server,
            endpoint,
            ClosableInbox::new(inbox),
            Some(message_url),
        );
        let wire = Arc::new(wire);
        let tasks = Arc::new(RequestTasks::default());
        let to = Arc::clone(&wire);
        tasks.spawn_stream(async move { stream.deliver(&to).await });
        Ok(Arc::new(Self { wire, tasks }))
    }

    fn spawn_request(&self, id: u64, message: OutgoingMessage) {
        let wire = Arc::clone(&self.wire);
        self.tasks.spawn(id, async move {
            exchange::run_request(&wire, id, message).await;
        });
    }

    async fn send_notification(&self, message: OutgoingMessage) -> Result<(), TransportError> {
        let method = message.method.clone();
        let method = method.as_deref();
        if method == Some("notifications/cancelled") && self.wire.is_modern() {
            // In the modern era, dropping a request's connection cancels it.
            return Ok(());
        }
        let (response, in_session) = self.wire.post(message).await.inspect_err(|error| {
            self.wire.inbox.close_if_unreachable(error);
        })?;
        if !response.status().is_success() {
            return Err(self.rejection_error(response, in_session).await);
        }
        // An event stream may never end, and a notification has no response to wait for.
        if !matches!(
            response::classify_content(&self.wire.endpoint, &response),
            ResponseContent::Events
        ) {
            response::drain(response).await;
        }
        if method == Some("notifications/initialized") && self.wire.message_url.is_none() {
            let wire = Arc::clone(&self.wire);
            wire.gate.close();
            self.tasks
                .spawn_stream(async move { stream::listen(&wire).await });
        }
        Ok(())
    }

    async fn rejection_error(&self, response: Response, in_session: bool) -> TransportError {
        match response::classify_refusal(&self.wire.endpoint, response, in_session, None).await {
            HttpRefusal::Error(error) => error,
            HttpRefusal::SessionLost | HttpRefusal::Answer(_) => {
                self.wire.handle_lost_session();
                TransportError::NotSent(SESSION_EXPIRED.into())
            }
        }
    }
}

impl Transport for HttpTransport {
    fn send(&self, message: OutgoingMessage) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(async move {
            // Only calls wait, because other requests can't cause questions.
            if message.method.as_deref() == Some("tools/call") {
                self.wire.gate.wait_open().await;
            }
            if !self.wire.inbox.is_open() {
                let reason = "the connection is closed";
                return Err(TransportError::NotSent(reason.into()));
            }
            match message.id {
                Some(id) => {
                    self.spawn_request(id, message);
                    Ok(())
                }
                None => timeout(ACCEPT_TIMEOUT, self.send_notification(message))
                    .await
                    .unwrap_or_else(|_| {
                        let reason = format!(
                            "the server did not accept a message within {} s",
                            ACCEPT_TIMEOUT.as_secs()
                        );
                        Err(TransportError::Interrupted(reason.into()))
                    }),
            }
        })
    }

    fn drop_request(&self, id: u64) {
        self.tasks.drop_request(id);
    }

    fn set_protocol(&self, era: ProtocolEra, revision: &str) {
        self.wire.set_protocol(era, revision);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.tasks.stop().await;
            // No DELETE is needed if the server is gone or has forgotten the session.
            if self.wire.inbox.is_open()
                && timeout(END_SESSION_TIMEOUT, self.wire.end_session())
                    .await
                    .is_err()
            {
                tracing::debug!(server = %self.wire.server, "the session was not ended in time");
            }
            self.wire.inbox.on_closed("connection closed");
        })
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        self.tasks.abort();
    }
}

#[cfg(test)]
mod tests;
