//! Asks the person at the dashboard to approve calls.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{broadcast, oneshot, watch};
use toolgate_core::{
    Approval, ApprovalActor, ApprovalChannel, ApprovalRequest, Approver, MAX_APPROVABLE_BYTES,
    Redactor, ToolSource, sanitize,
};
use utoipa::ToSchema;

use crate::guard::Caller;
use crate::notify::{DASHBOARD_FIRST, Notification, Notifier};

// Nobody could answer more open questions than this.
const MAX_QUESTIONS: usize = 100;
// A single caller can't use up all questions.
const MAX_PER_CALLER: usize = MAX_QUESTIONS / 2;
// Redaction may lengthen arguments. They are shown whole or not at all, so that nobody approves
// what they can't see.
const MAX_ARGUMENTS_LEN: usize = 4 * MAX_APPROVABLE_BYTES;
// Whoever is notified sees the rest at the dashboard.
const MAX_NOTIFIED_ARGUMENTS: usize = 2 << 10;
const EVENT_CAPACITY: usize = 256;
// Reloading the page must not cancel its questions.
const RELOAD_GRACE: Duration = Duration::from_secs(5);

/// An [`Approver`] that asks the people who have the dashboard open. Clones
/// share the open requests.
#[derive(Clone)]
pub struct DashboardApprovals(Arc<ApprovalQueue>);

struct ApprovalQueue {
    open: Mutex<BTreeMap<String, OpenApproval>>,
    events: broadcast::Sender<ApprovalEvent>,
    listeners: watch::Sender<usize>,
    redactor: OnceLock<Redactor>,
    url: OnceLock<String>,
    notifier: OnceLock<Arc<Notifier>>,
    link: OnceLock<String>,
}

struct OpenApproval {
    question: Arc<ApprovalQuestion>,
    answer: oneshot::Sender<Approval>,
}

/// A call that waits for approval.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Question)]
pub(crate) struct ApprovalQuestion {
    /// The id of the call.
    #[schema(example = "0199f0c27b1a4fd2c39b5d0000000007")]
    pub(crate) id: String,
    /// The name of the tool.
    #[schema(example = "control_lock")]
    pub(crate) tool: String,
    /// The MCP server that provides the tool.
    #[schema(example = "house")]
    pub(crate) server: Option<String>,
    /// How the call came in.
    #[schema(example = "http")]
    pub(crate) origin: String,
    /// The name of the caller's token, where one is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "kitchen")]
    pub(crate) caller: Option<String>,
    /// The complete arguments, without secrets.
    #[schema(example = json!({ "lock": "front door", "action": "unlock" }))]
    pub(crate) arguments: Value,
    /// Why the call needs approval.
    #[schema(example = "The policy requires approval.")]
    pub(crate) reason: String,
    /// When the question was asked, in UTC.
    #[schema(example = "2026-11-16T05:30:00.000Z", format = DateTime)]
    pub(crate) asked_at: String,
    /// When it counts as refused, in UTC.
    #[schema(example = "2026-11-16T05:32:00.000Z", format = DateTime)]
    pub(crate) expires_at: String,
}

#[derive(Debug, Clone)]
pub(crate) enum ApprovalEvent {
    Asked(Arc<ApprovalQuestion>),
    // The question with this id was decided, withdrawn or timed out.
    Gone(String),
}

/// An open dashboard. Calls wait for approval as long as there is one.
pub(crate) struct ApprovalSubscription {
    queue: Arc<ApprovalQueue>,
    pub(crate) events: broadcast::Receiver<ApprovalEvent>,
}

impl Default for DashboardApprovals {
    fn default() -> Self {
        Self(Arc::new(ApprovalQueue {
            open: Mutex::default(),
            events: broadcast::Sender::new(EVENT_CAPACITY),
            listeners: watch::Sender::new(0),
            redactor: OnceLock::new(),
            url: OnceLock::new(),
            notifier: OnceLock::new(),
            link: OnceLock::new(),
        }))
    }
}

impl DashboardApprovals {
    pub(crate) fn set_redactor(&self, redactor: Redactor) {
        drop(self.0.redactor.set(redactor));
    }

    pub(crate) fn subscribe(&self) -> ApprovalSubscription {
        let events = self.0.events.subscribe();
        self.0.listeners.send_modify(|listeners| *listeners += 1);
        ApprovalSubscription {
            queue: Arc::clone(&self.0),
            events,
        }
    }

    pub(crate) fn open(&self) -> Vec<ApprovalQuestion> {
        let open = self.0.open.lock();
        let questions = open.values().map(|open| &*open.question);
        questions.cloned().collect()
    }

    pub(crate) fn set_url(&self, url: String) {
        drop(self.0.url.set(url));
    }

    pub(crate) fn notify_with(&self, notifier: Arc<Notifier>) {
        drop(self.0.notifier.set(notifier));
    }

    /// Sets where notifications lead to.
    pub(crate) fn set_link(&self, link: String) {
        drop(self.0.link.set(link));
    }

    pub(crate) fn decide(
        &self,
        id: &str,
        approve: bool,
        caller: &Caller,
    ) -> Result<(), DecisionError> {
        let name = caller.scope.caller();
        let channel = match caller.is_session {
            true => ApprovalChannel::Browser,
            false => ApprovalChannel::Token,
        };
        let mut open = self.0.open.lock();
        let question = &open.get(id).ok_or(DecisionError::Gone)?.question;
        // Compares names, because the session or connection doesn't matter: a program must not
        // approve its own call.
        let is_own_call = name.map(|name| self.0.redacted_name(name)) == question.caller;
        if approve && is_own_call && !caller.is_session {
            return Err(DecisionError::OwnCall);
        }
        let mut by = ApprovalActor::new(channel);
        if let Some(name) = name {
            by = by.with_name(name);
        }
        let answer = match approve {
            true => Approval::Granted(by),
            false => Approval::Refused(by),
        };
        let open = open.remove(id).ok_or(DecisionError::Gone)?;
        open.answer.send(answer).map_err(|_| DecisionError::Gone)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecisionError {
    // The question no longer waits.
    Gone,
    // A token can't approve its own call.
    OwnCall,
}

impl Approver for DashboardApprovals {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let is_watched = *self.0.listeners.borrow() > 0;
            let Some((waiting, answer)) = self.0.ask(&request) else {
                return Approval::Nobody;
            };
            tokio::select! {
                answer = answer => answer.unwrap_or(Approval::Nobody),
                () = self.0.wait_until_unreachable(&waiting.question, is_watched) => Approval::Nobody,
            }
        })
    }

    /// Waits even while no dashboard is open.
    fn ask_alongside<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let Some((waiting, answer)) = self.0.enqueue(&request) else {
                return Approval::Nobody;
            };
            // Somebody is asked elsewhere, so a notification that fails doesn't end the wait.
            let notifying = async {
                tokio::time::sleep(DASHBOARD_FIRST).await;
                if let Some(notifier) = self.0.notifier.get() {
                    notifier
                        .notify(&self.0.notification(&waiting.question))
                        .await;
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                answer = answer => answer.unwrap_or(Approval::Nobody),
                () = notifying => Approval::Nobody,
            }
        })
    }

    fn hint(&self) -> Option<String> {
        let at = self.0.url.get().map(|url| format!(" at {url}"));
        Some(format!(
            "A person has to agree: open the dashboard{}, sign in, then make the call again and approve it there",
            at.unwrap_or_default()
        ))
    }
}

impl ApprovalQueue {
    /// Asks only if a dashboard is open, or people can be notified.
    fn ask(
        self: &Arc<Self>,
        request: &ApprovalRequest<'_>,
    ) -> Option<(PendingApproval, oneshot::Receiver<Approval>)> {
        let is_watched = *self.listeners.borrow() > 0;
        match is_watched || self.notifier.get().is_some() {
            true => self.enqueue(request),
            false => None,
        }
    }

    /// Asks even if no dashboard is open. Fails if too many questions wait, or the arguments
    /// can't be shown whole.
    fn enqueue(
        self: &Arc<Self>,
        request: &ApprovalRequest<'_>,
    ) -> Option<(PendingApproval, oneshot::Receiver<Approval>)> {
        let question = Arc::new(self.question(request)?);
        let (answer, answered) = oneshot::channel();
        {
            let mut open = self.open.lock();
            let is_same_caller = |open: &&OpenApproval| open.question.caller == question.caller;
            if open.len() >= MAX_QUESTIONS
                || open.values().filter(is_same_caller).count() >= MAX_PER_CALLER
            {
                let caller = question.caller.as_deref();
                tracing::warn!(tool = %request.tool.name(), caller, "refused a call: too many calls wait for approval");
                return None;
            }
            let question = Arc::clone(&question);
            open.insert(question.id.clone(), OpenApproval { question, answer });
        }
        let waiting = PendingApproval {
            queue: Arc::clone(self),
            question: Arc::clone(&question),
        };
        drop(self.events.send(ApprovalEvent::Asked(question)));
        Some((waiting, answered))
    }

    fn redactor(&self) -> &Redactor {
        self.redactor.get_or_init(Redactor::default)
    }

    fn redacted_name(&self, name: &str) -> String {
        sanitize::name(self.redactor(), name)
    }

    fn question(&self, request: &ApprovalRequest<'_>) -> Option<ApprovalQuestion> {
        let redactor = self.redactor();
        let (arguments, false) = sanitize::value(redactor, request.arguments, MAX_ARGUMENTS_LEN)
        else {
            return None;
        };
        Some(ApprovalQuestion {
            id: request.id.to_string(),
            tool: request.tool.name().to_owned(),
            server: match request.tool.source() {
                ToolSource::Mcp(server) => Some(server.clone()),
                _ => None,
            },
            origin: request.origin.to_string(),
            caller: request.caller.map(|name| self.redacted_name(name)),
            arguments,
            reason: request.reason.to_string(),
            asked_at: timestamp(SystemTime::now()),
            expires_at: timestamp(request.expires_at),
        })
    }

    /// Ends once nobody can answer any more: no dashboard is open, and no notification arrived.
    async fn wait_until_unreachable(&self, question: &ApprovalQuestion, is_watched: bool) {
        let Some(notifier) = self.notifier.get() else {
            return self.wait_until_abandoned().await;
        };
        if is_watched {
            drop(tokio::time::timeout(DASHBOARD_FIRST, self.wait_until_abandoned()).await);
        }
        if notifier.notify(&self.notification(question)).await {
            std::future::pending::<()>().await;
        }
        self.wait_until_abandoned().await;
    }

    fn notification(&self, question: &ApprovalQuestion) -> Notification {
        let redactor = self.redactor();
        let tool = sanitize::name(redactor, &question.tool);
        let server = question.server.as_deref();
        let server = server.map(|server| sanitize::name(redactor, server));
        let of_server = server
            .as_ref()
            .map(|server| format!(" of the server '{server}'"));
        let reason = &question.reason;
        let text = format!(
            "A call of '{tool}'{} waits for approval. {reason}",
            of_server.unwrap_or_default()
        );
        // Redacted already.
        let (arguments, _) = sanitize::value(
            &Redactor::default(),
            &question.arguments,
            MAX_NOTIFIED_ARGUMENTS,
        );
        Notification {
            event: "approval",
            id: question.id.clone(),
            text,
            tool,
            server,
            origin: question.origin.clone(),
            caller: question.caller.clone(),
            arguments: Some(arguments),
            question: None,
            asked_at: question.asked_at.clone(),
            expires_at: question.expires_at.clone(),
            link: self.link.get().cloned().unwrap_or_default(),
        }
    }

    async fn wait_until_abandoned(&self) {
        let mut listeners = self.listeners.subscribe();
        loop {
            // `self` holds the sender, so neither wait can end because it was dropped.
            drop(listeners.wait_for(|listeners| *listeners == 0).await);
            let back = listeners.wait_for(|listeners| *listeners > 0);
            if tokio::time::timeout(RELOAD_GRACE, back).await.is_err() {
                return;
            }
        }
    }
}

/// Withdraws the question on drop, when the call no longer waits.
struct PendingApproval {
    queue: Arc<ApprovalQueue>,
    question: Arc<ApprovalQuestion>,
}

impl Drop for PendingApproval {
    fn drop(&mut self) {
        let id = &self.question.id;
        self.queue.open.lock().remove(id);
        let gone = ApprovalEvent::Gone(id.clone());
        drop(self.queue.events.send(gone));
    }
}

impl Drop for ApprovalSubscription {
    fn drop(&mut self) {
        self.queue
            .listeners
            .send_modify(|listeners| *listeners -= 1);
    }
}

pub(crate) fn timestamp(time: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or_default();
    format!("{time:.3}")
}
