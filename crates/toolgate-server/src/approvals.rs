//! Questions for the person at the dashboard.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{broadcast, oneshot, watch};
use toolgate_core::{
    Approval, ApprovalBy, ApprovalMeans, ApprovalRequest, Approver, LONGEST_APPROVABLE, Redactor,
    Source, kept,
};
use utoipa::ToSchema;

use crate::calls::timestamp;
use crate::guard::Caller;

/// More questions at once are not answered by a person.
const MOST: usize = 100;
/// Those of one caller: nobody fills the desk for the others.
const MOST_OF_ONE: usize = MOST / 2;
/// What takes a secret out of arguments may make them longer. They are shown whole or not at all.
const LONGEST_ARGUMENTS: usize = 4 * LONGEST_APPROVABLE;
/// Events that wait for a slow dashboard.
const KEPT: usize = 256;
/// A page that is loaded again is away for a moment.
const AWAY: Duration = Duration::from_secs(5);

/// Asks whoever has the dashboard open. Cheap to clone.
#[derive(Clone)]
pub struct Approvals(Arc<Desk>);

struct Desk {
    open: Mutex<BTreeMap<String, Open>>,
    events: broadcast::Sender<ApprovalEvent>,
    listeners: watch::Sender<usize>,
    equipment: OnceLock<(Redactor, Duration)>,
    url: OnceLock<String>,
}

struct Open {
    question: Arc<Question>,
    answer: oneshot::Sender<Approval>,
}

/// A call that waits for a person.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Question {
    /// The id of the call.
    #[schema(example = "0199f0c27b1a4fd2c39b5d0000000007")]
    pub(crate) id: String,
    /// The tool it is of.
    #[schema(example = "control_lock")]
    pub(crate) tool: String,
    /// The MCP server behind it.
    #[schema(example = "house")]
    pub(crate) server: Option<String>,
    /// What asked for the call.
    #[schema(example = "http")]
    pub(crate) origin: String,
    /// The name of the token that was shown, where one is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "kitchen")]
    pub(crate) caller: Option<String>,
    /// What the tool would get, whole, but for secrets.
    #[schema(example = json!({ "lock": "front door", "action": "unlock" }))]
    pub(crate) arguments: Value,
    /// Since when it waits, in UTC.
    #[schema(example = "2026-11-16T05:30:00.000Z", format = DateTime)]
    pub(crate) asked_at: String,
    /// When it counts as refused, in UTC.
    #[schema(example = "2026-11-16T05:32:00.000Z", format = DateTime)]
    pub(crate) expires_at: String,
}

#[derive(Debug, Clone)]
pub(crate) enum ApprovalEvent {
    /// A call waits.
    Asked(Arc<Question>),
    /// It does not wait any more, for whatever reason.
    Gone(String),
}

/// Somebody who listens; calls wait as long as there is one.
pub(crate) struct Listening {
    desk: Arc<Desk>,
    pub(crate) events: broadcast::Receiver<ApprovalEvent>,
}

impl Default for Approvals {
    fn default() -> Self {
        Self(Arc::new(Desk {
            open: Mutex::default(),
            events: broadcast::Sender::new(KEPT),
            listeners: watch::Sender::new(0),
            equipment: OnceLock::new(),
            url: OnceLock::new(),
        }))
    }
}

impl Approvals {
    /// What must not be shown, and how long the executor waits for an answer.
    pub(crate) fn equip(&self, redactor: Redactor, patience: Duration) {
        drop(self.0.equipment.set((redactor, patience)));
    }

    pub(crate) fn listen(&self) -> Listening {
        let events = self.0.events.subscribe();
        self.0.listeners.send_modify(|listeners| *listeners += 1);
        Listening {
            desk: Arc::clone(&self.0),
            events,
        }
    }

    /// Calls that wait, the oldest first.
    pub(crate) fn open(&self) -> Vec<Question> {
        let open = self.0.open();
        open.values()
            .map(|open| Question::clone(&open.question))
            .collect()
    }

    pub(crate) fn set_url(&self, url: String) {
        drop(self.0.url.set(url));
    }

    /// Answers a question for somebody who has the right to.
    pub(crate) fn settle(
        &self,
        id: &str,
        approve: bool,
        caller: &Caller,
    ) -> Result<(), SettleError> {
        let name = caller.scope.caller();
        let means = match caller.is_session {
            true => ApprovalMeans::Browser,
            false => ApprovalMeans::Token,
        };
        let mut open = self.0.open();
        let question = &open.get(id).ok_or(SettleError::Gone)?.question;
        // Whatever session or connection the call came by: a program must not agree to what it asks for itself.
        let is_its_own = name.map(|name| self.0.shown_name(name)) == question.caller;
        if approve && is_its_own && !caller.is_session {
            return Err(SettleError::OwnCall);
        }
        let mut by = ApprovalBy::new(means);
        if let Some(name) = name {
            by = by.named(name);
        }
        let answer = match approve {
            true => Approval::Granted(by),
            false => Approval::Refused(by),
        };
        let open = open.remove(id).ok_or(SettleError::Gone)?;
        open.answer.send(answer).map_err(|_| SettleError::Gone)
    }

    /// Like [`ask`](Approver::ask), for a question that somebody is asked elsewhere too: it waits even while nobody has the
    /// dashboard open.
    pub fn ask_beside<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            match self.0.put(&request) {
                Some((_waiting, answer)) => answer.await.unwrap_or(Approval::Nobody),
                None => Approval::Nobody,
            }
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettleError {
    /// Nobody waits for it any more.
    Gone,
    /// A token does not approve what was called with it.
    OwnCall,
}

impl Approver for Approvals {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let Some((_waiting, answer)) = self.0.ask(&request) else {
                return Approval::Nobody;
            };
            tokio::select! {
                answer = answer => answer.unwrap_or(Approval::Nobody),
                () = self.0.deserted() => Approval::Nobody,
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

impl Desk {
    fn open(&self) -> MutexGuard<'_, BTreeMap<String, Open>> {
        self.open.lock()
    }

    /// Puts a question; none if nobody listens, or too many wait already.
    fn ask(
        self: &Arc<Self>,
        request: &ApprovalRequest<'_>,
    ) -> Option<(Waiting, oneshot::Receiver<Approval>)> {
        match *self.listeners.borrow() {
            0 => None,
            _ => self.put(request),
        }
    }

    /// Puts a question whoever listens; none if too many wait already, or it can't be shown whole.
    fn put(
        self: &Arc<Self>,
        request: &ApprovalRequest<'_>,
    ) -> Option<(Waiting, oneshot::Receiver<Approval>)> {
        let question = Arc::new(self.question(request)?);
        let (answer, answered) = oneshot::channel();
        {
            let mut open = self.open();
            let is_its = |open: &&Open| open.question.caller == question.caller;
            if open.len() >= MOST || open.values().filter(is_its).count() >= MOST_OF_ONE {
                let caller = question.caller.as_deref();
                tracing::warn!(tool = %request.tool.name(), caller, "too many calls wait for approval: this one is refused");
                return None;
            }
            let question = Arc::clone(&question);
            open.insert(question.id.clone(), Open { question, answer });
        }
        let waiting = Waiting {
            desk: Arc::clone(self),
            id: question.id.clone(),
        };
        drop(self.events.send(ApprovalEvent::Asked(question)));
        Some((waiting, answered))
    }

    fn equipment(&self) -> &(Redactor, Duration) {
        let usual = || (Redactor::default(), Duration::from_secs(120));
        self.equipment.get_or_init(usual)
    }

    fn shown_name(&self, name: &str) -> String {
        kept::name(&self.equipment().0, name)
    }

    fn question(&self, request: &ApprovalRequest<'_>) -> Option<Question> {
        let (redactor, patience) = self.equipment();
        let now = SystemTime::now();
        let (arguments, false) = kept::value(redactor, request.arguments, LONGEST_ARGUMENTS) else {
            return None;
        };
        Some(Question {
            id: request.id.to_string(),
            tool: request.tool.name().to_owned(),
            server: match request.tool.source() {
                Source::Mcp(server) => Some(server.clone()),
                _ => None,
            },
            origin: request.origin.to_string(),
            caller: request.caller.map(|name| self.shown_name(name)),
            arguments,
            asked_at: timestamp(now),
            expires_at: timestamp(now + *patience),
        })
    }

    /// Returns when nobody has listened for a while.
    async fn deserted(&self) {
        let mut listeners = self.listeners.subscribe();
        loop {
            // The sender is in `self`: neither wait ends because of its end.
            drop(listeners.wait_for(|listeners| *listeners == 0).await);
            let back = listeners.wait_for(|listeners| *listeners > 0);
            if tokio::time::timeout(AWAY, back).await.is_err() {
                return;
            }
        }
    }
}

/// Takes a question back when its call stops waiting, for whatever reason, and tells all who listen.
struct Waiting {
    desk: Arc<Desk>,
    id: String,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.desk.open().remove(&self.id);
        let gone = ApprovalEvent::Gone(std::mem::take(&mut self.id));
        drop(self.desk.events.send(gone));
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.desk.listeners.send_modify(|listeners| *listeners -= 1);
    }
}
