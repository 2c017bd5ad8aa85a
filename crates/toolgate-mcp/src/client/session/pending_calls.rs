//! Whose calls the server works on. Its questions and log messages must not reach anybody else.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use toolgate_core::{CallContext, ClientId, QuestionHandler};

use super::ClientSession;
use crate::client::questions::RequestingCall;

// How long a server may go on with a cancelled call that it doesn't answer, and ask or log on its
// behalf.
const STILL_WORKING: Duration = Duration::from_secs(120);

/// A call that the server works on.
pub(super) struct PendingCall {
    /// Its request, or its place among the requests of the session.
    pub(super) number: u64,
    pub(super) context: CallContext,
    // Closed when the call has ended.
    ended: watch::Receiver<()>,
}

impl PendingCall {
    pub(super) fn new(number: u64, context: &CallContext, ended: &watch::Sender<()>) -> Self {
        Self {
            number,
            context: context.clone(),
            ended: ended.subscribe(),
        }
    }

    pub(super) async fn wait_for_end(&mut self) {
        while self.ended.changed().await.is_ok() {}
    }
}

/// A call that was cancelled before its server answered, or a notification, which has no answer.
pub(super) struct AbandonedCall {
    pub(super) asker: CallAsker,
    // The caller that gets its log messages.
    pub(super) log_caller: Option<u64>,
    pub(super) at: Instant,
    is_notification: bool,
}

impl AbandonedCall {
    pub(super) fn new(call: &CallContext, log_caller: Option<u64>) -> Self {
        Self {
            asker: CallAsker::new(call),
            log_caller,
            at: Instant::now(),
            is_notification: false,
        }
    }

    pub(super) fn of_notification(call: &CallContext, log_caller: Option<u64>) -> Self {
        Self {
            is_notification: true,
            ..Self::new(call, log_caller)
        }
    }

    /// True if both are notifications of the same client.
    pub(super) fn is_same_notifier(&self, other: &Self) -> bool {
        self.is_notification
            && other.is_notification
            && self.asker == other.asker
            && self.log_caller == other.log_caller
    }
}

/// Who could be asked about a call: a client, or a person by the name of the caller.
#[derive(PartialEq, Eq)]
pub(super) struct CallAsker {
    client: Option<ClientId>,
    caller: Option<String>,
}

impl CallAsker {
    fn new(call: &CallContext) -> Self {
        let listening = || call.extension_listener().map(|listener| listener.client());
        let client = call.questions().map(|questions| questions.client());
        Self {
            client: client.or_else(listening),
            caller: call.scope().caller().map(str::to_owned),
        }
    }

    pub(super) fn client(&self) -> Option<ClientId> {
        self.client
    }
}

/// The calls that a question of the server can be about, and who may be asked.
pub(super) struct AskingCalls {
    pub(super) calls: Vec<PendingCall>,
    pub(super) handler: Option<Arc<dyn QuestionHandler>>,
    /// `None` if the calls have several callers.
    pub(super) call: Option<RequestingCall>,
}

impl From<Option<PendingCall>> for AskingCalls {
    fn from(call: Option<PendingCall>) -> Self {
        let context = call.as_ref().map(|call| &call.context);
        Self {
            handler: context.and_then(|context| context.questions().cloned()),
            call: context.map(RequestingCall::new),
            calls: Vec::from_iter(call),
        }
    }
}

impl ClientSession {
    /// The calls that a question is about: that of the task it names, that of the request on whose
    /// stream it came, or any that the server works on.
    pub(super) async fn find_asking_calls(
        &self,
        task: Option<&str>,
        request: Option<u64>,
    ) -> AskingCalls {
        match (task, request) {
            // A task that no call waits for has nobody behind it.
            (Some(task), _) => self.find_task_call(task).await.into(),
            (None, Some(id)) => self.pending_call(id).into(),
            (None, None) => {
                let calls = self.pending_calls();
                let handler = only_handler(&calls).filter(|handler| {
                    let client = Some(handler.client());
                    self.all_abandoned(|call| call.asker.client == client)
                });
                AskingCalls {
                    handler,
                    call: self.only_requesting_call(&calls),
                    calls,
                }
            }
        }
    }

    pub(super) fn pending_call(&self, id: u64) -> Option<PendingCall> {
        let pending = self.pending.lock();
        let request = pending.requests.get(&id)?;
        Some(PendingCall::new(id, request.call.as_ref()?, &request.ended))
    }

    /// The calls that the server works on, the newest last.
    pub(super) fn pending_calls(&self) -> Vec<PendingCall> {
        let mut calls = self.task_calls();
        let pending = self.pending.lock();
        let open = pending.requests.iter().filter_map(|(id, request)| {
            Some(PendingCall::new(
                *id,
                request.call.as_ref()?,
                &request.ended,
            ))
        });
        calls.extend(open);
        drop(pending);
        calls.sort_unstable_by_key(|call| call.number);
        calls
    }

    /// The newest of the calls, if all of them are the same caller's, and so are those that were
    /// cancelled and may still run.
    fn only_requesting_call(&self, calls: &[PendingCall]) -> Option<RequestingCall> {
        let (newest, others) = calls.split_last()?;
        let asker = CallAsker::new(&newest.context);
        let is_same = |call: &PendingCall| CallAsker::new(&call.context) == asker;
        let is_only = others.iter().all(is_same) && self.all_abandoned(|call| call.asker == asker);
        is_only.then(|| RequestingCall::new(&newest.context))
    }

    /// Returns true if the condition holds for all cancelled calls that the server
    /// may still work on.
    pub(super) fn all_abandoned(&self, condition: impl Fn(&AbandonedCall) -> bool) -> bool {
        let pending = self.pending.lock();
        let calls = pending.abandoned.iter();
        let mut calls = calls.filter_map(|request| request.call.as_ref());
        calls.all(|call| call.at.elapsed() >= STILL_WORKING || condition(call))
    }
}

/// The client that made all of these calls, through its newest one. If there are several clients,
/// nobody knows whose call made the server ask, and a question must not reach a stranger.
fn only_handler(calls: &[PendingCall]) -> Option<Arc<dyn QuestionHandler>> {
    let (newest, others) = calls.split_last()?;
    let handler = newest.context.questions()?;
    let is_same = |call: &PendingCall| {
        let other = call.context.questions();
        other.is_some_and(|other| other.client() == handler.client())
    };
    others.iter().all(is_same).then(|| Arc::clone(handler))
}
