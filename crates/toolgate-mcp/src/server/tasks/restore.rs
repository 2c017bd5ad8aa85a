//! Goes on with tasks whose process has ended: with those that their servers still run.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolgate_core::{ClientId, RemoteTask, Scope, TaskHandle, TaskRecord, ToolCall};
use tracing::{info, warn};

use super::runner::TaskScope;
use super::task::ClientTask;
use super::task_end::TaskEnd;
use crate::server::call_reports::CallReports;
use crate::server::methods::RequestContext;
use crate::server::questions::{AskedClient, AskingCall};
use crate::server::service::McpService;

impl McpService {
    /// Takes over what other processes left. Calls that a client comes back for become its tasks
    /// again; the others are waited for, so that their outcome is recorded.
    pub(in crate::server) async fn restore_tasks(self: &Arc<Self>, scope: TaskScope) {
        let Some(store) = self.shared.tasks.store().cloned() else {
            return;
        };
        let left = store.claim(None).await;
        if !left.is_empty() {
            info!(
                tasks = left.len(),
                "going on with tasks of processes that have ended"
            );
        }
        let restoring = left
            .into_iter()
            .map(|record| self.restore(record, scope.clone()));
        join_all(restoring).await;
    }

    /// Like [`restore_tasks`](Self::restore_tasks), for one task that its client asks for.
    pub(super) async fn restore_task(
        self: &Arc<Self>,
        record: TaskRecord,
        context: &RequestContext<'_>,
    ) -> Option<Arc<ClientTask>> {
        self.restore(record, TaskScope::of(context)).await
    }

    async fn restore(
        self: &Arc<Self>,
        mut record: TaskRecord,
        scope: TaskScope,
    ) -> Option<Arc<ClientTask>> {
        let Some(remote) = record.remote.clone() else {
            let task = Arc::new(ClientTask::new(record, CancellationToken::new()));
            // Added first, so that its result counts.
            self.shared
                .tasks
                .add(task.record.key.clone()?, Arc::clone(&task));
            self.end_task(&task, TaskEnd::lost()).await;
            return Some(task);
        };
        let arguments = std::mem::take(&mut record.arguments);
        record.arguments = arguments.clone();
        let call = self.continued_call(&record, arguments, remote);
        let Some(key) = record.key.clone() else {
            self.continue_unattended(record, call, &scope);
            return None;
        };
        let client = AskedClient {
            id: ClientId::unique(),
            capabilities: Arc::new(record.client["capabilities"].clone()),
            listener: None,
        };
        let reports = CallReports::default();
        let mut call = AskingCall::new(self.executor.clone(), call, client, reports);
        let (service, tool, ending) = (Arc::clone(self), record.tool.clone(), scope.ending.clone());
        // Its server may still be starting.
        call.begin_after(async move {
            drop(service.find_or_wait(&tool, &ending).await);
            if ending.is_cancelled() {
                // The next process continues it.
                std::future::pending::<()>().await;
            }
        });
        let task = Arc::new(ClientTask::new(record, call.stop.clone()));
        if !self.shared.tasks.add(key, Arc::clone(&task)) {
            warn!(call = %task.record.call, "a task was not continued: there are too many");
            return None;
        }
        drop(self.run_task(call, &task, scope));
        Some(task)
    }

    fn continued_call(
        &self,
        record: &TaskRecord,
        arguments: Value,
        remote: RemoteTask,
    ) -> ToolCall {
        let scope = match &record.caller {
            Some(caller) => Scope::default().for_caller(caller.as_str()),
            None => Scope::default(),
        };
        ToolCall::new(record.tool.clone(), arguments)
            .with_id(record.call)
            .origin(record.origin)
            .scope(scope)
            .resume(remote)
    }

    /// Waits for the result of a call whose caller is gone.
    fn continue_unattended(
        self: &Arc<Self>,
        record: TaskRecord,
        call: ToolCall,
        scope: &TaskScope,
    ) {
        let (service, scope) = (Arc::clone(self), scope.clone());
        let tracker = scope.tracker.clone();
        tracker.spawn(async move {
            let handle = TaskHandle::default();
            let call = call.cancellation(scope.shutdown.clone());
            let call = call.task_handle(handle.clone());
            let (_, found) = service.find_or_wait(&record.tool, &scope.ending).await;
            if found.is_err() {
                return; // It stays interrupted.
            }
            let mut running = Box::pin(service.executor.execute(call));
            tokio::select! {
                _ = &mut running => {}
                () = scope.ending.cancelled() => {
                    handle.request_leave();
                    running.await;
                }
            }
        });
    }
}
