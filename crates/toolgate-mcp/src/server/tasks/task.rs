//! [`ClientTask`]: one call that became a task, from the moment its client was told so.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_core::text::truncate;
use toolgate_core::{CallId, Progress, Question, QuestionError, TaskRecord};

use super::task_end::{TaskEnd, TaskStatus};
use crate::server::questions::{Answers, QuestionRound};
use crate::server::suspended::random_key;

const MAX_MESSAGE_BYTES: usize = 1000;

pub(in crate::server) struct ClientTask {
    pub(super) record: TaskRecord,
    pub(super) is_modern: bool,
    // Another process runs the call.
    pub(super) is_elsewhere: bool,
    // Stops the call.
    pub(super) stop: CancellationToken,
    started: Instant,
    // How old it was when this process took it over.
    age: Duration,
    state: Mutex<TaskProgress>,
    changes: watch::Sender<()>,
}

struct TaskProgress {
    updated: SystemTime,
    message: Option<String>,
    progress: Option<Progress>,
    rounds: Vec<OpenRound>,
    // How old the task was when it ended, and how it did.
    end: Option<(Duration, TaskEnd)>,
}

/// Questions that wait for answers. Each has a key that is never used again.
struct OpenRound {
    questions: Vec<OpenQuestion>,
    reply: tokio::sync::oneshot::Sender<Answers>,
    expires: Instant,
}

struct OpenQuestion {
    key: String,
    question: Question,
    answer: Option<Value>,
    // A client with a session is being asked.
    is_asked: bool,
}

/// A task of an MCP client, as shown on the dashboard.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TaskSummary {
    /// The id of the call. The task's own id is a secret of its client.
    pub call: CallId,
    pub tool: String,
    /// The caller's name, where callers are told apart.
    pub caller: Option<String>,
    /// `working`, or `input_required` while its client has to answer a question.
    pub status: &'static str,
    pub message: Option<String>,
    pub done: Option<f64>,
    pub total: Option<f64>,
    pub created: SystemTime,
    pub updated: SystemTime,
}

impl ClientTask {
    /// A task that runs, or that has ended if the record says so.
    pub(super) fn new(mut record: TaskRecord, stop: CancellationToken) -> Self {
        let age = |time: SystemTime| time.duration_since(record.created).unwrap_or_default();
        let end = record.outcome.take();
        let end = end.map(|(ended, outcome)| (age(ended), TaskEnd::from_value(outcome)));
        Self {
            is_modern: record.client["modern"] == true,
            is_elsewhere: false,
            stop,
            started: Instant::now(),
            age: age(SystemTime::now()),
            state: Mutex::new(TaskProgress {
                updated: SystemTime::now(),
                message: None,
                progress: None,
                rounds: Vec::new(),
                end,
            }),
            changes: watch::Sender::new(()),
            record,
        }
    }

    /// A task that another process runs.
    pub(super) fn elsewhere(record: TaskRecord) -> Self {
        Self {
            is_elsewhere: true,
            ..Self::new(record, CancellationToken::new())
        }
    }

    pub(super) fn watch(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// What is kept of the task while it runs.
    pub(super) fn to_record(&self) -> TaskRecord {
        match self.end() {
            Some(end) => self.to_ended_record(&end),
            None => self.record.clone(),
        }
    }

    pub(super) fn to_ended_record(&self, end: &TaskEnd) -> TaskRecord {
        let mut record = self.record.clone();
        record.arguments = Value::Null; // They were kept only to continue the call.
        let ended = self.record.created + self.age();
        record.outcome = Some((ended, end.to_value()));
        record
    }

    fn age(&self) -> Duration {
        self.age + self.started.elapsed()
    }

    /// How long the task is known, from its creation. Grows while the call runs, so that there is
    /// always time to fetch the result.
    pub(super) fn ttl(&self) -> Duration {
        let keep = self.record.keep.max(Duration::from_millis(1));
        match &self.state.lock().end {
            Some((ended, _)) => *ended + keep,
            None => {
                let periods = self.age().as_millis() / keep.as_millis().max(1) + 1;
                keep.saturating_mul(u32::try_from(periods).unwrap_or(u32::MAX))
            }
        }
    }

    pub(super) fn is_expired(&self) -> bool {
        self.has_ended() && self.age() > self.ttl()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state.lock().end.is_some()
    }

    pub(super) fn end(&self) -> Option<TaskEnd> {
        self.state.lock().end.as_ref().map(|(_, end)| end.clone())
    }

    pub(super) fn poll_interval(&self) -> Duration {
        match self.age() < Duration::from_secs(60) {
            true => Duration::from_secs(1),
            false => Duration::from_secs(5),
        }
    }

    pub(super) fn status(&self) -> (TaskStatus, Option<String>, SystemTime) {
        let mut state = self.state.lock();
        state.drop_closed_rounds();
        let (status, message) = match &state.end {
            Some((_, end)) => (end.status, end.message.clone()),
            None if state.rounds.is_empty() => (TaskStatus::Working, state.message.clone()),
            None => (TaskStatus::InputRequired, state.message.clone()),
        };
        (status, message, state.updated)
    }

    pub(super) fn summary(&self) -> TaskSummary {
        let (status, message, updated) = self.status();
        let progress = self.state.lock().progress.clone();
        let finite = |number: f64| number.is_finite().then_some(number);
        TaskSummary {
            call: self.record.call,
            tool: self.record.tool.clone(),
            caller: self.record.caller.clone(),
            status: status.as_str(),
            message,
            done: progress.as_ref().and_then(|progress| finite(progress.done)),
            total: progress.and_then(|progress| progress.total.and_then(finite)),
            created: self.record.created,
            updated,
        }
    }

    pub(super) fn progress(&self) -> Option<Progress> {
        self.state.lock().progress.clone()
    }

    pub(super) fn report(&self, progress: Progress) {
        self.update(|state| {
            let text = progress_text(&progress);
            state.message = text.or_else(|| state.message.take());
            state.progress = Some(progress);
        });
    }

    /// Ends the task, unless it has ended before.
    pub(super) fn finish(&self, end: TaskEnd) -> bool {
        let age = self.age();
        let mut is_first = false;
        self.update(|state| {
            if state.end.is_none() {
                is_first = true;
                state.rounds.clear();
                state.end = Some((age, end));
            }
        });
        is_first
    }

    fn update(&self, change: impl FnOnce(&mut TaskProgress)) {
        let mut state = self.state.lock();
        change(&mut state);
        state.updated = SystemTime::now();
        drop(state);
        self.changes.send_replace(());
    }

    /// Keeps questions until they are answered, or until `limit` is over.
    pub(super) fn ask(&self, round: QuestionRound, limit: Duration) {
        let mut questions = Vec::new();
        for question in round.questions {
            let Some(key) = random_key() else { return };
            questions.push(OpenQuestion {
                key,
                question,
                answer: None,
                is_asked: false,
            });
        }
        let expires = Instant::now() + limit;
        self.update(|state| {
            state.rounds.push(OpenRound {
                questions,
                reply: round.answers,
                expires,
            });
        });
    }

    /// When the next question is given up.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let state = self.state.lock();
        state.rounds.iter().map(|round| round.expires).min()
    }

    pub(super) fn expire_questions(&self) {
        let now = Instant::now();
        self.update(|state| {
            for round in std::mem::take(&mut state.rounds) {
                match round.expires <= now {
                    true => drop(round.reply.send(Err(QuestionError::TimedOut))),
                    false => state.rounds.push(round),
                }
            }
        });
    }

    /// The questions without an answer, by key.
    pub(super) fn open_questions(&self) -> Vec<(String, Question)> {
        let mut state = self.state.lock();
        state.drop_closed_rounds();
        let open = state.open();
        open.map(|one| (one.key.clone(), one.question.clone()))
            .collect()
    }

    /// Takes answers. Those without an open question, or of the wrong form, are ignored.
    pub(super) fn answer(&self, mut answers: Map<String, Value>) {
        self.update(|state| {
            for open in state.open() {
                let accepts = |answer: &Value| open.question.accepts(answer);
                open.answer = answers.remove(&open.key).filter(accepts);
            }
            state.send_complete_rounds();
        });
    }

    /// The questions that no client with a session is being asked. They count as asked now.
    pub(super) fn take_unasked(&self) -> Vec<(String, Question)> {
        let mut state = self.state.lock();
        let unasked = state.open().filter(|open| !open.is_asked);
        unasked
            .map(|open| {
                open.is_asked = true;
                (open.key.clone(), open.question.clone())
            })
            .collect()
    }

    /// The client was asked, and this is what it said; `None` if it has to be asked again.
    pub(super) fn resolve(&self, key: &str, answer: Option<Result<Value, QuestionError>>) {
        let has_question = |round: &OpenRound| round.questions.iter().any(|open| open.key == key);
        self.update(|state| match answer {
            Some(Err(error)) => {
                if let Some(at) = state.rounds.iter().position(has_question) {
                    drop(state.rounds.remove(at).reply.send(Err(error)));
                }
            }
            answer => {
                if let Some(open) = state.open().find(|open| open.key == key) {
                    open.is_asked = false;
                    open.answer = answer.and_then(Result::ok);
                }
                state.send_complete_rounds();
            }
        });
    }
}

impl TaskProgress {
    fn open(&mut self) -> impl Iterator<Item = &mut OpenQuestion> {
        let all = self.rounds.iter_mut();
        all.flat_map(|round| &mut round.questions)
            .filter(|open| open.answer.is_none())
    }

    /// Forgets questions that nobody wants an answer to any more.
    fn drop_closed_rounds(&mut self) {
        self.rounds.retain(|round| !round.reply.is_closed());
    }

    fn send_complete_rounds(&mut self) {
        for round in std::mem::take(&mut self.rounds) {
            if round.questions.iter().any(|open| open.answer.is_none()) {
                self.rounds.push(round);
                continue;
            }
            let answers = round.questions.into_iter();
            let answers = answers.filter_map(|open| open.answer).collect();
            drop(round.reply.send(Ok(answers)));
        }
    }
}

fn progress_text(progress: &Progress) -> Option<String> {
    if let Some(message) = &progress.message {
        return Some(truncate(message, MAX_MESSAGE_BYTES));
    }
    let done = progress.done;
    match progress.total {
        _ if !done.is_finite() => None,
        Some(total) if total.is_finite() => Some(format!("{done} of {total}")),
        _ => Some(format!("{done}")),
    }
}

/// Lets a question be asked again when the request that asks it ends early.
pub(super) struct AskAgainOnDrop<'a> {
    pub(super) task: &'a Arc<ClientTask>,
    pub(super) key: String,
}

impl Drop for AskAgainOnDrop<'_> {
    fn drop(&mut self) {
        self.task.resolve(&self.key, None);
    }
}
