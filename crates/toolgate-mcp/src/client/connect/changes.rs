//! Asks a server to tell when its lists or its resources change.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinHandle;
use tracing::debug;

use super::super::session::{ClientSession, SessionError, SessionRequest};
use super::super::subscriptions::ResourceSubscriptions;
use crate::ProtocolEra;

const RESUBSCRIBE_DELAY: Duration = Duration::from_secs(30);
// Clients often subscribe to several resources at once.
const COALESCE: Duration = Duration::from_millis(20);

/// A task that keeps a server's subscriptions as they should be. Ends when it is dropped.
pub(super) struct ChangeSubscription(JoinHandle<()>);

impl Drop for ChangeSubscription {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(super) fn subscribe_to_changes(
    session: &Arc<ClientSession>,
    era: ProtocolEra,
    wanted: &Arc<ResourceSubscriptions>,
) -> ChangeSubscription {
    let (session, wanted) = (Arc::clone(session), Arc::clone(wanted));
    ChangeSubscription(tokio::spawn(async move {
        // Changes may have been missed while there was no connection.
        wanted.announce_all();
        match era {
            ProtocolEra::Modern => listen(&session, &wanted).await,
            ProtocolEra::Legacy if session.offer().capabilities.subscribe => {
                subscribe_each(&session, &wanted).await;
            }
            // Changes of lists are announced unasked.
            ProtocolEra::Legacy => {}
        }
    }))
}

/// Modern servers tell of changes on a request that stays open. Another set of
/// resources takes another request.
async fn listen(session: &Arc<ClientSession>, wanted: &ResourceSubscriptions) {
    let offer = session.offer().capabilities;
    let mut changed = wanted.changed();
    loop {
        changed.mark_unchanged();
        let mut filter = json!({ "toolsListChanged": true });
        if offer.prompts {
            filter["promptsListChanged"] = json!(true);
        }
        if offer.resources {
            filter["resourcesListChanged"] = json!(true);
        }
        let uris = wanted.uris();
        if offer.subscribe && !uris.is_empty() {
            filter["resourceSubscriptions"] = json!(uris);
        }
        let request =
            SessionRequest::new("subscriptions/listen", json!({ "notifications": filter }));
        let ended = tokio::select! {
            ended = session.request(request) => ended,
            Ok(()) = changed.changed(), if offer.subscribe => {
                tokio::time::sleep(COALESCE).await;
                continue;
            }
        };
        match ended {
            Err(SessionError::Rpc(error)) => {
                return debug!(code = error.code, "the server doesn't announce changes");
            }
            Err(SessionError::Stopped(_) | SessionError::NotSent(_)) => return,
            Ok(_) | Err(_) => tokio::time::sleep(RESUBSCRIBE_DELAY).await,
        }
    }
}

/// Servers up to 2025-11-25 are asked for each resource.
async fn subscribe_each(session: &Arc<ClientSession>, wanted: &ResourceSubscriptions) {
    let mut changed = wanted.changed();
    let mut subscribed = BTreeSet::new();
    loop {
        changed.mark_unchanged();
        let uris = wanted.uris();
        for (method, uri) in uris
            .difference(&subscribed)
            .map(|uri| ("resources/subscribe", uri))
            .chain(
                subscribed
                    .difference(&uris)
                    .map(|uri| ("resources/unsubscribe", uri)),
            )
        {
            let request = SessionRequest::new(method, json!({ "uri": uri }));
            match session.request(request).await {
                Err(SessionError::Stopped(_) | SessionError::NotSent(_)) => return,
                Err(error) => debug!(%method, ?error, "the server refused a subscription"),
                Ok(_) => {}
            }
        }
        subscribed = uris;
        if changed.changed().await.is_err() {
            return;
        }
        tokio::time::sleep(COALESCE).await;
    }
}
