//! Cancels tasks that no call waits for any more.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use tracing::debug;

use super::TaskProtocol;
use crate::client::link::ServerLink;
use crate::client::session::{ClientSession, SessionRequest, TaskUse};

// How long to wait for a server that is reconnecting, and then for its answer.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Cancels a task in this session, or in the next one if this one has ended.
pub(super) async fn cancel_through(
    link: &ServerLink,
    session: Arc<ClientSession>,
    tool: &str,
    task_id: &str,
) {
    if !session.is_over() {
        return cancel_at(&session, task_id).await;
    }
    let next = timeout(CANCEL_TIMEOUT, link.session(tool)).await;
    if let Ok(Ok(next)) = next
        && next.revision() == session.revision()
    {
        cancel_at(&next, task_id).await;
    }
}

/// Asks the server to cancel a task. Whether it does is up to the server.
pub(crate) async fn cancel_at(session: &Arc<ClientSession>, task_id: &str) {
    if session.task_protocol() == Some(TaskProtocol::Legacy { can_cancel: false }) {
        return;
    }
    let request = SessionRequest {
        name: Some(task_id),
        tasks: TaskUse::Manages,
        ..SessionRequest::new("tasks/cancel", json!({ "taskId": task_id }))
    };
    let answer = timeout(CANCEL_TIMEOUT, session.request(request)).await;
    if !matches!(answer, Ok(Ok(_))) {
        debug!(server = %session.server(), "a task could not be cancelled");
    }
}
