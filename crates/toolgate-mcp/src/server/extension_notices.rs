//! Notifications of extensions: those of servers, which wait here for their client, and those of
//! clients, each of which is a call.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use toolgate_core::{
    ClientId, ExtensionListener, ExtensionNotification, ToolError, ToolSource, sanitize,
};
use tracing::debug;

use super::client_message::{ClientNotification, RequestMeta};
use super::jsonrpc::notification;
use super::methods::RequestContext;
use super::service::McpService;
use super::session_questions::SessionQuestions;
use super::tool_call::MAX_CALLS;
use crate::extensions::{
    declared_by, extension_notification, may_define_notification, may_have_requests,
};

// What waits for a slow client, or for one that takes none. Later notifications are dropped, and
// counted by whoever sends them.
const MAX_WAITING: usize = 64;
const MAX_WAITING_BYTES: u64 = 256 << 10;

/// Notifications that wait for a client: those of one call, or those that are about no call.
pub(super) struct ExtensionNotices {
    client: ClientId,
    waiting: Mutex<WaitingNotices>,
    pub(super) added: Arc<Notify>,
    // For clients with a session, which get them between calls too.
    outside_calls: Option<Arc<ExtensionNotices>>,
}

#[derive(Default)]
struct WaitingNotices {
    notices: VecDeque<ExtensionNotification>,
    bytes: u64,
}

impl ExtensionNotices {
    pub(super) fn new(client: ClientId, outside_calls: Option<Arc<Self>>) -> Self {
        Self {
            client,
            waiting: Mutex::default(),
            added: Arc::default(),
            outside_calls,
        }
    }

    /// Takes what waits, as messages.
    pub(super) fn take(&self) -> Vec<Vec<u8>> {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.notices.into_iter().map(to_message).collect()
    }

    fn pop(&self) -> Option<ExtensionNotification> {
        let mut waiting = self.waiting.lock();
        let notice = waiting.notices.pop_front()?;
        waiting.bytes = waiting.bytes.saturating_sub(size(&notice));
        Some(notice)
    }
}

impl ExtensionListener for ExtensionNotices {
    fn client(&self) -> ClientId {
        self.client
    }

    fn notify(&self, notice: ExtensionNotification) -> bool {
        let mut waiting = self.waiting.lock();
        let bytes = waiting.bytes + size(&notice);
        if waiting.notices.len() == MAX_WAITING || bytes > MAX_WAITING_BYTES {
            return false;
        }
        waiting.bytes = bytes;
        waiting.notices.push_back(notice);
        drop(waiting);
        self.added.notify_one();
        true
    }

    fn outside_calls(&self) -> Option<Arc<dyn ExtensionListener>> {
        let lasting = self.outside_calls.clone()?;
        Some(lasting)
    }
}

fn size(notice: &ExtensionNotification) -> u64 {
    notice.method.len() as u64 + sanitize::length(&notice.params)
}

fn to_message(notice: ExtensionNotification) -> Vec<u8> {
    notification(&notice.method, notice.params)
}

impl SessionQuestions {
    /// The next notification about no call, as a message. Cancel safe.
    pub(super) async fn next_extension_notice(&self, service: &McpService) -> Vec<u8> {
        loop {
            while let Some(notice) = self.extension_notices.pop() {
                // It may have waited for hours, and the policy may be another one now.
                if service.may_get_notice(&notice, &self.capabilities()) {
                    return to_message(notice);
                }
            }
            self.extension_notices.added.notified().await;
        }
    }
}

impl McpService {
    fn may_get_notice(&self, notice: &ExtensionNotification, capabilities: &Value) -> bool {
        let Some(name) = extension_notification(&notice.method) else {
            return false;
        };
        let declared = declared_by(capabilities);
        let is_shared = |id: &str| {
            may_have_requests(id) && may_define_notification(id, name) && declared.contains_key(id)
        };
        let source = ToolSource::Mcp(notice.server.clone());
        let executor = &self.executor;
        executor.may_get_extension_message(&source, name, &self.scope, is_shared)
    }

    /// Sends a client's notification to the one server with which it shares an extension that can
    /// have defined it. Any other is ignored.
    pub(super) async fn pass_notification(
        self: &Arc<Self>,
        notification: ClientNotification,
        context: &RequestContext<'_>,
    ) {
        let Some((method, name)) = notification.of_extension() else {
            return;
        };
        let mut params = notification.params.clone();
        let meta = params.as_object_mut().map(RequestMeta::take);
        let meta = meta.unwrap_or_default();
        let declared = context.declared_extensions(&meta).unwrap_or_default();
        let is_shared = |id: &str| {
            may_have_requests(id) && may_define_notification(id, name) && declared.contains_key(id)
        };
        let (executor, scope) = (&self.executor, &self.scope);
        let found = executor.find_extension_notification((method, name), &params, scope, is_shared);
        let request = match found {
            Ok(request) => request,
            Err(reason) => return debug!(%method, %reason, "ignored a notification of a client"),
        };
        let permit = self.shared.calls.try_acquire();
        let mut call = request.to_call();
        if permit.is_err() {
            let (tool, limit) = (request.method().as_str().to_owned(), MAX_CALLS);
            call = call.reject(ToolError::Overloaded { tool, limit });
        }
        let (call, _) = self.prepare_for_client(call, &meta, context);
        let call = call.cancellation(context.stop.clone());
        // The outcome is recorded, and a notification has no answer.
        drop(executor.execute(call).await);
    }
}
