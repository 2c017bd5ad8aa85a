//! The tasks of one connection: one per request, and one for the server's own messages.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::task::JoinHandle;

#[derive(Default)]
pub(super) struct Tasks(Mutex<Running>);

#[derive(Default)]
struct Running {
    requests: HashMap<u64, JoinHandle<()>>,
    stream: Option<JoinHandle<()>>,
}

impl Tasks {
    /// Runs the task of a request; it is forgotten when it ends.
    pub(super) fn spawn(
        self: &Arc<Self>,
        id: u64,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let tasks = Arc::clone(self);
        // Locked until it is in the list: it may end at once.
        let mut running = self.running();
        let task = tokio::spawn(async move {
            task.await;
            tasks.running().requests.remove(&id);
        });
        running.requests.insert(id, task);
    }

    /// Runs the task of the standing stream, in place of one there may be.
    pub(super) fn spawn_stream(&self, task: impl Future<Output = ()> + Send + 'static) {
        let before = self.running().stream.replace(tokio::spawn(task));
        if let Some(before) = before {
            before.abort();
        }
    }

    pub(super) fn drop_request(&self, id: u64) {
        if let Some(task) = self.running().requests.remove(&id) {
            task.abort();
        }
    }

    pub(super) fn abort(&self) {
        for task in self.take() {
            task.abort();
        }
    }

    /// Ends them all and waits until they have.
    pub(super) async fn stop(&self) {
        for task in self.take() {
            task.abort();
            // Ended by us, as it should be, or by itself a moment earlier.
            drop(task.await);
        }
    }

    fn take(&self) -> Vec<JoinHandle<()>> {
        let Running { requests, stream } = std::mem::take(&mut *self.running());
        requests.into_values().chain(stream).collect()
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock()
    }
}
