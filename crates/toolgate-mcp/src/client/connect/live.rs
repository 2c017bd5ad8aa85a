//! Implements the interface of a connected server for supervision.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::json;
use tokio::task::JoinHandle;
use toolgate_core::Redactor;
use tracing::debug;

use super::super::connection::{SupervisedConnection, ToolOffer};
use super::super::handshake::explain;
use super::super::link::ServerLink;
use super::super::session::{ClientSession, SessionError, SessionRequest};
use super::super::transport::SessionEnd;
use super::super::{listing, tool};
use crate::{ProtocolEra, ServerSettings};

const RESUBSCRIBE_DELAY: Duration = Duration::from_secs(30);

pub(super) struct LiveConnection {
    pub(super) session: Arc<ClientSession>,
    pub(super) era: ProtocolEra,
    pub(super) pid: Option<u32>,
    pub(super) settings: ServerSettings,
    pub(super) link: ServerLink,
    pub(super) redactor: Redactor,
    pub(super) _listener: Option<ChangeSubscription>,
}

impl SupervisedConnection for LiveConnection {
    fn era(&self) -> ProtocolEra {
        self.era
    }

    fn revision(&self) -> Option<String> {
        self.session.revision()
    }

    fn pid(&self) -> Option<u32> {
        self.pid
    }

    fn attach(&self, link: &ServerLink) {
        link.set_up(Arc::clone(&self.session));
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<ToolOffer, String>> {
        Box::pin(async {
            match listing::list_tools(&self.settings.name, &self.session).await {
                Ok(listed) => Ok(tool::tools_from_listing(
                    listed,
                    &self.settings,
                    &self.link,
                    &self.redactor,
                )
                .await),
                Err(failure) => Err(explain(&failure.into()).to_string()),
            }
        })
    }

    fn tools_changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.session.tools_changed())
    }

    fn ended(&self) -> BoxFuture<'_, SessionEnd> {
        Box::pin(self.session.ended())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.session.close())
    }
}

pub(super) struct ChangeSubscription(JoinHandle<()>);

impl Drop for ChangeSubscription {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Subscribes by a request that stays open. In the modern era, changes are
/// sent only to subscribers.
pub(super) fn subscribe_to_changes(session: &Arc<ClientSession>) -> ChangeSubscription {
    let session = Arc::clone(session);
    ChangeSubscription(tokio::spawn(async move {
        loop {
            let params = json!({ "notifications": { "toolsListChanged": true } });
            match session
                .request(SessionRequest::new("subscriptions/listen", params))
                .await
            {
                Err(SessionError::Rpc(error)) => {
                    return debug!(code = error.code, "the server doesn't announce changes");
                }
                Err(SessionError::Stopped(_) | SessionError::NotSent(_)) => return,
                Ok(_) | Err(_) => tokio::time::sleep(RESUBSCRIBE_DELAY).await,
            }
        }
    }))
}
