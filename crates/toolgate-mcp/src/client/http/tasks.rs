//! The tasks of one connection: one per request, and one for the server's own stream.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::JoinHandle;

#[derive(Default)]
pub(super) struct RequestTasks(Mutex<RunningTasks>);

#[derive(Default)]
struct RunningTasks {
    requests: HashMap<u64, JoinHandle<()>>,
    stream: Option<JoinHandle<()>>,
}

impl RequestTasks {
    pub(super) fn spawn(
        self: &Arc<Self>,
        id: u64,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let tasks = Arc::clone(self);
        // Stay locked until it is inserted: the task may end at once, and removes itself.
        let mut running = self.0.lock();
        let task = tokio::spawn(async move {
            task.await;
            tasks.0.lock().requests.remove(&id);
        });
        running.requests.insert(id, task);
    }

    pub(super) fn spawn_stream(&self, task: impl Future<Output = ()> + Send + 'static) {
        let before = self.0.lock().stream.replace(tokio::spawn(task));
        if let Some(before) = before {
            before.abort();
        }
    }

    pub(super) fn drop_request(&self, id: u64) {
        if let Some(task) = self.0.lock().requests.remove(&id) {
            task.abort();
        }
    }

    pub(super) fn abort(&self) {
        for task in self.take_all() {
            task.abort();
        }
    }

    pub(super) async fn stop(&self) {
        for task in self.take_all() {
            task.abort();
            // Aborted by us, or finished a moment earlier.
            drop(task.await);
        }
    }

    fn take_all(&self) -> Vec<JoinHandle<()>> {
        let RunningTasks { requests, stream } = std::mem::take(&mut *self.0.lock());
        requests.into_values().chain(stream).collect()
    }
}
