//! Tells clients that listen of every change of their tasks.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::Value;

use super::task::ClientTask;
use crate::server::jsonrpc::notification;
use crate::server::methods::{ClientSink, RequestContext};
use crate::server::service::McpService;

// Tasks that one client may listen to at once.
const MAX_WATCHED: usize = 100;
// Changes within this time are announced once.
const COALESCE: Duration = Duration::from_millis(100);

/// The tasks that a client of 2026-07-28 listens to.
#[derive(Default)]
pub(in crate::server) struct TaskWatch(Vec<(String, Arc<ClientTask>)>);

impl TaskWatch {
    /// Leaves the ids of tasks that the client can listen to.
    pub(in crate::server) async fn new(
        service: &Arc<McpService>,
        ids: &mut Vec<String>,
        context: &RequestContext<'_>,
    ) -> Self {
        let mut watched = Vec::new();
        ids.truncate(MAX_WATCHED);
        for id in std::mem::take(ids) {
            if let Ok(task) = service.find_task(&id, context).await {
                ids.push(id.clone());
                watched.push((id, task));
            }
        }
        Self(watched)
    }

    /// Sends each task as it is now, and then after every change. Returns when the client is gone.
    pub(in crate::server) async fn send_updates(&self, meta: &Value, sink: &dyn ClientSink) {
        let watching = self.0.iter().map(|(id, task)| async move {
            let mut changes = task.watch();
            loop {
                changes.mark_unchanged();
                let has_ended = task.has_ended();
                let mut params = task.to_detailed(id);
                params.insert("_meta".to_owned(), meta.clone());
                let message = notification("notifications/tasks", params.into());
                if !sink.send(message).await || has_ended {
                    return;
                }
                if changes.changed().await.is_err() {
                    return;
                }
                tokio::time::sleep(COALESCE).await;
            }
        });
        let mut watching: FuturesUnordered<_> = watching.collect();
        while watching.next().await.is_some() {}
        // All have ended; the subscription hasn't.
        std::future::pending::<()>().await;
    }
}
