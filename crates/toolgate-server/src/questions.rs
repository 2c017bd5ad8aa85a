//! Puts questions of servers to the people who have the dashboard open.
//!
//! A question belongs to a call. It is shown to the one who made that call, by name, and to people
//! with the right to approve. Whoever answers first, answers for the call.

mod queue;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::broadcast;
use toolgate_core::{Redactor, sanitize};
use toolgate_mcp::{Elicitation, ElicitationAnswer, ElicitationError, ElicitationHandler};
use tracing::info;
use utoipa::ToSchema;

use self::queue::QuestionQueue;
use crate::guard::Caller;
use crate::notify::Notifier;

/// An [`ElicitationHandler`] that shows questions of servers to the people who have the dashboard
/// open. Clones share the open questions.
#[derive(Clone, Default)]
pub struct DashboardQuestions(Arc<QuestionQueue>);

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
            server = %toolgate_core::text::escape(&question.shown.server),
            call = %question.shown.call,
            by = %toolgate_core::text::escape(caller.scope.caller().unwrap_or_default()),
            action = %word(&answer),
            "a server's question was answered"
        );
        question.answer.send(answer).map_err(|_| AnswerError::Gone)
    }
}

impl ElicitationHandler for DashboardQuestions {
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
