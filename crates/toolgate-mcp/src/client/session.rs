//! A session with a server: matches responses to requests, and handles what the server sends.

mod asking;
mod elicitations;
mod encode;
mod error;
mod extensions;
mod freshness;
mod logging;
mod mailbox;
mod offer;
mod own_tasks;
mod pending_calls;
mod running_tasks;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, Semaphore, oneshot, watch};
use toolgate_core::{CallContext, SentRequest};
use tracing::{debug, warn};

use self::elicitations::OpenElicitations;
use self::encode::ModernMeta;
pub(crate) use self::encode::{SessionRequest, TaskUse};
pub(crate) use self::error::SessionError;
use self::extensions::SessionUsers;
use self::freshness::ListFreshness;
pub(crate) use self::freshness::UNANNOUNCED_TTL;
use self::logging::ServerLogLevel;
use self::mailbox::SessionMailbox;
pub(crate) use self::offer::ServerOffer;
use self::own_tasks::OwnTasks;
use self::pending_calls::AbandonedCall;
use self::running_tasks::RunningTask;
pub(crate) use self::running_tasks::TaskRegistration;
use super::diagnostics::ServerDiagnostics;
use super::questions::ServerQuestions;
use super::subscriptions::ResourceSubscriptions;
use super::transport::{SessionEnd, Transport, TransportInbox};
use crate::ProtocolEra;

// Far above the ids that servers use. If a server echoes our response to its own request, it isn't
// mistaken for the response to a request of ours.
const FIRST_ID: u64 = 1 << 40;
// How long to wait for a server that isn't reading, before a message that it can do without is
// dropped.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(5);
// Cancelled requests, kept to tell late responses from bogus ones.
const MAX_ABANDONED_IDS: usize = 1024;
// After this many unanswered requests in a row, the server is pinged.
const MAX_UNANSWERED_IN_A_ROW: u64 = 3;
const PING_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_OPEN_QUESTIONS: usize = 16;

/// Request ids are never reused, so a late response can't be taken for that of another request.
pub(crate) struct ClientSession {
    server: String,
    diagnostics: Arc<ServerDiagnostics>,
    transport: OnceLock<Arc<dyn Transport>>,
    next_id: AtomicU64,
    pending: Mutex<PendingRequests>,
    end: watch::Sender<Option<SessionEnd>>,
    lists_changed: Notify,
    freshness: Mutex<ListFreshness>,
    questions: Arc<ServerQuestions>,
    open_questions: Arc<Semaphore>,
    elicitations: OpenElicitations,
    own_tasks: OwnTasks,
    messages_received: AtomicU64,
    // Cancelled requests since the last message.
    unanswered_in_a_row: AtomicU64,
    meta: OnceLock<ModernMeta>,
    revision: OnceLock<Arc<str>>,
    offer: OnceLock<ServerOffer>,
    subscriptions: Arc<ResourceSubscriptions>,
    log_level: Mutex<ServerLogLevel>,
    tasks: Mutex<Vec<RunningTask>>,
    users: Mutex<SessionUsers>,
}

#[derive(Default)]
struct PendingRequests {
    requests: HashMap<u64, PendingRequest>,
    abandoned: VecDeque<AbandonedRequest>,
}

/// A cancelled request.
struct AbandonedRequest {
    id: u64,
    // The call it was for, until the server answers.
    call: Option<AbandonedCall>,
    // The same.
    may_become_task: bool,
}

struct PendingRequest {
    reply: oneshot::Sender<Result<Value, SessionError>>,
    call: Option<CallContext>,
    // `messages_received` when it was sent.
    received_before: u64,
    // Closed when nobody waits for the reply any more.
    ended: watch::Sender<()>,
    may_become_task: bool,
}

impl ClientSession {
    /// Creates a session without a transport, because the transport
    /// needs the [`inbox`](Self::inbox) first.
    pub(crate) fn new(
        diagnostics: Arc<ServerDiagnostics>,
        questions: Arc<ServerQuestions>,
        subscriptions: Arc<ResourceSubscriptions>,
    ) -> Arc<Self> {
        Arc::new(Self {
            server: diagnostics.server().to_owned(),
            diagnostics,
            transport: OnceLock::new(),
            next_id: AtomicU64::new(FIRST_ID),
            pending: Mutex::default(),
            end: watch::Sender::new(None),
            lists_changed: Notify::new(),
            freshness: Mutex::default(),
            questions,
            open_questions: Arc::new(Semaphore::new(MAX_OPEN_QUESTIONS)),
            elicitations: OpenElicitations::default(),
            own_tasks: OwnTasks::default(),
            messages_received: AtomicU64::new(0),
            unanswered_in_a_row: AtomicU64::new(0),
            meta: OnceLock::new(),
            revision: OnceLock::new(),
            offer: OnceLock::new(),
            subscriptions,
            log_level: Mutex::default(),
            tasks: Mutex::default(),
            users: Mutex::default(),
        })
    }

    /// The inbox for the transport. Holds only a weak reference to the session.
    pub(crate) fn inbox(self: &Arc<Self>) -> Arc<dyn TransportInbox> {
        Arc::new(SessionMailbox(Arc::downgrade(self)))
    }

    /// Must be called once, with the transport that received the inbox.
    pub(crate) fn set_transport(&self, transport: Arc<dyn Transport>) {
        drop(self.transport.set(transport));
    }

    pub(crate) fn revision(&self) -> Option<String> {
        self.revision.get().map(ToString::to_string)
    }

    // Every request of a modern session stands alone, and says what its client wants.
    pub(crate) fn is_modern(&self) -> bool {
        self.meta.get().is_some()
    }

    pub(crate) fn shared_capabilities(&self) -> Value {
        self.questions.shared_capabilities(&self.server)
    }

    pub(crate) fn offer(&self) -> ServerOffer {
        self.offer.get().cloned().unwrap_or_default()
    }

    /// Takes the offer from the result of the handshake.
    pub(crate) fn set_offer(&self, result: &Value) {
        drop(self.offer.set(ServerOffer::from_handshake(result)));
    }

    pub(crate) fn set_protocol(&self, era: ProtocolEra, revision: &str, meta: Map<String, Value>) {
        drop(self.revision.set(revision.into()));
        if era == ProtocolEra::Modern {
            let own = self.questions.own_capabilities(&self.server);
            drop(self.meta.set(ModernMeta::new(meta, own)));
        }
        if let Some(transport) = self.transport.get() {
            transport.set_protocol(era, revision);
        }
    }

    /// Sends a request and waits for the response. Dropping the future cancels the
    /// request on the server.
    pub(crate) async fn request<P: Serialize>(
        self: &Arc<Self>,
        request: SessionRequest<'_, P>,
    ) -> Result<Value, SessionError> {
        Ok(self.numbered_request(request).await?.1)
    }

    /// Like `request`, and returns the id of the request too.
    pub(crate) async fn numbered_request<P: Serialize>(
        self: &Arc<Self>,
        request: SessionRequest<'_, P>,
    ) -> Result<(u64, Value), SessionError> {
        let id = self.new_id();
        let (sender, receiver) = oneshot::channel();
        let pending = PendingRequest {
            reply: sender,
            call: request.call.cloned(),
            received_before: self.messages_received.load(Ordering::Relaxed),
            ended: watch::Sender::new(()),
            may_become_task: request.tasks == TaskUse::MayBecome,
        };
        if let Some(call) = request.call {
            self.users.lock().add(call);
        }
        self.register_request(id, pending)?;
        let mut cancel_guard = RequestCancelGuard {
            session: self,
            id,
            // MCP forbids cancelling `initialize`.
            notify_server: request.method != "initialize",
            // A server may be too busy with its task to answer. A restart would end the task.
            is_evidence: request.tasks != TaskUse::Manages,
        };
        let call = request.call;
        let progress = call
            .map(|_| id)
            .filter(|_| request.tasks != TaskUse::Manages);
        let message = self.encode(Some(id), request, progress)?;
        if let Err(error) = self.transport()?.send(message).await {
            cancel_guard.notify_server = false;
            return Err(error.into());
        }
        if let (Some(call), Some(revision)) = (call, self.revision.get()) {
            let revision = Arc::clone(revision);
            call.record_sent(SentRequest { revision, id });
        }
        let answer = receiver.await.unwrap_or_else(|_| {
            Err(SessionError::Stopped(
                self.end.borrow().clone().unwrap_or_default(),
            ))
        })?;
        Ok((id, answer))
    }

    pub(crate) async fn notify<P: Serialize>(
        &self,
        method: &'static str,
        params: P,
    ) -> Result<(), SessionError> {
        let message = self.encode(None, SessionRequest::new(method, params), None)?;
        Ok(self.transport()?.send(message).await?)
    }

    pub(crate) async fn ended(&self) -> SessionEnd {
        let mut end = self.end.subscribe();
        match end.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(end)) => end.clone(),
            _ => SessionEnd::default(),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.end.borrow().is_some()
    }

    pub(crate) async fn lists_changed(&self) {
        self.lists_changed.notified().await;
    }

    /// Has everything that the server offers listed again.
    pub(crate) fn mark_lists_changed(&self) {
        self.lists_changed.notify_one();
    }

    /// Called after a failed request. Returns once the connection has ended, or after a short time.
    pub(crate) async fn wait_briefly_for_end(&self) {
        const SOON: Duration = Duration::from_millis(700);
        drop(tokio::time::timeout(SOON, self.ended()).await);
    }

    pub(crate) async fn close(&self) {
        if let Some(transport) = self.transport.get() {
            transport.close().await;
        }
    }

    fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn transport(&self) -> Result<&Arc<dyn Transport>, SessionError> {
        let missing = || SessionError::NotSent("the connection is not ready yet".into());
        self.transport.get().ok_or_else(missing)
    }

    fn register_request(&self, id: u64, request: PendingRequest) -> Result<(), SessionError> {
        let mut pending = self.pending.lock();
        // Checked under the lock, so that no request is added after the end.
        if let Some(end) = &*self.end.borrow() {
            return Err(SessionError::NotSent(
                end.status.wrap("the server stopped (", ")"),
            ));
        }
        pending.requests.insert(id, request);
        Ok(())
    }

    fn cancel_request(self: &Arc<Self>, id: u64, notify_server: bool, is_evidence: bool) {
        let request = {
            let mut pending = self.pending.lock();
            let Some(request) = pending.requests.remove(&id) else {
                return;
            };
            if pending.abandoned.len() == MAX_ABANDONED_IDS {
                pending.abandoned.pop_front();
            }
            let call = request
                .call
                .as_ref()
                .map(|call| AbandonedCall::new(call, self.abandoned_log_caller(call)));
            let may_become_task = request.may_become_task;
            pending.abandoned.push_back(AbandonedRequest {
                id,
                call,
                may_become_task,
            });
            request
        };
        let is_silent = request.received_before == self.messages_received.load(Ordering::Relaxed);
        let is_suspect = notify_server
            && is_evidence
            && is_silent
            && self.unanswered_in_a_row.fetch_add(1, Ordering::Relaxed) + 1
                == MAX_UNANSWERED_IN_A_ROW;
        let session = Arc::clone(self);
        let cleanup = async move {
            if notify_server {
                let params = json!({ "requestId": id, "reason": "the caller no longer waits for the response" });
                let sending = session.notify("notifications/cancelled", params);
                if !matches!(
                    tokio::time::timeout(NOTIFY_TIMEOUT, sending).await,
                    Ok(Ok(()))
                ) {
                    debug!(server = %session.server, %id, "a cancellation could not be sent");
                }
            }
            if let Some(transport) = session.transport.get() {
                transport.drop_request(id);
            }
            if is_suspect {
                session.close_if_unresponsive().await;
            }
        };
        // A future may be dropped outside a runtime, where nothing can be spawned.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(cleanup);
        }
    }

    // Pings the server. A busy server responds, if only with an error. If it doesn't respond, the
    // connection is closed, so that the server is restarted.
    async fn close_if_unresponsive(self: &Arc<Self>) {
        let ping = self.request(SessionRequest::new("ping", json!({})));
        if tokio::time::timeout(PING_TIMEOUT, ping).await.is_err() {
            warn!(server = %self.server, "no response to {MAX_UNANSWERED_IN_A_ROW} requests in a row, nor to a ping: closing the connection");
            self.close().await;
        }
    }
}

/// Cancels its request on drop, unless the response has arrived.
struct RequestCancelGuard<'a> {
    session: &'a Arc<ClientSession>,
    id: u64,
    notify_server: bool,
    /// A server that doesn't answer may be stuck.
    is_evidence: bool,
}

impl Drop for RequestCancelGuard<'_> {
    fn drop(&mut self) {
        self.session
            .cancel_request(self.id, self.notify_server, self.is_evidence);
    }
}

#[cfg(test)]
mod asking_tests;
#[cfg(test)]
mod tests;
