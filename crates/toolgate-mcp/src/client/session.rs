//! One conversation with a server: our requests and their answers, what the server tells and what it asks.

mod encode;
mod mailbox;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, Semaphore, oneshot, watch};
use toolgate_core::{CallContext, Sent};
use tracing::{debug, warn};

pub(crate) use self::encode::Request;
use self::mailbox::Mailbox;
use super::diagnostics::Diagnostics;
use super::message::RpcError;
use super::questions::Questions;
use super::transport::{End, Inbox, Lost, Reason, Status, Transport, TransportError};
use crate::Era;

/// Far from where servers begin to count: an echo of our answer to their request is no answer to a request of ours.
const FIRST_ID: u64 = 1 << 40;
/// How long a server that reads nothing is waited for when it is told something it need not know.
const COURTESY: Duration = Duration::from_secs(5);
/// Ids of requests nobody waits for any more, kept to tell a late answer from a wrong one.
const ABANDONED: usize = 1024;
/// So many requests in a row without a word from the server, and it is asked whether it is there at all.
const STRIKES: u64 = 3;
/// How long it may take to say so.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// Questions of a server that are open at once.
const OPEN_QUESTIONS: usize = 16;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// The server has certainly not seen it: asking again is safe.
    NotSent(Reason),
    /// The connection ended while it was open.
    Stopped(End),
    /// Only this request was lost.
    Interrupted(Reason),
    Refused {
        status: Status,
        body: Option<String>,
    },
    Rpc(RpcError),
    /// The answer was thrown away.
    Lost(Lost),
}

/// See the module's documentation. Ids are never used twice, so a late answer can not reach another request.
pub(crate) struct Session {
    server: String,
    diagnostics: Arc<Diagnostics>,
    transport: OnceLock<Arc<dyn Transport>>,
    next_id: AtomicU64,
    waiting: Mutex<Waiting>,
    end: watch::Sender<Option<End>>,
    tools_changed: Notify,
    questions: Arc<Questions>,
    open_questions: Arc<Semaphore>,
    /// Messages that came, and requests that were given up since the last one.
    heard: AtomicU64,
    strikes: AtomicU64,
    /// What every request of the modern era carries.
    meta: OnceLock<Map<String, Value>>,
    revision: OnceLock<Arc<str>>,
}

#[derive(Default)]
struct Waiting {
    requests: HashMap<u64, Asked>,
    abandoned: VecDeque<u64>,
}

struct Asked {
    answer: oneshot::Sender<Result<Value, Failure>>,
    /// The call behind it, which hears of progress.
    call: Option<CallContext>,
    /// What had been heard when it was asked.
    heard: u64,
}

impl Session {
    /// Without a transport yet: the transport needs the session's [`inbox`](Self::inbox) first.
    pub(crate) fn new(diagnostics: Arc<Diagnostics>, questions: Arc<Questions>) -> Arc<Self> {
        Arc::new(Self {
            server: diagnostics.server().to_owned(),
            diagnostics,
            transport: OnceLock::new(),
            next_id: AtomicU64::new(FIRST_ID),
            waiting: Mutex::default(),
            end: watch::Sender::new(None),
            tools_changed: Notify::new(),
            questions,
            open_questions: Arc::new(Semaphore::new(OPEN_QUESTIONS)),
            heard: AtomicU64::new(0),
            strikes: AtomicU64::new(0),
            meta: OnceLock::new(),
            revision: OnceLock::new(),
        })
    }

    /// Where the transport delivers. It does not keep the session alive.
    pub(crate) fn inbox(self: &Arc<Self>) -> Arc<dyn Inbox> {
        Arc::new(Mailbox(Arc::downgrade(self)))
    }

    /// Called once, with the transport that got the inbox.
    pub(crate) fn connect(&self, transport: Arc<dyn Transport>) {
        drop(self.transport.set(transport));
    }

    pub(crate) fn revision(&self) -> Option<String> {
        self.revision.get().map(ToString::to_string)
    }

    /// From here on every request carries what the era wants.
    pub(crate) fn agree(&self, era: Era, revision: &str, meta: Map<String, Value>) {
        drop(self.revision.set(revision.into()));
        if era == Era::Modern {
            drop(self.meta.set(meta));
        }
        if let Some(transport) = self.transport.get() {
            transport.agreed(era, revision);
        }
    }

    /// Asks and waits for the answer. Dropped before that, the server is told that nobody waits any more.
    pub(crate) async fn request<P: Serialize>(
        self: &Arc<Self>,
        request: Request<'_, P>,
    ) -> Result<Value, Failure> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        let asked = Asked {
            answer: sender,
            call: request.call.cloned(),
            heard: self.heard.load(Ordering::Relaxed),
        };
        self.expect(id, asked)?;
        let mut unanswered = Unanswered {
            session: self,
            id,
            // The one request that must not be cancelled.
            tell: request.method != "initialize",
        };
        let (call, progress) = (request.call, request.call.map(|_| id));
        let message = self.outgoing(Some(id), request, progress)?;
        if let Err(error) = self.transport()?.send(message).await {
            unanswered.tell = false;
            return Err(error.into());
        }
        if let (Some(call), Some(revision)) = (call, self.revision.get()) {
            let revision = Arc::clone(revision);
            call.tell_sent(Sent { revision, id });
        }
        receiver
            .await
            .unwrap_or_else(|_| Err(Failure::Stopped(self.ended_as())))
    }

    pub(crate) async fn notify<P: Serialize>(
        &self,
        method: &'static str,
        params: P,
    ) -> Result<(), Failure> {
        let message = self.outgoing(None, Request::new(method, params), None)?;
        Ok(self.transport()?.send(message).await?)
    }

    pub(crate) async fn ended(&self) -> End {
        let mut end = self.end.subscribe();
        match end.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(end)) => end.clone(),
            _ => End::default(),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.end.borrow().is_some()
    }

    pub(crate) async fn tools_changed(&self) {
        self.tools_changed.notified().await;
    }

    /// A request failed here: returns when the connection turns out to be over, or soon if it does not.
    pub(crate) async fn over(&self) {
        const SOON: Duration = Duration::from_millis(700);
        drop(tokio::time::timeout(SOON, self.ended()).await);
    }

    pub(crate) async fn close(&self) {
        if let Some(transport) = self.transport.get() {
            transport.close().await;
        }
    }

    fn transport(&self) -> Result<&Arc<dyn Transport>, Failure> {
        let missing = || Failure::NotSent("the connection is not there yet".into());
        self.transport.get().ok_or_else(missing)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }

    fn ended_as(&self) -> End {
        self.end.borrow().clone().unwrap_or_default()
    }

    fn expect(&self, id: u64, asked: Asked) -> Result<(), Failure> {
        let mut waiting = self.waiting();
        // Asked under the lock, so that no request slips in behind the end.
        if let Some(end) = &*self.end.borrow() {
            return Err(Failure::NotSent(
                end.status.within("the server stopped (", ")"),
            ));
        }
        waiting.requests.insert(id, asked);
        Ok(())
    }

    fn abandon(self: &Arc<Self>, id: u64, tell: bool) {
        let asked = {
            let mut waiting = self.waiting();
            let Some(asked) = waiting.requests.remove(&id) else {
                return;
            };
            if waiting.abandoned.len() == ABANDONED {
                waiting.abandoned.pop_front();
            }
            waiting.abandoned.push_back(id);
            asked
        };
        let is_silent = asked.heard == self.heard.load(Ordering::Relaxed);
        let doubtful =
            tell && is_silent && self.strikes.fetch_add(1, Ordering::Relaxed) + 1 == STRIKES;
        let session = Arc::clone(self);
        let tell_it = async move {
            if tell {
                let params =
                    json!({ "requestId": id, "reason": "nobody waits for the answer any more" });
                let told = session.notify("notifications/cancelled", params);
                if !matches!(tokio::time::timeout(COURTESY, told).await, Ok(Ok(()))) {
                    debug!(server = %session.server, %id, "could not be told of a cancelled call");
                }
            }
            if let Some(transport) = session.transport.get() {
                transport.forget(id);
            }
            if doubtful {
                session.expect_sign_of_life().await;
            }
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tell_it);
        }
    }

    /// A server that is busy answers a ping, if only with an error. One that does not is stuck: it is ended, and started anew.
    async fn expect_sign_of_life(self: &Arc<Self>) {
        let ping = self.request(Request::new("ping", json!({})));
        if tokio::time::timeout(SIGN_OF_LIFE, ping).await.is_err() {
            warn!(server = %self.server, "no answer to {STRIKES} requests in a row, nor to a ping: the connection is ended");
            self.close().await;
        }
    }
}

/// Cancels the request it stands for when it is dropped, unless the answer has come.
struct Unanswered<'a> {
    session: &'a Arc<Session>,
    id: u64,
    tell: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        self.session.abandon(self.id, self.tell);
    }
}

impl From<TransportError> for Failure {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::NotSent(reason) => Self::NotSent(reason),
            TransportError::Interrupted(reason) => Self::Interrupted(reason),
            TransportError::Refused { status, body } => Self::Refused { status, body },
        }
    }
}

#[cfg(test)]
mod tests;
