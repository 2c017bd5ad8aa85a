//! Runs the call behind a task after its request was answered.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::join;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_core::text::truncate;
use toolgate_core::{Origin, TaskRecord, TaskStore, ToolError, ToolOutcome};
use tracing::{Instrument, info};

use super::task::ClientTask;
use super::task_end::{TaskEnd, TaskStatus};
use super::task_key;
use crate::server::methods::{COMPLETE, RequestContext, RequestLifecycle, SERVER_INFO};
use crate::server::questions::{AskingCall, CallStage};
use crate::server::service::McpService;
use crate::server::suspended::random_key;

const MAX_MESSAGE_BYTES: usize = 1000;

/// What a call needs to become a task.
pub(in crate::server) struct TaskOffer {
    /// How long its client waits for the result first.
    pub(in crate::server) after: Duration,
    pub(in crate::server) keep: Duration,
    pub(in crate::server) tool: String,
    /// The tool's name as the client knows it.
    pub(in crate::server) requested: String,
    pub(in crate::server) arguments: Value,
}

/// A task whose client doesn't know it yet.
pub(in crate::server) struct StartedTask {
    pub(super) id: String,
    pub(super) task: Arc<ClientTask>,
}

/// Where tasks run.
#[derive(Clone)]
pub(in crate::server) struct TaskScope {
    // Cancelled when no more requests are accepted.
    pub(in crate::server) ending: CancellationToken,
    // Cancelled when calls must end.
    pub(in crate::server) shutdown: CancellationToken,
    // A shutdown waits for these, so that every call goes on record.
    pub(in crate::server) tracker: TaskTracker,
}

impl TaskScope {
    pub(super) fn of(context: &RequestContext<'_>) -> Self {
        Self {
            ending: context.ending.clone(),
            shutdown: context.shutdown.clone(),
            tracker: context.tasks.clone(),
        }
    }
}

impl McpService {
    /// Hands a running call over to a task. Gives it back if there are too many tasks.
    pub(in crate::server) async fn start_task(
        self: &Arc<Self>,
        call: AskingCall,
        offer: &TaskOffer,
        context: &RequestContext<'_>,
    ) -> Result<StartedTask, Box<AskingCall>> {
        let Some(id) = random_key() else {
            return Err(Box::new(call));
        };
        let key = task_key(&id);
        let is_modern = context.lifecycle.is_modern();
        let record = TaskRecord {
            call: call.id,
            key: Some(key.clone()),
            owner: self.task_owner(context.owner),
            caller: self.scope.caller().map(str::to_owned),
            origin: Origin::Mcp,
            tool: offer.tool.clone(),
            arguments: offer.arguments.clone(),
            client: json!({
                "modern": is_modern,
                "requested": offer.requested,
                "capabilities": *call.capabilities,
            }),
            remote: None,
            created: SystemTime::now(),
            keep: offer.keep,
            outcome: None,
        };
        let task = Arc::new(ClientTask::new(record, call.stop.clone()));
        if !self.shared.tasks.add(key, Arc::clone(&task)) {
            return Err(Box::new(call));
        }
        info!(call = %call.id, tool = %offer.tool, "a call goes on as a task");
        let created = self.run_task(call, &task, TaskScope::of(context));
        // The client must find its task at once, and after a restart.
        drop(created.await);
        Ok(StartedTask { id, task })
    }

    /// Runs the call to its end. The receiver learns when the task is kept.
    pub(super) fn run_task(
        self: &Arc<Self>,
        call: AskingCall,
        task: &Arc<ClientTask>,
        scope: TaskScope,
    ) -> oneshot::Receiver<()> {
        call.task_handle.become_task();
        // Nobody takes log messages of a task.
        call.reports.set_log_level(None);
        let (kept, created) = oneshot::channel();
        let (service, task) = (Arc::clone(self), Arc::clone(task));
        let store = self.shared.tasks.store().cloned();
        let tracker = scope.tracker.clone();
        let mut runner = TaskRunner {
            task: Arc::clone(&task),
            call,
            scope,
            limit: self.executor.rules().limits.approval_timeout,
            store: store.clone(),
        };
        let work = async move {
            let keeping = async {
                if let Some(store) = &store {
                    store.save(task.to_record()).await;
                }
                let _client_is_gone = kept.send(());
            };
            let (end, ()) = join(runner.run(), keeping).await;
            match end {
                CallEnd::Outcome(outcome) => service.finish_task(&task, *outcome).await,
                CallEnd::CutOff => service.end_task(&task, TaskEnd::lost()).await,
                CallEnd::LeftToServer => {}
            }
        };
        tracker.spawn(work.in_current_span());
        created
    }

    async fn finish_task(&self, task: &Arc<ClientTask>, outcome: ToolOutcome) {
        let requested = task.record.client["requested"].as_str();
        let requested = requested.unwrap_or(&task.record.tool).to_owned();
        let was_cancelled = matches!(outcome.result, Err(ToolError::Cancelled { .. }));
        let problem = outcome.result.as_ref().err();
        let message = problem.map(|error| truncate(&error.to_string(), MAX_MESSAGE_BYTES));
        let lifecycle = match task.is_modern {
            true => RequestLifecycle::SelfContained { is_modern: true },
            false => RequestLifecycle::Session,
        };
        let end = match self.call_result(outcome, &requested, lifecycle) {
            Err(error) => TaskEnd::failed(error),
            Ok(result) => TaskEnd {
                status: match result.is_error() {
                    _ if was_cancelled => TaskStatus::Cancelled,
                    // In 2025-11-25 the status says that the tool failed.
                    true if !task.is_modern => TaskStatus::Failed,
                    _ => TaskStatus::Completed,
                },
                message,
                answer: Ok(json!(result)),
            },
        };
        self.end_task(task, end).await;
    }

    /// Cancels a task at once. Its call ends a little later.
    pub(in crate::server) async fn cancel_task(&self, task: &Arc<ClientTask>) {
        let text = "the task was cancelled";
        let mut result = json!({ "content": [{ "type": "text", "text": text }], "isError": true });
        if task.is_modern {
            result["resultType"] = json!(COMPLETE);
            result["_meta"] = json!({ SERVER_INFO: self.result_meta[SERVER_INFO] });
        }
        let end = TaskEnd {
            status: TaskStatus::Cancelled,
            message: Some(text.to_owned()),
            answer: Ok(result),
        };
        self.end_task(task, end).await;
        task.stop.cancel();
    }

    pub(super) async fn end_task(&self, task: &Arc<ClientTask>, end: TaskEnd) {
        if task.has_ended() {
            return;
        }
        let tasks = &self.shared.tasks;
        let end = tasks.reserve(task, end);
        if let Some(store) = tasks.store() {
            // First, so that a client that has seen the end finds it after a restart too.
            store.save(task.to_ended_record(&end)).await;
        }
        if task.finish(end) {
            let (call, tool) = (task.record.call, &task.record.tool);
            let status = task.status().0.as_str();
            info!(%call, %tool, %status, "a task has ended");
        }
    }
}

impl StartedTask {
    /// The result that tells the client of its task.
    pub(in crate::server) fn to_result(&self, service: &McpService) -> Value {
        let seed = Value::Object(self.task.to_seed(&self.id));
        match self.task.is_modern {
            false => json!({ "task": seed }),
            true => service.modern_result("task", seed),
        }
    }
}

struct TaskRunner {
    task: Arc<ClientTask>,
    call: AskingCall,
    scope: TaskScope,
    // How long a question may wait for its answer.
    limit: Duration,
    store: Option<Arc<dyn TaskStore>>,
}

enum CallEnd {
    Outcome(Box<ToolOutcome>),
    // The call was cancelled because we stop.
    CutOff,
    // The server of the call goes on with it while we stop, and so do we after a restart.
    LeftToServer,
}

impl TaskRunner {
    async fn run(&mut self) -> CallEnd {
        let reports = Arc::clone(&self.call.reports);
        let (ending, shutdown) = (self.scope.ending.clone(), self.scope.shutdown.clone());
        let (mut is_ending, mut is_cut_off, mut is_leaving) = (false, false, false);
        loop {
            let expiry = self.task.next_expiry();
            let expired = async {
                match expiry {
                    Some(expiry) => tokio::time::sleep_until(expiry).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                stage = self.call.proceed() => match stage {
                    CallStage::Finished(outcome) if is_leaving && outcome.result.is_err() => {
                        return CallEnd::LeftToServer;
                    }
                    CallStage::Finished(outcome) if is_cut_off && outcome.result.is_err() => {
                        return CallEnd::CutOff;
                    }
                    CallStage::Finished(outcome) => return CallEnd::Outcome(Box::new(outcome)),
                    CallStage::Asks(round) => self.task.ask(round, self.limit),
                },
                () = reports.changed() => {
                    if let Some(progress) = reports.take_last_progress() {
                        self.task.report(progress);
                    }
                }
                () = expired => self.task.expire_questions(),
                () = ending.cancelled(), if !is_ending => is_ending = true,
                () = shutdown.cancelled(), if !is_cut_off => {
                    (is_ending, is_cut_off) = (true, true);
                }
            }
            // The server may announce its task even now.
            if is_ending && !is_leaving && self.goes_on_elsewhere() {
                if !self.call.has_begun() {
                    return CallEnd::LeftToServer;
                }
                is_leaving = true;
                self.call.task_handle.request_leave();
            }
            // Last, because a call that is cancelled isn't left to its server.
            if is_cut_off {
                self.call.stop.cancel();
            }
        }
    }

    fn goes_on_elsewhere(&self) -> bool {
        let store = self.store.as_ref();
        let remote = store.and_then(|store| store.remote_task(self.task.record.call));
        remote.is_some() && !self.task.has_ended()
    }
}
