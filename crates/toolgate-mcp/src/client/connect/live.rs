//! A server that is connected.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::json;
use tokio::task::JoinHandle;
use toolgate_core::Redactor;
use tracing::debug;

use super::super::greeting::explain;
use super::super::link::Link;
use super::super::peer::{Offer, Peer};
use super::super::session::{Failure, Request, Session};
use super::super::transport::End;
use super::super::{listing, tool};
use crate::{Era, ServerSettings};

/// Between two attempts to hear of changes (modern era).
const LISTEN_AGAIN: Duration = Duration::from_secs(30);

pub(super) struct Live {
    pub(super) session: Arc<Session>,
    pub(super) era: Era,
    pub(super) pid: Option<u32>,
    pub(super) settings: ServerSettings,
    pub(super) link: Link,
    pub(super) redactor: Redactor,
    pub(super) _listener: Option<Listener>,
}

impl Peer for Live {
    fn era(&self) -> Era {
        self.era
    }

    fn revision(&self) -> Option<String> {
        self.session.revision()
    }

    fn pid(&self) -> Option<u32> {
        self.pid
    }

    fn open(&self, link: &Link) {
        link.up(Arc::clone(&self.session));
    }

    fn offer(&self) -> BoxFuture<'_, Result<Offer, String>> {
        Box::pin(async {
            match listing::list(&self.settings.name, &self.session).await {
                Ok(listed) => {
                    Ok(tool::take(listed, &self.settings, &self.link, &self.redactor).await)
                }
                Err(failure) => Err(explain(&failure.into()).to_string()),
            }
        })
    }

    fn tools_changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.session.tools_changed())
    }

    fn ended(&self) -> BoxFuture<'_, End> {
        Box::pin(self.session.ended())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.session.close())
    }
}

pub(super) struct Listener(JoinHandle<()>);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// In the modern era a server tells of changes only to who asks: a request that stays open.
pub(super) fn listen(session: &Arc<Session>) -> Listener {
    let session = Arc::clone(session);
    Listener(tokio::spawn(async move {
        loop {
            let params = json!({ "notifications": { "toolsListChanged": true } });
            match session
                .request(Request::new("subscriptions/listen", params))
                .await
            {
                Err(Failure::Rpc(error)) => {
                    return debug!(code = error.code, "the server tells of no changes");
                }
                Err(Failure::Stopped(_) | Failure::NotSent(_)) => return,
                Ok(_) | Err(_) => tokio::time::sleep(LISTEN_AGAIN).await,
            }
        }
    }))
}
