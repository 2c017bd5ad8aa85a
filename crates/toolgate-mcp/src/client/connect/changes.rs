//! Asks a server to tell when its lists or its resources change.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use super::super::session::{ClientSession, SessionError, SessionRequest};
use super::super::subscriptions::ResourceSubscriptions;
use crate::ProtocolEra;

const RESUBSCRIBE_DELAY: Duration = Duration::from_secs(30);
// Clients often subscribe to several resources at once.
const COALESCE: Duration = Duration::from_millis(20);
// How long a server may take to read a request.
const OVERLAP: Duration = Duration::from_secs(1);

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
        // Changes may have been missed while the server was disconnected.
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

/// Modern servers tell of changes on requests that stay open: one for the lists, and one for the
/// resources, which is replaced when other ones are wanted.
async fn listen(session: &Arc<ClientSession>, wanted: &Arc<ResourceSubscriptions>) {
    let offer = session.offer().capabilities;
    let mut filter = json!({ "toolsListChanged": true });
    if offer.prompts {
        filter["promptsListChanged"] = json!(true);
    }
    if offer.resources {
        filter["resourcesListChanged"] = json!(true);
    }
    let lists = async { while listen_once(session, &filter).await {} };
    match offer.subscribe {
        true => drop(tokio::join!(lists, listen_for_updates(session, wanted))),
        false => lists.await,
    }
}

/// Listens until the server ends it. Returns true, after a pause, if another try makes sense.
async fn listen_once(session: &Arc<ClientSession>, filter: &Value) -> bool {
    let params = json!({ "notifications": filter });
    let request = SessionRequest::new("subscriptions/listen", params);
    match session.request(request).await {
        Err(SessionError::Rpc(error)) => {
            debug!(code = error.code, "the server doesn't announce changes");
            false
        }
        Err(SessionError::Stopped(_) | SessionError::NotSent(_)) => false,
        Ok(_) | Err(_) => {
            tokio::time::sleep(RESUBSCRIBE_DELAY).await;
            true
        }
    }
}

async fn listen_for_updates(session: &Arc<ClientSession>, wanted: &Arc<ResourceSubscriptions>) {
    let mut changed = wanted.changed();
    let mut open = None;
    loop {
        changed.mark_unchanged();
        let uris = wanted.uris();
        let replaced = open.take();
        if !uris.is_empty() {
            let listening = keep_listening(Arc::clone(session), Arc::clone(wanted), uris);
            open = Some(AbortOnDropHandle::new(tokio::spawn(listening)));
            // The old request stays open until the server has read the new one, so that no update
            // falls between them.
            if replaced.is_some() {
                tokio::time::sleep(OVERLAP).await;
            }
        }
        drop(replaced);
        if changed.changed().await.is_err() {
            return;
        }
        tokio::time::sleep(COALESCE).await;
    }
}

async fn keep_listening(
    session: Arc<ClientSession>,
    wanted: Arc<ResourceSubscriptions>,
    uris: BTreeSet<Arc<str>>,
) {
    let filter = json!({ "resourceSubscriptions": uris });
    let mut is_first = true;
    loop {
        let announcing = async {
            if !is_first {
                // Once the server listens again: updates may have been missed in between.
                tokio::time::sleep(OVERLAP).await;
                wanted.announce_all();
            }
            std::future::pending().await
        };
        let may_retry = tokio::select! {
            may_retry = listen_once(&session, &filter) => may_retry,
            never = announcing => never,
        };
        if !may_retry {
            return;
        }
        is_first = false;
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
