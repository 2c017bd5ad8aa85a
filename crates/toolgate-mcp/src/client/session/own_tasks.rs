//! [`OwnTasks`]: questions of a server of 2025-11-25 that it wants to be answered as tasks. The server
//! gets a task at once, and asks for the answer until it is there.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_core::sanitize;

use super::ClientSession;
use crate::client::message::RpcError;
use crate::era::LEGACY;
use crate::server::random_key;
use crate::task_fields::{RELATED_TASK, timestamp};

// Tasks that are kept for one server. Beyond that, the oldest one that has ended is forgotten.
const MAX_TASKS: usize = 64;
// Requests about tasks that may be unanswered, most of them for results that aren't there yet.
const MAX_REQUESTS: usize = 2 * MAX_TASKS;
// Bounds on how long a server wants a task to be kept.
const MIN_TTL: Duration = Duration::from_secs(60);
const MAX_TTL: Duration = Duration::from_secs(3600);
// How long an answer is kept at least.
const MIN_KEPT: Duration = Duration::from_secs(60);
const POLL_INTERVAL_MS: u64 = 1000;
// Bytes of all answers that are kept.
const MAX_BYTES: u64 = 16 << 20;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;

type QuestionAnswer = Result<Value, RpcError>;

pub(super) struct OwnTasks {
    tasks: Mutex<Vec<Arc<OwnTask>>>,
    // Permits for requests about tasks.
    pub(super) requests: Arc<Semaphore>,
}

impl Default for OwnTasks {
    fn default() -> Self {
        Self {
            tasks: Mutex::default(),
            requests: Arc::new(Semaphore::new(MAX_REQUESTS)),
        }
    }
}

/// A question that is being answered, or was.
struct OwnTask {
    id: String,
    method: String,
    created: SystemTime,
    started: Instant,
    ttl: Duration,
    end: watch::Sender<Option<OwnTaskEnd>>,
    stop: CancellationToken,
}

#[derive(Clone)]
struct OwnTaskEnd {
    status: &'static str,
    answer: QuestionAnswer,
    bytes: u64,
    at: (SystemTime, Instant),
}

impl OwnTaskEnd {
    fn new(status: &'static str, answer: QuestionAnswer) -> Self {
        Self {
            status,
            bytes: answer.as_ref().map_or(0, sanitize::length),
            answer,
            at: (SystemTime::now(), Instant::now()),
        }
    }
}

impl OwnTask {
    fn new(id: String, method: &str, wanted: &Value) -> Self {
        let ttl = wanted["ttl"].as_f64().map(|ms| ms / 1000.0);
        let ttl = ttl.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Self {
            id,
            method: method.to_owned(),
            created: SystemTime::now(),
            started: Instant::now(),
            ttl: ttl.unwrap_or(MAX_TTL).clamp(MIN_TTL, MAX_TTL),
            end: watch::Sender::new(None),
            stop: CancellationToken::new(),
        }
    }

    fn to_value(&self) -> Value {
        let end = self.end.borrow();
        let (status, updated) = match &*end {
            Some(end) => (end.status, end.at.0),
            None => ("working", self.created),
        };
        json!({
            "taskId": self.id,
            "status": status,
            "createdAt": timestamp(self.created),
            "lastUpdatedAt": timestamp(updated),
            "ttl": u64::try_from(self.ttl.as_millis()).unwrap_or_default(),
            "pollInterval": POLL_INTERVAL_MS,
        })
    }

    /// Ends the task, unless it has ended before.
    fn finish(&self, end: OwnTaskEnd) -> bool {
        self.end.send_if_modified(|state| {
            let is_first = state.is_none();
            if is_first {
                *state = Some(end);
            }
            is_first
        })
    }

    fn has_ended(&self) -> bool {
        self.end.borrow().is_some()
    }

    fn bytes(&self) -> u64 {
        self.end.borrow().as_ref().map_or(0, |end| end.bytes)
    }

    fn is_expired(&self) -> bool {
        let kept = self.end.borrow().as_ref().map(|end| end.at.1.elapsed());
        kept.is_some_and(|kept| kept > MIN_KEPT && self.started.elapsed() > self.ttl)
    }

    /// Waits for the answer that the request itself would have got.
    async fn result(&self) -> QuestionAnswer {
        let mut ended = self.end.subscribe();
        let end = match ended.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(end)) => end.answer.clone(),
            _ => return Err(unknown_task_error()),
        };
        let mut result = end?;
        if let Some(meta) = result.as_object_mut() {
            let related = json!({ "taskId": self.id });
            match meta.get_mut("_meta") {
                Some(Value::Object(meta)) => drop(meta.insert(RELATED_TASK.to_owned(), related)),
                _ => drop(meta.insert("_meta".to_owned(), json!({ RELATED_TASK: related }))),
            }
        }
        Ok(result)
    }

    fn cancel(&self) -> Result<Value, RpcError> {
        // What a person who doesn't decide answers; other requests have no such answer.
        let answer = match &*self.method {
            "elicitation/create" => Ok(json!({ "action": "cancel" })),
            _ => Err(RpcError::new(INTERNAL_ERROR, "the task was cancelled")),
        };
        if !self.finish(OwnTaskEnd::new("cancelled", answer)) {
            return Err(RpcError::new(INVALID_PARAMS, "the task has ended"));
        }
        self.stop.cancel();
        Ok(self.to_value())
    }
}

impl OwnTasks {
    /// Fails if too many tasks run.
    fn create(&self, method: &str, wanted: &Value) -> Option<Arc<OwnTask>> {
        let task = Arc::new(OwnTask::new(random_key()?, method, wanted));
        let mut tasks = self.tasks.lock();
        tasks.retain(|task| !task.is_expired());
        if tasks.len() >= MAX_TASKS {
            let oldest = tasks.iter().position(|task| task.has_ended())?;
            tasks.remove(oldest);
        }
        tasks.push(Arc::clone(&task));
        Some(task)
    }

    fn find(&self, params: &Value) -> Result<Arc<OwnTask>, RpcError> {
        let id = params["taskId"].as_str();
        let mut tasks = self.tasks.lock();
        tasks.retain(|task| !task.is_expired());
        let found = tasks.iter().find(|task| Some(&*task.id) == id);
        found.map(Arc::clone).ok_or_else(unknown_task_error)
    }

    fn list(&self, params: &Value) -> Result<Value, RpcError> {
        if !params["cursor"].is_null() {
            let text = "unknown cursor: the whole list is on one page";
            return Err(RpcError::new(INVALID_PARAMS, text));
        }
        let mut tasks = self.tasks.lock();
        tasks.retain(|task| !task.is_expired());
        let tasks: Vec<Value> = tasks.iter().map(|task| task.to_value()).collect();
        Ok(json!({ "tasks": tasks }))
    }

    /// Keeps an answer, and forgets the oldest ones if all together take too much.
    fn finish(&self, task: &Arc<OwnTask>, answer: QuestionAnswer) {
        let status = match answer {
            Ok(_) => "completed",
            Err(_) => "failed",
        };
        let mut end = OwnTaskEnd::new(status, answer);
        if end.bytes > MAX_BYTES {
            let error = RpcError::new(INTERNAL_ERROR, "the answer is too large to be kept");
            end = OwnTaskEnd::new("failed", Err(error));
        }
        task.finish(end);
        let mut tasks = self.tasks.lock();
        let mut bytes: u64 = tasks.iter().map(|task| task.bytes()).sum();
        tasks.retain(|kept| {
            let is_too_much = bytes > MAX_BYTES && kept.has_ended() && !Arc::ptr_eq(kept, task);
            if is_too_much {
                bytes -= kept.bytes();
            }
            !is_too_much
        });
    }
}

impl ClientSession {
    /// True if a request of the server is about a task here, or is to become one.
    pub(super) fn is_about_own_task(&self, method: &str, params: &Value) -> bool {
        let is_legacy = || self.revision.get().is_some_and(|it| **it == *LEGACY);
        match method {
            "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/list" => is_legacy(),
            "elicitation/create" | "sampling/createMessage" => {
                params["task"].is_object() && is_legacy() && self.offers_task(method)
            }
            _ => false,
        }
    }

    fn offers_task(&self, method: &str) -> bool {
        let (kind, name) = method.split_once('/').unwrap_or_default();
        let offered = self.questions.capabilities(&self.server);
        offered["tasks"]["requests"][kind][name].is_object()
    }

    pub(super) async fn answer_about_own_task(
        self: &Arc<Self>,
        method: String,
        params: Value,
        on_stream_of: Option<u64>,
    ) -> QuestionAnswer {
        let tasks = &self.own_tasks;
        match &*method {
            "tasks/list" => tasks.list(&params),
            "tasks/get" => Ok(tasks.find(&params)?.to_value()),
            "tasks/cancel" => tasks.find(&params)?.cancel(),
            "tasks/result" => {
                let task = tasks.find(&params)?;
                task.result().await
            }
            _ => self.start_own_task(method, params, on_stream_of),
        }
    }

    /// Answers the question in the background. Its call's clock stops meanwhile, as for any other.
    fn start_own_task(
        self: &Arc<Self>,
        method: String,
        mut params: Value,
        on_stream_of: Option<u64>,
    ) -> QuestionAnswer {
        let too_many = || RpcError::new(INTERNAL_ERROR, "too many requests are open");
        let permit = Arc::clone(&self.open_questions).try_acquire_owned();
        let permit = permit.map_err(|_| too_many())?;
        // The task is between the server and us, not the client that answers.
        let wanted = params
            .as_object_mut()
            .and_then(|it| it.shift_remove("task"));
        let task = self.own_tasks.create(&method, &wanted.unwrap_or_default());
        let task = task.ok_or_else(too_many)?;
        let created = json!({ "task": task.to_value() });
        let session = Arc::clone(self);
        tokio::spawn(async move {
            tokio::select! {
                answer = session.answer_request(method, params, on_stream_of) => {
                    session.own_tasks.finish(&task, answer);
                }
                () = task.stop.cancelled() => {}
                _ = session.ended() => {}
            }
            drop(permit);
        });
        Ok(created)
    }
}

fn unknown_task_error() -> RpcError {
    RpcError::new(INVALID_PARAMS, "there is no such task; it may have expired")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_kept_within_a_limit_and_the_oldest_go_first() {
        let tasks = OwnTasks::default();
        let mut ids = Vec::new();
        for _ in 0..10 {
            let task = tasks.create("elicitation/create", &Value::Null).unwrap();
            tasks.finish(&task, Ok(json!({ "text": "x".repeat(3 << 20) })));
            ids.push(task.id.clone());
        }
        let known: Vec<bool> = ids.iter().map(|id| is_known(&tasks, id)).collect();
        assert_eq!(known, [[false; 5], [true; 5]].concat());
        let task = tasks.create("elicitation/create", &Value::Null).unwrap();
        tasks.finish(&task, Ok(json!("x".repeat(17 << 20))));
        assert_eq!(task.to_value()["status"], "failed");
        assert!(ids.iter().rev().take(5).all(|id| is_known(&tasks, id)));
    }

    fn is_known(tasks: &OwnTasks, id: &str) -> bool {
        tasks.find(&json!({ "taskId": id })).is_ok()
    }
}
