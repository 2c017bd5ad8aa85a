//! The questions that wait, and how long they do.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use reqwest::Url;
use tokio::sync::{broadcast, oneshot, watch};
use tokio::time::Instant;
use toolgate_core::text::truncate;
use toolgate_core::{CallId, Redactor, sanitize};
use toolgate_mcp::{Elicitation, ElicitationAnswer, RequestingCall};
use tracing::info;

use super::{QuestionEvent, QuestionViewer, ServerQuestion};
use crate::approvals::timestamp;
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

pub(super) struct QuestionQueue {
    pub(super) open: Mutex<BTreeMap<String, OpenQuestion>>,
    pub(super) asked: Mutex<VecDeque<(CallId, usize)>>,
    pub(super) last_id: AtomicU64,
    // When a declined question was last logged.
    pub(super) logged: Mutex<Option<Instant>>,
    pub(super) events: broadcast::Sender<QuestionEvent>,
    // Who has the dashboard open.
    pub(super) viewers: watch::Sender<Vec<(u64, QuestionViewer)>>,
    pub(super) config: OnceLock<(Redactor, Duration)>,
    pub(super) notifier: OnceLock<Arc<Notifier>>,
    pub(super) link: OnceLock<String>,
}

pub(super) struct OpenQuestion {
    pub(super) shown: Arc<ServerQuestion>,
    pub(super) asked: Elicitation,
    pub(super) answer: oneshot::Sender<ElicitationAnswer>,
}

impl Default for QuestionQueue {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            asked: Mutex::default(),
            last_id: AtomicU64::new(0),
            logged: Mutex::default(),
            events: broadcast::Sender::new(EVENT_CAPACITY),
            viewers: watch::Sender::new(Vec::new()),
            config: OnceLock::new(),
            notifier: OnceLock::new(),
            link: OnceLock::new(),
        }
    }
}

impl QuestionQueue {
    /// Fails with the reason if nobody could be asked.
    pub(super) async fn ask(
        self: &Arc<Self>,
        asked: &Elicitation,
    ) -> Result<ElicitationAnswer, &'static str> {
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

    pub(super) fn log_declined(&self, server: &str, reason: &str) {
        let mut logged = self.logged.lock();
        if logged.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
            *logged = Some(Instant::now());
            let server = toolgate_core::text::escape(server);
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

    pub(super) fn config(&self) -> &(Redactor, Duration) {
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
