//! Notices changes of the lists that clients see, and says which of them changed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use super::content_list::ContentLists;
use super::jsonrpc::notification;
use super::methods::ClientSink;
use super::service::McpService;
use super::tool_list::ListedTool;

// Changes within this time are announced once.
const COALESCE: Duration = Duration::from_millis(50);

/// The lists that a client knows.
#[derive(Clone, Default)]
pub(super) struct KnownLists {
    pub(super) tools: Arc<Vec<ListedTool>>,
    pub(super) content: ContentLists,
}

/// Which kinds of lists changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ListChanges {
    pub(super) tools: bool,
    pub(super) resources: bool,
    pub(super) prompts: bool,
}

impl ListChanges {
    pub(super) const ALL: Self = Self {
        tools: true,
        resources: true,
        prompts: true,
    };

    fn between(before: &KnownLists, after: &KnownLists) -> Self {
        Self {
            tools: !Arc::ptr_eq(&before.tools, &after.tools),
            resources: after.content.has_other_resources(&before.content),
            prompts: after.content.has_other_prompts(&before.content),
        }
    }

    pub(super) fn any(self) -> bool {
        self != Self::default()
    }

    /// The changes that a client wants to hear about.
    pub(super) fn among(self, wanted: Self) -> Self {
        Self {
            tools: self.tools && wanted.tools,
            resources: self.resources && wanted.resources,
            prompts: self.prompts && wanted.prompts,
        }
    }

    pub(super) fn notifications(self, params: &Value) -> impl Iterator<Item = Vec<u8>> {
        let kinds = [
            (self.tools, "notifications/tools/list_changed"),
            (self.resources, "notifications/resources/list_changed"),
            (self.prompts, "notifications/prompts/list_changed"),
        ];
        let changed = kinds.into_iter().filter(|(is_changed, _)| *is_changed);
        changed.map(|(_, method)| notification(method, params.clone()))
    }
}

pub(super) struct ListWatch {
    service: Arc<McpService>,
    version: watch::Receiver<u64>,
    pub(super) seen: KnownLists,
}

impl ListWatch {
    pub(super) fn new(service: &Arc<McpService>) -> Self {
        Self {
            version: service.executor.manager().subscribe(),
            seen: service.lists().known(),
            service: Arc::clone(service),
        }
    }

    /// Reports what has changed since the client received these lists, too.
    pub(super) fn from_known(service: &Arc<McpService>, seen: KnownLists) -> Self {
        let mut watch = Self::new(service);
        if ListChanges::between(&seen, &watch.seen).any() {
            watch.seen = seen;
            watch.version.mark_changed();
        }
        watch
    }

    /// Returns when a list differs from the last seen one. Never returns once the lists
    /// can't change any more.
    pub(super) async fn changed(&mut self) -> ListChanges {
        loop {
            if self.version.changed().await.is_err() {
                return std::future::pending().await;
            }
            tokio::time::sleep(COALESCE).await;
            self.version.mark_unchanged();
            let lists = self.service.lists().known();
            let changes = ListChanges::between(&self.seen, &lists);
            if changes.any() {
                self.seen = lists;
                return changes;
            }
        }
    }
}

/// Announces changes of lists until the client is gone.
pub(super) async fn send_list_changes(
    mut watch: ListWatch,
    wanted: ListChanges,
    params: &Value,
    sink: &dyn ClientSink,
) {
    loop {
        let changes = watch.changed().await.among(wanted);
        for message in changes.notifications(params) {
            if !sink.send(message).await {
                return;
            }
        }
    }
}
