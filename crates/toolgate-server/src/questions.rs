//! Puts questions of servers to the people who have the dashboard open.
//!
//! A question belongs to a call. It is shown to the one who made that call, by name, and to people
//! with the right to approve. Whoever answers first, answers for the call.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use reqwest::Url;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::{broadcast, oneshot, watch};
use tokio::time::Instant;
use toolgate_core::{CallId, Redactor, sanitize, truncate};
use toolgate_mcp::{Elicitation, ElicitationAnswer, ElicitationError, Elicitor, RequestingCall};
use tracing::info;
use utoipa::ToSchema;

use crate::approvals::timestamp;
use crate::guard::Caller;
use crate::notify::{DASHBOARD_FIRST, Notification, Notifier};

const MAX_QUESTIONS: usize = 100;
// A single caller can't use up all questions, and neither can a single server.
const MAX_OF_ONE: usize = MAX_QUESTIONS / 2;
// A call's clock stops while its server asks, so its questions have to end.
const MAX_OF_CALL: usize = 32;
// Calls whose questions are counted. An older one starts again.
const COUNTED_CALLS: usize = 256;
const MAX_MESSAGE: usize = 4 << 10;
// A server that asks again and again must not fill the log.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
const EVENT_CAPACITY: usize = 256;
// Reloading the page must not cancel its questions.
const RELOAD_GRACE: Duration = Duration::from_secs(5);

/// Asks the people who have the dashboard open what servers want to know. Clones share their
/// questions.
#[derive(Clone)]
pub struct DashboardQuestions(Arc<QuestionQueue>);

struct QuestionQueue {
    open: Mutex<BTreeMap<String, OpenQuestion>>,
    asked: Mutex<VecDeque<(CallId, usize)>>,
    last_id: AtomicU64,
    // When a declined question was last logged.
    logged: Mutex<Option<Instant>>,
    events: broadcast::Sender<QuestionEvent>,
    // Who has the dashboard open.
    viewers: watch::Sender<Vec<(u64, QuestionViewer)>>,
    config: OnceLock<(Redactor, Duration)>,
    notifier: OnceLock<Arc<Notifier>>,
    link: OnceLock<String>,
}

struct OpenQuestion {
    shown: Arc<ServerQuestion>,
    asked: Elicitation,
    answer: oneshot::Sender<ElicitationAnswer>,
}

/// A question that a server asks during a call.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ServerQuestion {
    /// The id of the question.
    #[schema(example = "12")]
    pub(crate) id: String,
    /// The MCP server that asks.
    #[schema(example = "house")]
    pub(crate) server: String,
    /// What it asks: untrusted text.
    #[schema(example = "Which room?")]
    pub(crate) message: String,
    /// A JSON Schema of the answer, with the fields to fill in. Its texts are untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false, example = json!({ "type": "object", "properties": { "room": { "type": "string" } } }))]
    pub(crate) schema: Option<Value>,
    /// The page that it wants to be opened instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "https://example.org/sign-in")]
    pub(crate) url: Option<String>,
    /// The id of the call during which it asks.
    #[schema(example = "0199f0c27b1a4fd2c39b5d0000000007")]
    pub(crate) call: String,
    /// The name of the tool that was called.
    #[schema(example = "control_light")]
    pub(crate) tool: String,
    /// How the call came in.
    #[schema(example = "http")]
    pub(crate) origin: String,
    /// The name of the caller's token, where one is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "kitchen")]
    pub(crate) caller: Option<String>,
    /// When the question was asked, in UTC.
    #[schema(example = "2026-11-16T05:30:00.000Z", format = DateTime)]
    pub(crate) asked_at: String,
    /// When it counts as dismissed, in UTC.
    #[schema(example = "2026-11-16T05:32:00.000Z", format = DateTime)]
    pub(crate) expires_at: String,
}

#[derive(Debug, Clone)]
pub(crate) enum QuestionEvent {
    Asked(Arc<ServerQuestion>),
    // Answered, withdrawn or timed out.
    Gone(Arc<ServerQuestion>),
}

/// Whose questions somebody sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QuestionViewer {
    All,
    // Those of the calls made under this recorded name.
    Own(String),
    Nobody,
}

/// An open dashboard. Questions that it may show wait for an answer.
pub(crate) struct QuestionSubscription {
    queue: Arc<QuestionQueue>,
    number: u64,
    pub(crate) viewer: QuestionViewer,
    pub(crate) events: broadcast::Receiver<QuestionEvent>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AnswerError {
    // The question no longer waits, or isn't the caller's.
    Gone,
    Invalid(ElicitationError),
}

impl QuestionViewer {
    pub(crate) fn sees(&self, question: &ServerQuestion) -> bool {
        self.sees_calls_of(question.caller.as_deref())
    }

    fn sees_calls_of(&self, caller: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Own(name) => caller == Some(name),
            Self::Nobody => false,
        }
    }
}

impl Default for DashboardQuestions {
    fn default() -> Self {
        Self(Arc::new(QuestionQueue {
            open: Mutex::default(),
            asked: Mutex::default(),
            last_id: AtomicU64::new(0),
            logged: Mutex::default(),
            events: broadcast::Sender::new(EVENT_CAPACITY),
            viewers: watch::Sender::new(Vec::new()),
            config: OnceLock::new(),
            notifier: OnceLock::new(),
            link: OnceLock::new(),
        }))
    }
}

impl DashboardQuestions {
    pub(crate) fn configure(&self, redactor: Redactor, timeout: Duration) {
        drop(self.0.config.set((redactor, timeout)));
    }

    pub(crate) fn notify_with(&self, notifier: Arc<Notifier>) {
        drop(self.0.notifier.set(notifier));
    }

    pub(crate) fn set_link(&self, link: String) {
        drop(self.0.link.set(link));
    }

    /// Whose questions this caller may see and answer.
    pub(crate) fn viewer(&self, caller: &Caller) -> QuestionViewer {
        match caller.scope.caller() {
            _ if caller.rights.approve => QuestionViewer::All,
            Some(name) => QuestionViewer::Own(sanitize::name(&self.0.config().0, name)),
            None => QuestionViewer::Nobody,
        }
    }

    pub(crate) fn subscribe(&self, caller: &Caller) -> QuestionSubscription {
        let viewer = self.viewer(caller);
        let events = self.0.events.subscribe();
        let number = self.0.last_id.fetch_add(1, Ordering::Relaxed);
        self.0
            .viewers
            .send_modify(|viewers| viewers.push((number, viewer.clone())));
        QuestionSubscription {
            queue: Arc::clone(&self.0),
            number,
            viewer,
            events,
        }
    }

    /// The open questions, the oldest first.
    pub(crate) fn open(&self, viewer: &QuestionViewer) -> Vec<ServerQuestion> {
        let open = self.0.open.lock();
        let shown = open.values().map(|open| &*open.shown);
        let mut shown: Vec<ServerQuestion> = shown
            .filter(|question| viewer.sees(question))
            .cloned()
            .collect();
        drop(open);
        shown.sort_by(|a, b| a.asked_at.cmp(&b.asked_at));
        shown
    }

    /// Accepts with these values. A form that isn't filled in correctly stays open.
    pub(crate) fn accept(
        &self,
        id: &str,
        content: Map<String, Value>,
        caller: &Caller,
    ) -> Result<(), AnswerError> {
        let viewer = self.viewer(caller);
        let asked = {
            let open = self.0.open.lock();
            let question = open.get(id).filter(|open| viewer.sees(&open.shown));
            question.ok_or(AnswerError::Gone)?.asked.clone()
        };
        let content = match asked.url {
            Some(_) => Map::new(),
            None => asked.check(content).map_err(AnswerError::Invalid)?,
        };
        self.settle(id, ElicitationAnswer::Accept(content), caller)
    }

    /// Passes the answer on.
    pub(crate) fn settle(
        &self,
        id: &str,
        answer: ElicitationAnswer,
        caller: &Caller,
    ) -> Result<(), AnswerError> {
        let viewer = self.viewer(caller);
        let mut open = self.0.open.lock();
        let is_shown = open.get(id).is_some_and(|open| viewer.sees(&open.shown));
        let question = is_shown.then(|| open.remove(id)).flatten();
        let question = question.ok_or(AnswerError::Gone)?;
        drop(open);
        // What was filled in is nobody else's business.
        info!(
            server = %toolgate_core::escape(&question.shown.server),
            call = %question.shown.call,
            by = %toolgate_core::escape(caller.scope.caller().unwrap_or_default()),
            action = %word(&answer),
            "a server's question was answered"
        );
        question.answer.send(answer).map_err(|_| AnswerError::Gone)
    }
}

impl Elicitor for DashboardQuestions {
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async move {
            match self.0.ask(question).await {
                Ok(answer) => answer,
                Err(reason) => {
                    self.0.log_declined(&question.server, reason);
                    ElicitationAnswer::Decline
                }
            }
        })
    }
}

impl QuestionQueue {
    /// Fails with the reason if nobody could be asked.
    async fn ask(self: &Arc<Self>, asked: &Elicitation) -> Result<ElicitationAnswer, &'static str> {
        let Some(call) = &asked.call else {
            return Err("nobody knows during whose call it was asked");
        };
        if asked.check_form().is_err() {
            return Err("its form or its page can't be shown");
        }
        let (redactor, timeout) = self.config();
        let shown = Arc::new(self.shown(asked, call, redactor, *timeout));
        let has_viewer = self.has_viewer(&shown);
        let notifier = self.notifier.get();
        if !has_viewer && notifier.is_none() {
            return Err("nobody can answer");
        }
        if !self.count(call.id) {
            return Err("the call has asked too many questions");
        }
        let (_waiting, answer) = self.enqueue(asked, &shown)?;
        let nobody_left = self.wait_until_unreachable(&shown, has_viewer, notifier);
        tokio::select! {
            answer = tokio::time::timeout(*timeout, answer) => {
                Ok(answer.ok().and_then(Result::ok).unwrap_or(ElicitationAnswer::Cancel))
            }
            () = nobody_left => Ok(ElicitationAnswer::Cancel),
        }
    }

    fn enqueue(
        self: &Arc<Self>,
        asked: &Elicitation,
        shown: &Arc<ServerQuestion>,
    ) -> Result<(PendingQuestion, oneshot::Receiver<ElicitationAnswer>), &'static str> {
        let (answer, answered) = oneshot::channel();
        {
            let mut open = self.open.lock();
            let of_caller = open
                .values()
                .filter(|open| open.shown.caller == shown.caller);
            let of_server = open
                .values()
                .filter(|open| open.shown.server == shown.server);
            let of_one = of_caller.count().max(of_server.count());
            if open.len() >= MAX_QUESTIONS || of_one >= MAX_OF_ONE {
                return Err("too many questions wait for an answer");
            }
            let question = OpenQuestion {
                shown: Arc::clone(shown),
                asked: asked.clone(),
                answer,
            };
            open.insert(shown.id.clone(), question);
        }
        let waiting = PendingQuestion {
            queue: Arc::clone(self),
            shown: Arc::clone(shown),
        };
        drop(self.events.send(QuestionEvent::Asked(Arc::clone(shown))));
        Ok((waiting, answered))
    }

    /// Counts a question of this call. False if it has asked too many.
    fn count(&self, call: CallId) -> bool {
        let mut asked = self.asked.lock();
        if let Some((_, count)) = asked.iter_mut().find(|(id, _)| *id == call) {
            *count += 1;
            return *count <= MAX_OF_CALL;
        }
        if asked.len() >= COUNTED_CALLS {
            asked.pop_front();
        }
        asked.push_back((call, 1));
        true
    }

    fn log_declined(&self, server: &str, reason: &str) {
        let mut logged = self.logged.lock();
        if logged.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
            *logged = Some(Instant::now());
            let server = toolgate_core::escape(server);
            info!(%server, %reason, "a server's question was declined");
        }
    }

    fn shown(
        &self,
        asked: &Elicitation,
        call: &RequestingCall,
        redactor: &Redactor,
        timeout: Duration,
    ) -> ServerQuestion {
        let now = SystemTime::now();
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        // Written as a browser would, so that the host is shown as what is opened.
        let url = asked
            .url
            .as_deref()
            .map(|url| Url::parse(url).map_or(url.to_owned(), String::from));
        ServerQuestion {
            id: id.to_string(),
            server: asked.server.clone(),
            message: truncate(&redactor.text(&asked.message), MAX_MESSAGE),
            schema: url.is_none().then(|| asked.schema.clone()),
            url,
            call: call.id.to_string(),
            tool: call.tool.clone(),
            origin: call.origin.to_string(),
            caller: call
                .caller
                .as_deref()
                .map(|name| sanitize::name(redactor, name)),
            asked_at: timestamp(now),
            expires_at: timestamp(now + timeout),
        }
    }

    fn config(&self) -> &(Redactor, Duration) {
        let default = || (Redactor::default(), Duration::from_secs(120));
        self.config.get_or_init(default)
    }

    fn has_viewer(&self, question: &ServerQuestion) -> bool {
        let viewers = self.viewers.borrow();
        viewers.iter().any(|(_, viewer)| viewer.sees(question))
    }

    /// Ends once nobody can answer any more: no dashboard is open, and no notification arrived.
    async fn wait_until_unreachable(
        &self,
        question: &ServerQuestion,
        has_viewer: bool,
        notifier: Option<&Arc<Notifier>>,
    ) {
        let Some(notifier) = notifier else {
            return self.wait_until_abandoned(question).await;
        };
        if has_viewer {
            let abandoned = self.wait_until_abandoned(question);
            drop(tokio::time::timeout(DASHBOARD_FIRST, abandoned).await);
        }
        if notifier.notify(&self.notification(question)).await {
            std::future::pending::<()>().await;
        }
        self.wait_until_abandoned(question).await;
    }

    fn notification(&self, question: &ServerQuestion) -> Notification {
        let redactor = &self.config().0;
        let (server, tool) = (&question.server, &question.tool);
        Notification {
            event: "question",
            id: question.id.clone(),
            text: redactor.line(
                &format!("The server '{server}' asks something during a call of '{tool}'."),
                500,
            ),
            tool: sanitize::name(redactor, tool),
            server: Some(sanitize::name(redactor, server)),
            origin: question.origin.clone(),
            caller: question.caller.clone(),
            arguments: None,
            question: Some(redactor.line(&question.message, 500)),
            asked_at: question.asked_at.clone(),
            expires_at: question.expires_at.clone(),
            link: self.link.get().cloned().unwrap_or_default(),
        }
    }

    async fn wait_until_abandoned(&self, question: &ServerQuestion) {
        let mut viewers = self.viewers.subscribe();
        let is_watched = |viewers: &Vec<(u64, QuestionViewer)>| {
            viewers.iter().any(|(_, viewer)| viewer.sees(question))
        };
        loop {
            // `self` holds the sender, so neither wait can end because it was dropped.
            drop(viewers.wait_for(|viewers| !is_watched(viewers)).await);
            let back = viewers.wait_for(is_watched);
            if tokio::time::timeout(RELOAD_GRACE, back).await.is_err() {
                return;
            }
        }
    }
}

/// Withdraws the question on drop, when its call no longer waits.
struct PendingQuestion {
    queue: Arc<QuestionQueue>,
    shown: Arc<ServerQuestion>,
}

impl Drop for PendingQuestion {
    fn drop(&mut self) {
        self.queue.open.lock().remove(&self.shown.id);
        let gone = QuestionEvent::Gone(Arc::clone(&self.shown));
        drop(self.queue.events.send(gone));
    }
}

impl Drop for QuestionSubscription {
    fn drop(&mut self) {
        let number = self.number;
        let viewers = &self.queue.viewers;
        viewers.send_modify(|viewers| viewers.retain(|(other, _)| *other != number));
    }
}

fn word(answer: &ElicitationAnswer) -> &'static str {
    match answer {
        ElicitationAnswer::Accept(_) => "accept",
        ElicitationAnswer::Decline => "decline",
        ElicitationAnswer::Cancel => "cancel",
    }
}
