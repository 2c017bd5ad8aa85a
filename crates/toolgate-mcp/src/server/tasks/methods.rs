//! Answers the methods that clients use for their tasks.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_core::TaskRecord;

use super::task::{AskAgainOnDrop, ClientTask};
use super::{EXTENSION, missing_capability, task_key};
use crate::server::client_message::RequestMeta;
use crate::server::jsonrpc::RequestError;
use crate::server::methods::{COMPLETE, MethodResult, RequestContext, SERVER_INFO};
use crate::server::service::McpService;
use crate::server::session_questions::AskedQuestions;
use crate::server::suspended::KEY_TEXT_LEN;
use crate::task_fields::RELATED_TASK;

impl McpService {
    /// Answers `tasks/get`, `tasks/update`, `tasks/cancel` and `tasks/result`.
    pub(in crate::server) async fn use_task(
        self: &Arc<Self>,
        method: &str,
        params: &Value,
        meta: &RequestMeta,
        context: &RequestContext<'_>,
    ) -> Result<MethodResult, RequestError> {
        if context.lifecycle.is_modern() && !meta.declares_tasks() {
            return Err(missing_capability());
        }
        let wrong = || RequestError::wrong_params(method);
        let id = params["taskId"].as_str().ok_or_else(wrong)?;
        let task = self.find_task(id, context).await?;
        let result = match method {
            "tasks/update" => {
                let answers = params["inputResponses"].as_object().ok_or_else(wrong)?;
                task.answer(answers.clone());
                Value::Object(Map::new())
            }
            "tasks/cancel" => self.cancel_for_client(id, &task).await?,
            "tasks/result" => return self.task_result(id, &task, context).await,
            _ => match task.is_modern {
                true => task.to_detailed(id).into(),
                false => task.to_seed(id).into(),
            },
        };
        Ok(MethodResult::Json(match task.is_modern {
            true => self.modern_result(COMPLETE, result),
            false => result,
        }))
    }

    /// Finds a task of this client. All others are unknown to it.
    pub(in crate::server) async fn find_task(
        self: &Arc<Self>,
        id: &str,
        context: &RequestContext<'_>,
    ) -> Result<Arc<ClientTask>, RequestError> {
        let unknown = || RequestError::invalid_params("there is no such task; it may have expired");
        if id.len() != KEY_TEXT_LEN {
            return Err(unknown());
        }
        let owner = self.task_owner(context.owner);
        let is_modern = context.lifecycle.is_modern();
        let is_theirs = |record: &TaskRecord| {
            record.owner == owner && (record.client["modern"] == true) == is_modern
        };
        let key = task_key(id);
        let tasks = &self.shared.tasks;
        if let Some(task) = tasks.find(&key) {
            return Some(task)
                .filter(|task| is_theirs(&task.record))
                .ok_or_else(unknown);
        }
        let store = tasks.store().ok_or_else(unknown)?;
        let _turn = tasks.lookups.acquire().await;
        let record = store.find(&key).await;
        let record = record.filter(is_theirs).ok_or_else(unknown)?;
        if record.outcome.is_some() {
            return Ok(Arc::new(ClientTask::new(record, CancellationToken::new())));
        }
        match store.claim(Some(&key)).await.pop() {
            Some(claimed) => self
                .restore_task(claimed, context)
                .await
                .ok_or_else(unknown),
            None => match tasks.find(&key) {
                Some(task) => Ok(task),
                None => Ok(Arc::new(ClientTask::elsewhere(record))),
            },
        }
    }

    async fn cancel_for_client(
        &self,
        id: &str,
        task: &Arc<ClientTask>,
    ) -> Result<Value, RequestError> {
        if task.is_modern {
            // A wish: the task may end otherwise, or have ended.
            if !task.is_elsewhere {
                self.cancel_task(task).await;
            }
            return Ok(Value::Object(Map::new()));
        }
        if task.is_elsewhere {
            let text = "the task runs in another process of Toolgate and can't be cancelled here";
            return Err(RequestError::new(RequestError::INTERNAL_ERROR, text));
        }
        if task.has_ended() {
            let (status, _, _) = task.status();
            let text = format!("the task has ended: it is {}", status.as_str());
            return Err(RequestError::invalid_params(text));
        }
        self.cancel_task(task).await;
        Ok(task.to_seed(id).into())
    }

    /// Waits for the end of a task of 2025-11-25. Meanwhile its questions go to the client.
    async fn task_result(
        &self,
        id: &str,
        task: &Arc<ClientTask>,
        context: &RequestContext<'_>,
    ) -> Result<MethodResult, RequestError> {
        let limit = self.executor.rules().limits.approval_timeout;
        let ended = async {
            let mut changes = task.watch();
            while !task.has_ended() && changes.changed().await.is_ok() {}
        };
        let waiting = async {
            match context.questions.zip(context.sink) {
                Some((questions, sink)) => {
                    let asked = questions.asking(limit, sink);
                    tokio::select! {
                        () = ended => {}
                        () = relay_questions(id, task, &asked) => {}
                    }
                    asked.withdraw_abandoned().await;
                }
                None => ended.await,
            }
        };
        tokio::select! {
            () = waiting => {}
            () = context.stop.cancelled() => {}
            () = context.ending.cancelled() => {}
        }
        let stopped = || RequestError::new(RequestError::INTERNAL_ERROR, "the server is stopping");
        let end = task.end().ok_or_else(stopped)?;
        let mut result = end.answer?;
        let related = json!({ "taskId": id });
        match result.get_mut("_meta") {
            Some(Value::Object(meta)) => drop(meta.insert(RELATED_TASK.to_owned(), related)),
            _ => result["_meta"] = json!({ RELATED_TASK: related }),
        }
        Ok(MethodResult::Json(result))
    }

    /// A result of 2026-07-28.
    pub(super) fn modern_result(&self, kind: &str, mut result: Value) -> Value {
        result["resultType"] = json!(kind);
        result["_meta"] = json!({ SERVER_INFO: self.result_meta[SERVER_INFO] });
        result
    }
}

/// Asks the client what the task's call wants to know. Never returns.
async fn relay_questions(id: &str, task: &Arc<ClientTask>, asked: &AskedQuestions<'_>) {
    let mut changes = task.watch();
    let mut asking = FuturesUnordered::new();
    loop {
        for (key, mut question) in task.take_unasked() {
            question.params["_meta"][RELATED_TASK] = json!({ "taskId": id });
            asking.push(async move {
                let again = AskAgainOnDrop { task, key };
                let answer = asked.ask(&question).await;
                again.task.resolve(&again.key, Some(answer));
                std::mem::forget(again);
            });
        }
        tokio::select! {
            changed = changes.changed() => {
                if changed.is_err() {
                    return std::future::pending().await;
                }
            }
            Some(()) = asking.next() => {}
        }
    }
}

impl RequestMeta {
    /// True if the client of 2026-07-28 can go on with a task.
    pub(in crate::server) fn declares_tasks(&self) -> bool {
        self.declares_extension(EXTENSION)
    }
}
